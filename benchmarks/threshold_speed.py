"""A guaranteed threshold from 1,000,000 scores: time and peak memory.

scikit-learn's `precision_recall_curve`, which sorts and counts the same rows and promises nothing,
runs in the same turns as a yardstick; MAPIE's controller, which compares every row with each of
100 thresholds, is timed once. Peak memory is measured in a process of its own, less what that
process holds with the input loaded and everything imported.
"""

from __future__ import annotations

import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.child import measured
from benchmarks.harness import Size, agree, race
from benchmarks.outcome import Outcome, within

__all__ = ["measure"]

ROWS = {"full": 1_000_000, "toy": 20_000}
ROUNDS = {"full": 7, "toy": 1}
TARGET = 0.85

_CHILD = """
import sys, numpy as np
from calibrant.thresholds import precision, recall, select
given = np.load(sys.argv[1])
labels, probs = given["labels"], given["probs"]
def chosen(rows):
    return select(labels[:rows], probs[:rows], hold=precision >= 0.85, maximise=recall)
chosen(2_000)  # imports what it needs
if sys.argv[2] == "all":
    chosen(len(labels))
"""


def measure(size: Size) -> list[Outcome]:
    """Time every way of asking, and measure the memory of the plain one."""
    labels, probs = made_scores(ROWS[size])
    runs = race(_contenders(labels, probs), ROUNDS[size])
    _check(labels, probs, runs["calibrant"].value)
    details: dict[str, Any] = {name: run.to_dict() for name, run in runs.items()}
    details["MAPIE, once"] = {"seconds": round(_mapie_seconds(labels, probs), 3)}
    ours = {name: run for name, run in runs.items() if name.startswith("calibrant")}
    slowest = max(ours, key=lambda name: ours[name].median)
    return [
        within(
            "threshold that keeps a precision, from 1,000,000 scores, under 1 s",
            runs["calibrant"].median,
            1.0,
            "s",
            details,
        ),
        within(
            "the same for ties, logits, weights, other rates and two targets under 1 s each",
            ours[slowest].median,
            1.0,
            "s",
            {"slowest": slowest},
        ),
        _memory(labels, probs),
    ]


def made_scores(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw labels (one in ten positive) and float64 scores that part them well."""
    rng = np.random.default_rng(0)
    labels = (rng.random(n) < 0.1).astype(np.int64)
    logits = rng.standard_normal(n) + 3.0 * labels - 3.5
    return labels, 1.0 / (1.0 + np.exp(-2.0 * logits))


def _contenders(labels: np.ndarray, probs: np.ndarray) -> dict[str, Callable[[], Any]]:
    from sklearn.metrics import precision_recall_curve

    from calibrant.thresholds import npv, precision, recall, select

    logits = np.log(probs) - np.log1p(-probs)
    tied = probs.round(2)
    weights = np.where(probs > 0.5, 1.0, 2.0)
    held = precision >= TARGET
    return {
        "calibrant": lambda: select(labels, probs, hold=held, maximise=recall),
        "calibrant, tied scores": lambda: select(labels, tied, hold=held, maximise=recall),
        "calibrant, logits": lambda: select(labels, logits=logits, hold=held, maximise=recall),
        "calibrant, recall held": lambda: select(labels, probs, hold=recall >= 0.9),
        "calibrant, NPV held": lambda: select(labels, probs, hold=npv >= 0.97),
        "calibrant, two targets": lambda: select(labels, probs, hold=[held, recall >= 0.5]),
        "calibrant, weights": lambda: select(labels, probs, hold=held, weights=weights),
        "scikit-learn, no promise": lambda: precision_recall_curve(labels, probs),
    }


def _check(labels: np.ndarray, probs: np.ndarray, point: Any) -> None:
    """Hold the rates of the point against plain counts."""
    acted = probs >= point.threshold
    right = int(labels[acted].sum())
    agree("precision", point["precision"].value, right / int(acted.sum()), 1e-12)
    agree("recall", point["recall"].value, right / int(labels.sum()), 1e-12)


def _mapie_seconds(labels: np.ndarray, probs: np.ndarray) -> float:
    from mapie.risk_control import BinaryClassificationController, precision

    def both(scores: np.ndarray) -> np.ndarray:
        return np.column_stack([1 - scores, scores])

    controller = BinaryClassificationController(both, precision, TARGET, confidence_level=0.95)
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        controller.calibrate(probs, labels)
    return time.perf_counter() - start


def _memory(labels: np.ndarray, probs: np.ndarray) -> Outcome:
    size = labels.nbytes + probs.nbytes
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "scores.npz"
        np.savez(file, labels=labels, probs=probs)
        command = [sys.executable, "-c", _CHILD, str(file)]
        idle = measured([*command, "few"]).peak_bytes
        busy = measured([*command, "all"]).peak_bytes
    return within(
        "the threshold's input and work together hold under 6 times the input",
        1.0 + (busy - idle) / size,
        6.0,
        "times the input",
        {"input_bytes": size, "loaded_peak_bytes": idle, "select_peak_bytes": busy},
    )
