"""Metrics of one run: the uncalibrated model, and after each calibrator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.calibrators import (
    AutoCalibrator,
    EnsembleTemperatureScaling,
    Identity,
    SplineCalibration,
    TemperatureScaling,
)
from calibrant.calibrators.base.calibrator import Calibrator
from calibrant.inputs import FloatArray, IntArray
from calibrant.metrics import evaluate
from calibrant.results import Figure

__all__ = ["FIGURES", "WAYS", "RunFigures", "run_figures"]

FIGURES = ("ece_ew", "ece_em", "ece_debiased", "ece_sweep_em", "nll", "brier", "error")
"""Columns of every table; all are about the predicted class, in fractions."""

WAYS: Mapping[str, type[Calibrator]] = {
    "raw": Identity,
    "temperature": TemperatureScaling,
    "ets": EnsembleTemperatureScaling,
    "spline": SplineCalibration,
    "auto": AutoCalibrator,
}
"""What stands between logits and probabilities; each is fitted on the calib rows."""


@dataclass(frozen=True, eq=False)
class RunFigures:
    """What was measured on the test rows of one run.

    Parameters
    ----------
    figures : by way and by name of the figure: value, low, high, floor
    losses : log loss of each test row, for the ways "temperature" and "auto"
    temperature : that was fitted
    chosen : the method that the automatic choice took
    calib_nll : its cross-validated log loss on the calib rows: what may choose between models
    comparison : what the choice looked at, and why it took this one
    """

    figures: dict[str, dict[str, Any]]
    losses: dict[str, FloatArray]
    temperature: float
    chosen: str
    calib_nll: float | None = None
    comparison: dict[str, Any] | None = None


def run_figures(
    calib: tuple[FloatArray, IntArray], test: tuple[FloatArray, IntArray]
) -> RunFigures:
    """Fit every calibrator on the calib rows and measure it on the test rows.

    Parameters
    ----------
    calib, test : logits (n, K) and labels (n,) as numbers from 0

    Examples
    --------
    >>> draw = np.random.default_rng(0)
    >>> labels = draw.integers(0, 3, 900)
    >>> logits = 2.0 * np.eye(3)[labels] + draw.normal(size=(900, 3))
    >>> found = run_figures((3 * logits[:400], labels[:400]), (3 * logits[400:], labels[400:]))
    >>> found.figures["raw"]["ece_em"]["value"] > found.figures["temperature"]["ece_em"]["value"]
    True
    """
    classes = range(calib[0].shape[1])
    figures: dict[str, dict[str, Any]] = {}
    losses: dict[str, FloatArray] = {}
    fitted: dict[str, Any] = {}
    for way, method in WAYS.items():
        calibrator = method().fit(*calib, classes=classes)
        probs = calibrator.predict_proba(test[0])
        fitted[way], figures[way] = calibrator, _measured(test[1], probs)
        if way in ("temperature", "auto"):
            losses[way] = _log_losses(calibrator, *test)
    choice = fitted["auto"].comparison_
    own = next(each for each in choice.candidates if each.method == choice.chosen)
    temperature = float(fitted["temperature"].temperature_)
    return RunFigures(figures, losses, temperature, choice.chosen, own.nll, choice.to_dict())


def _measured(labels: IntArray, probs: FloatArray) -> dict[str, Any]:
    metrics = evaluate(labels, probs, classes=range(probs.shape[1]), target="top-label").figures
    return {name: _plain(_error(metrics) if name == "error" else metrics[name]) for name in FIGURES}


def _error(metrics: Mapping[str, Figure]) -> dict[str, Any]:
    """Turn the accuracy into the error."""
    right = metrics["accuracy"].to_dict()
    return {"value": 1 - right["value"], "low": 1 - right["high"], "high": 1 - right["low"]}


def _plain(figure: Figure | dict[str, Any]) -> dict[str, Any]:
    fields = figure.to_dict() if isinstance(figure, Figure) else figure
    values = {name: fields.get(name) for name in ("value", "low", "high", "floor")}
    if fields.get("why"):
        values["why"] = fields["why"]
    return values


def _log_losses(calibrator: Calibrator, logits: FloatArray, labels: IntArray) -> FloatArray:
    """Return the log loss of each row, in the precision that files keep."""
    log_probs = np.asarray(calibrator.predict_log_proba(logits), dtype=np.float64)
    return -log_probs[np.arange(len(labels)), labels]
