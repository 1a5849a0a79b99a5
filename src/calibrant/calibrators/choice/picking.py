"""Rules that pick one of several trials by their scores and standard errors."""

from __future__ import annotations

import numpy as np

from calibrant.calibrators.base.rows import CalibrationRows
from calibrant.calibrators.choice.trial import Trial, paired_difference
from calibrant.calibrators.methods.identity import Identity
from calibrant.calibrators.methods.temperature import TemperatureScaling

__all__ = ["best_beyond_temperature", "simplest_near_best"]

Pick = tuple[int, str]
"""Index of the candidate, and the reason in one sentence."""


def simplest_near_best(trials: list[Trial], rows: CalibrationRows, tolerance: float) -> Pick:
    """Pick the simplest candidate whose score is within `tolerance` SE of the best."""
    best = _index_of_best(trials, rows)
    i = next((t for t in range(best) if _is_near(trials[t], trials[best], rows, tolerance)), best)
    name, top = trials[i].name, trials[best].name
    if i == 0:
        return i, _explain_identity(trials, best)
    if i == best:
        return i, f"{name} has the best score, and no simpler method comes close enough."
    return i, f"{name} is the simplest method that is not clearly worse than the best ({top})."


def best_beyond_temperature(trials: list[Trial], rows: CalibrationRows, margin: float) -> Pick:
    """Pick the best candidate that beats temperature by `margin` SE, else temperature.

    The baseline is the uncalibrated model where that scores no worse than temperature.
    """
    best = _index_of_best(trials, rows)
    baselines = [
        i for i, t in enumerate(trials) if isinstance(t.calibrator, Identity | TemperatureScaling)
    ]
    baseline = _index_of_best(trials, rows, baselines)
    if trials[baseline].losses is None:
        return best, f"{trials[best].name} has the best score."
    better = [
        i for i, trial in enumerate(trials)
        if trial.losses is not None and not _is_near(trials[baseline], trial, rows, margin)
    ]  # fmt: skip
    i = _index_of_best(trials, rows, better) if better else baseline
    name, top = trials[i].name, trials[best].name
    if i == 0:
        return i, _explain_identity(trials, best)
    if i == baseline != best:
        return i, f"{name} is chosen because the best method ({top}) is not clearly better."
    if i == baseline:
        return i, f"{name} has the best score."
    reference = "the uncalibrated model" if baseline == 0 else trials[baseline].name
    if i == best:
        return i, f"{name} has the best score and is clearly better than {reference}."
    return i, f"{name} is the best of the methods that are clearly better than {reference}."


def _index_of_best(
    trials: list[Trial], rows: CalibrationRows, among: list[int] | None = None
) -> int:
    """Return the index of the best score, or the first if all were excluded."""
    indices = list(range(len(trials))) if among is None else among
    losses = [trials[i].losses for i in indices]
    scores = [np.inf if loss is None else float((rows.mass * loss).sum()) for loss in losses]
    return indices[int(np.argmin(scores))]


def _is_near(trial: Trial, best: Trial, rows: CalibrationRows, tolerance: float) -> bool:
    """Return whether a score exceeds another by at most `tolerance` standard errors."""
    difference = paired_difference(trial, best, rows)
    return difference is not None and difference[0] <= tolerance * difference[1]


def _explain_identity(trials: list[Trial], best: int) -> str:
    """Return the reason why the model stays uncalibrated."""
    if len([t for t in trials if t.losses is not None]) == 1 and len(trials) > 1:
        return "The model stays uncalibrated: every method was excluded."
    if best == 0:
        return "No method has a better score than the uncalibrated model."
    top = trials[best].name
    return f"Even the best method ({top}) is not clearly better than the uncalibrated model."
