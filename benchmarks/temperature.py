"""Temperature scaling of 50,000 x 1,000 float32 logits against scikit-learn.

Both minimise the same NLL. The exact optimum comes from the derivative in long double arithmetic
on the same rows; how far above it each NLL lies is reported. Peak memory is measured in a process
of its own, less what that process holds with the input loaded and nothing fitted.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.child import measured
from benchmarks.harness import Size, race
from benchmarks.outcome import Outcome, speed_up, within

__all__ = ["measure"]

SHAPE = {"full": (50_000, 1_000), "toy": (2_000, 100)}
ROUNDS = {"full": 3, "toy": 1}
TRUE_TEMPERATURE = 2.5


def measure(size: Size) -> list[Outcome]:
    """Time both, compare both with the optimum, and measure our memory."""
    logits, labels = made_logits(*SHAPE[size])
    runs = race(
        {
            "calibrant": lambda: _ours(logits, labels),
            "scikit-learn": lambda: _theirs(logits, labels),
        },
        ROUNDS[size],
    )
    best = _optimum(logits, labels, runs["calibrant"].value)
    lowest = _nll(logits, labels, best)
    details: dict[str, Any] = {"optimum": {"temperature": best, "nll": lowest}}
    for name, run in runs.items():
        excess = _nll(logits, labels, run.value) - lowest
        details[name] = {**run.to_dict(), "temperature": run.value, "nll_above_optimum": excess}
    return [
        speed_up(
            "temperature scaling at least 8 times faster than scikit-learn",
            runs["scikit-learn"].median,
            runs["calibrant"].median,
            8.0,
            details,
        ),
        Outcome(
            "temperature scaling: NLL within 1e-9 of the exact optimum",
            abs(details["calibrant"]["nll_above_optimum"]),
            1e-9,
            "nats",
            "below",
            details["optimum"],
        ),
        _memory(logits, labels),
    ]


def made_logits(n: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Make over-confident float32 logits whose true temperature is known."""
    rng = np.random.default_rng(0)
    logits = rng.standard_normal((n, k), dtype=np.float32) * 2.0
    gumbel = -np.log(-np.log(rng.random((n, k), dtype=np.float32) * (1 - 2e-7) + 1e-7))
    labels = np.argmax(logits + gumbel, axis=1)
    return logits * np.float32(TRUE_TEMPERATURE), labels


def _ours(logits: np.ndarray, labels: np.ndarray) -> float:
    from calibrant.calibrators import TemperatureScaling

    return TemperatureScaling().fit(logits, labels).temperature_


def _theirs(logits: np.ndarray, labels: np.ndarray) -> float:
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.frozen import FrozenEstimator

    class PassThrough(ClassifierMixin, BaseEstimator):
        """A classifier whose input, the logits, is its decision function."""

        def __init__(self) -> None:
            self.classes_ = np.arange(logits.shape[1])

        def fit(self, x: np.ndarray, y: np.ndarray) -> PassThrough:
            return self

        def decision_function(self, x: np.ndarray) -> np.ndarray:
            return x

        def predict(self, x: np.ndarray) -> np.ndarray:
            return np.asarray(x.argmax(axis=1))

    model = CalibratedClassifierCV(FrozenEstimator(PassThrough()), method="temperature")
    model.fit(logits, labels)
    return float(1.0 / model.calibrated_classifiers_[0].calibrators[0].beta_)


def _sums(logits: np.ndarray, labels: np.ndarray, beta: float) -> tuple[float, float, float]:
    """Return the NLL and its two derivatives in 1/T, in long double arithmetic."""
    sums = np.zeros(3, dtype=np.longdouble)
    for start in range(0, len(labels), 500):
        z = logits[start : start + 500].astype(np.longdouble)
        z -= z.max(axis=1, keepdims=True)
        of_label = z[np.arange(len(z)), labels[start : start + 500]]
        e = np.exp(beta * z)
        total = e.sum(axis=1)
        mean = (e * z).sum(axis=1) / total
        square = (e * z * z).sum(axis=1) / total
        sums += [
            (np.log(total) - beta * of_label).sum(),
            (mean - of_label).sum(),
            (square - mean * mean).sum(),
        ]
    nll, slope, curvature = (sums / len(labels)).tolist()
    return float(nll), float(slope), float(curvature)


def _optimum(logits: np.ndarray, labels: np.ndarray, start: float) -> float:
    beta = 1.0 / start
    for _ in range(3):
        _, slope, curvature = _sums(logits, labels, beta)
        beta -= slope / curvature
    return 1.0 / beta


def _nll(logits: np.ndarray, labels: np.ndarray, temperature: float) -> float:
    return _sums(logits, labels, 1.0 / temperature)[0]


def _memory(logits: np.ndarray, labels: np.ndarray) -> Outcome:
    code = (
        "import sys, numpy as np; from calibrant.calibrators import TemperatureScaling; "
        "d = np.load(sys.argv[1]); z, y = d['z'], d['y']; del d; "
        "sys.argv[2] == 'fit' and TemperatureScaling().fit(z, y)"
    )
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "logits.npz"
        np.savez(file, z=logits, y=labels)
        idle = measured([sys.executable, "-c", code, str(file), "load"]).peak_bytes
        busy = measured([sys.executable, "-c", code, str(file), "fit"]).peak_bytes
    return within(
        "temperature scaling: input and fit together hold at most 1.5 times the input",
        1.0 + (busy - idle) / logits.nbytes,
        1.5,
        "times the input",
        {"input_bytes": logits.nbytes, "loaded_peak_bytes": idle, "fit_peak_bytes": busy},
    )
