"""Metrics of the steer split."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from calibrant.calibrators import TemperatureScaling
from calibrant.convert import log_probs_from_logits, probs_from_logits
from calibrant.inputs import FloatArray
from calibrant.metrics import measure
from calibrant.metrics.influence_figures import macro_influences

SteerFigure = Literal["refinement", "nll", "f1"]

NOTHING_LEARNED = "the network has learned nothing"
"""First words of the warning about a network that is not better than the class frequencies."""

_MANY = 30  # rows: with fewer, luck explains any gain
_LUCK = 6.0  # exceeded with probability 0.014 by chi-squared with one degree of freedom


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
    names = ("ece_em", "f1_macro", "accuracy")
    probs = probs_from_logits(logits)
    metrics = measure(labels, probs, names=names, classes=classes, target="top-label")
    temperature = _fit_temperature(logits, labels)
    return SteerFigures(
        nll=float(_row_losses(logits, labels).mean()),
        refinement=float(_row_losses(logits, labels, temperature).mean()),
        temperature=temperature,
        ece=metrics["ece_em"],
        f1=metrics["f1_macro"],
        accuracy=metrics["accuracy"],
    )


def beats_frequencies(refinement: float, frequencies: float, n: int) -> bool:
    """Return whether a refinement is smaller than the log loss of the class frequencies.

    By more than chance explains: an infinite temperature gives equal probabilities, so even a
    useless network can be better. Twice its gain in log-likelihood is about chi-squared with one
    degree of freedom.

    Examples
    --------
    >>> beats_frequencies(0.69, 0.693, n=500), beats_frequencies(0.60, 0.693, n=500)
    (False, True)
    """
    chance = _LUCK / (2 * n) if n >= _MANY else 0.0
    return refinement < frequencies - chance


def _fit_temperature(logits: NDArray[Any], labels: NDArray[Any]) -> float:
    scaling = TemperatureScaling(smooth=True).fit(logits, labels, classes=range(logits.shape[1]))
    return float(scaling.temperature_)


def _row_losses(logits: NDArray[Any], labels: NDArray[Any], temperature: float = 1.0) -> FloatArray:
    """Return the log loss (n,) of each row; from logits, since a probability may round to 0."""
    log_probs = log_probs_from_logits(logits.astype(np.float64) / temperature)
    return np.asarray(-log_probs[np.arange(len(labels)), labels.astype(np.intp)])


@dataclass(frozen=True)
class PairedFigures:
    """One figure of two models on the same steer rows.

    Parameters
    ----------
    first, second : the figure of each model
    error : standard error of their difference, from the paired rows
    """

    first: float
    second: float
    error: float


def compare_steer(
    first: NDArray[Any], second: NDArray[Any], labels: NDArray[Any], figure: SteerFigure
) -> PairedFigures:
    """Compare the logits of two models on the same steer rows by one figure.

    Noise that the rows cause in both cancels, so the error of the difference is much smaller than
    that of each figure.
    """
    (a, influence_a), (b, influence_b) = (
        _row_influences(logits, labels, figure) for logits in (first, second)
    )
    error = float((influence_b - influence_a).std(ddof=1)) / math.sqrt(len(labels))
    return PairedFigures(a, b, error)


def _row_influences(
    logits: NDArray[Any], labels: NDArray[Any], figure: SteerFigure
) -> tuple[float, FloatArray]:
    """Return the figure, and what each row adds to it."""
    if figure == "f1":
        n, predicted = logits.shape[1], logits.argmax(axis=1)
        counts = np.bincount(labels * n + predicted, minlength=n * n).reshape(n, n)
        rows = macro_influences(counts.astype(np.float64))
        value, influence = next((v, each) for name, v, each in rows if name == "f1_macro")
        return float(value), np.asarray(influence[labels, predicted])
    temperature = _fit_temperature(logits, labels) if figure == "refinement" else 1.0
    losses = _row_losses(logits, labels, temperature)
    return float(losses.mean()), losses
