"""Metrics of the steer split."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from calibrant.calibrators import TemperatureScaling
from calibrant.convert import probs_from_logits
from calibrant.metrics import measure


@dataclass(frozen=True)
class SteerFigures:
    """Metrics of the steer split, with the names of `EpochRecord`."""

    nll: float
    refinement: float
    temperature: float
    ece: float
    f1: float
    accuracy: float


def steer_figures(logits: NDArray[Any], labels: NDArray[Any]) -> SteerFigures:
    """Evaluate the steer split, including log loss before and after temperature scaling.

    The latter is the *refinement*: the loss that remains once the scale of the logits is right. A
    calibrator can remove the difference later, so refinement is the better criterion for an epoch.
    The temperature is fitted on the same rows; a single parameter biases the estimate very little,
    and all epochs alike. A pseudo-count of one row (`smooth`) keeps it finite if every prediction
    is right.
    """
    classes = range(logits.shape[1])
    probs = probs_from_logits(logits)
    names = ("nll", "ece_em", "f1_macro", "accuracy")
    metrics = measure(labels, probs, names=names, classes=classes, target="top-label")
    scaling = TemperatureScaling(smooth=True).fit(logits, labels, classes=classes)
    refined = measure(labels, scaling.predict_proba(logits), names=("nll",), classes=classes)
    return SteerFigures(
        nll=metrics["nll"],
        refinement=refined["nll"],
        temperature=float(scaling.temperature_),
        ece=metrics["ece_em"],
        f1=metrics["f1_macro"],
        accuracy=metrics["accuracy"],
    )
