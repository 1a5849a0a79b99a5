"""FLAML on the rows of a folder: run with the interpreter of `.venv-flaml`, which has FLAML.

`python flaml_fit.py FOLDER SECONDS SEED` reads `labels.npz` and for the splits fit, calibrate and
test `SPLIT.parquet` (a table) or `SPLIT.npz` (sparse features), and writes `probs.npz`.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from flaml import AutoML


def read(folder: Path, split: str) -> Any:
    """Read the features of a split."""
    table = folder / f"{split}.parquet"
    if table.exists():
        import pandas as pd

        frame = pd.read_parquet(table)
        texts = [name for name in frame if not pd.api.types.is_numeric_dtype(frame[name])]
        return frame.astype(dict.fromkeys(texts, "category"))
    from scipy.sparse import load_npz

    return load_npz(folder / f"{split}.npz")


def main(folder: Path, seconds: float, seed: int) -> None:
    """Search for the given time, and save the probabilities of the best model."""
    with np.load(folder / "labels.npz") as file:
        labels = file["fit"]
    warnings.simplefilter("ignore")
    search = AutoML()
    search.fit(
        read(folder, "fit"),
        labels,
        task="classification",
        metric="log_loss",
        time_budget=seconds,
        seed=seed,
        verbose=0,
    )
    probs = {split: search.predict_proba(read(folder, split)) for split in ("calibrate", "test")}
    np.savez(folder / "probs.npz", **probs)
    (folder / "model.json").write_text(json.dumps({"model": search.best_estimator}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]))
