"""What an impatient user would pick: FLAML for as many seconds as the command took.

It chooses and validates by itself, so it gets the train, steer and choice rows; texts as TF-IDF of
words and pairs of words. It lives in an environment of its own.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from benchmarks.models.rows import PeerRows

__all__ = ["ENVIRONMENT", "is_there", "run_automl"]

ENVIRONMENT = Path(__file__).parents[2] / ".venv-flaml"
_FIT = ("train", "steer", "choice")
_LEAST_PROBABILITY = 1e-15


def is_there() -> bool:
    """Return whether the environment was made, by `make bench`."""
    return (ENVIRONMENT / "bin" / "python").exists()


def run_automl(
    rows: PeerRows, kind: str, seconds: float, seed: int
) -> tuple[dict[str, Any], dict[str, NDArray[np.float64]]]:
    """Return which model FLAML chose, and its logits of the calibrate and test rows."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        labels = np.concatenate([rows.codes[name] for name in _FIT])
        np.savez(folder / "labels.npz", fit=labels)
        _write_tables(rows, folder) if kind == "table" else _write_texts(rows, folder)
        script = Path(__file__).with_name("flaml_fit.py")
        command = [ENVIRONMENT / "bin" / "python", "-I", script, folder, f"{seconds:.0f}", seed]
        subprocess.run([str(part) for part in command], check=True, capture_output=True)
        chosen: dict[str, Any] = json.loads((folder / "model.json").read_text(encoding="utf-8"))
        with np.load(folder / "probs.npz", allow_pickle=False) as probs:
            logits = {
                f"FLAML/{split}": np.log(np.maximum(probs[split], _LEAST_PROBABILITY))
                for split in probs.files
            }
    return {"seconds": round(seconds), **chosen}, logits


def _write_tables(rows: PeerRows, folder: Path) -> None:
    fit = pa.concat_tables([rows.inputs[name] for name in _FIT])
    for name, table in {"fit": fit, **{n: rows.inputs[n] for n in ("calibrate", "test")}}.items():
        pq.write_table(table, folder / f"{name}.parquet")


def _write_texts(rows: PeerRows, folder: Path) -> None:
    from scipy.sparse import save_npz
    from sklearn.feature_extraction.text import TfidfVectorizer

    fit = [text for name in _FIT for text in rows.inputs[name]]
    features = TfidfVectorizer(ngram_range=(1, 2), dtype=np.float32)
    save_npz(folder / "fit.npz", features.fit_transform(fit).tocsr())
    for name in ("calibrate", "test"):
        save_npz(folder / f"{name}.npz", features.transform(rows.inputs[name]).tocsr())
