"""Our side: `calibrant train` as a newcomer calls it, and the bundle that it packs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness import Disagreement
from benchmarks.models.rows import PeerRows, digest
from benchmarks.models.sets import DataSet

__all__ = ["run_command"]

_ANSWERED = (0, 1)  # 1 says that a promise cannot be made


def run_command(
    data_set: DataSet, seed: int, rows: PeerRows, folder: Path
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Run the command and return what its bundle says about the calibrate and test rows.

    The arrays are `logits/SPLIT` of the bundle's model, `probs/test` as packed, `found/test`
    (whether a test row is rightly acted on) and `plain/SPLIT`, the logits of cross-entropy with
    the same model. Without a bundle, for nothing was learned, there are the class shares.
    """
    out = folder / "study"
    shutil.rmtree(out, ignore_errors=True)
    before = os.times()
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "calibrant", *data_set.command(folder.parent, seed), "--out", out],
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    seconds = time.perf_counter() - start
    after = os.times()
    if done.returncode not in _ANSWERED:
        raise RuntimeError(f"calibrant train failed on {data_set.name}:\n{done.stderr}")
    if digest(out / "splits.json") != rows.digest:
        raise Disagreement(f"{data_set.name}: the peers did not get the study's splits.")
    result = json.loads((out / "result.json").read_text(encoding="utf-8"))
    used = (after.children_user + after.children_system) - (
        before.children_user + before.children_system
    )
    plain, arrays = _cross_entropy(out, result["chosen"])
    arrays |= _packed(out / "bundle", rows)
    record = {
        "seconds": round(seconds, 1),
        "cpu_seconds": round(used, 1),
        "load": round(os.getloadavg()[0], 1),
        "packed": (out / "bundle").exists(),
        "chosen": result["chosen"],
        "plain": plain,
        "calibrator": result["calibrator"]["method"],
        "promised": any(point["reached"] for point in result["operating_points"]),
        "candidates": [_brief(candidate) for candidate in result["candidates"]],
    }
    shutil.rmtree(out)
    return record, arrays


def _brief(candidate: Mapping[str, Any]) -> dict[str, Any]:
    names = ("model", "loss", "way", "failed", "reference", "refinement", "seconds")
    return {name: candidate[name] for name in names if candidate.get(name) is not None}


def _packed(path: Path, rows: PeerRows) -> dict[str, NDArray[Any]]:
    """Return the scores of the bundle, and which test rows it rightly acts on."""
    codes = rows.codes["test"]
    if not path.exists():
        shares = np.bincount(rows.codes["train"], minlength=len(rows.classes)) / len(
            rows.codes["train"]
        )
        arrays = {f"logits/{name}": _repeat(np.log(shares), rows, name) for name in _JUDGED}
        return {**arrays, "probs/test": _repeat(shares, rows, "test"), "found/test": codes < 0}
    from calibrant import load_bundle

    bundle = load_bundle(path)
    inputs = {
        name: rows.inputs[name]
        if isinstance(rows.inputs[name], list)
        else bundle.inputs_of(rows.inputs[name])
        for name in _JUDGED
    }
    arrays = {f"logits/{name}": bundle.predict_logits(part) for name, part in inputs.items()}
    hits = codes < 0
    if bundle.points:
        decisions = bundle.decide(inputs["test"])
        code_of = {name: code for code, name in enumerate(rows.classes)}
        acted_as = np.array([code_of.get(name, -1) for name in decisions.acted_as.tolist()])
        hits = (decisions.decision == "act") & (acted_as == codes)
    return {**arrays, "probs/test": bundle.predict_proba(inputs["test"]), "found/test": hits}


_JUDGED = ("calibrate", "test")


def _repeat(row: NDArray[Any], rows: PeerRows, split: str) -> NDArray[Any]:
    return np.tile(row, (len(rows.codes[split]), 1))


def _cross_entropy(
    out: Path, chosen: Mapping[str, Any]
) -> tuple[str, dict[str, NDArray[np.float64]]]:
    """Return the logits of cross-entropy with the model that the losses were compared on."""
    saved = []
    for done in sorted(out.glob("candidates/*/done.json")):
        record = json.loads(done.read_text(encoding="utf-8"))
        saved.append((record.get("model"), record["loss"], record.get("way", "one"), done.parent))
    compared = {model for model, loss, way, _ in saved if way == "one" and loss != "ce"}
    model = next(iter(compared)) if len(compared) == 1 else chosen.get("model")
    folder = next(
        folder
        for name, loss, way, folder in saved
        if loss == "ce" and way == "one" and name in (model, None)
    )
    with np.load(folder / "logits.npz", allow_pickle=False) as logits:
        arrays = {f"plain/{name}": logits[name].astype(np.float64) for name in _JUDGED}
    return "ce" if model is None else f"{model}: ce", arrays
