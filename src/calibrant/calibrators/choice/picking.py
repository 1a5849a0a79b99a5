"""Two rules that pick one of several tried methods: by their scores, and by how sure these are."""

from __future__ import annotations

import numpy as np

from calibrant.calibrators.base.rows import Rows
from calibrant.calibrators.choice.trial import Trial, gap
from calibrant.calibrators.methods.identity import Identity
from calibrant.calibrators.methods.temperature import TemperatureScaling

__all__ = ["best_beyond_temperature", "simplest_near_best"]

Picked = tuple[int, str]
"""The place of the candidate, and one sentence that says why it is the one."""


def simplest_near_best(trials: list[Trial], rows: Rows, tolerance: float) -> Picked:
    """Return the simplest candidate whose score is not above the best one's by `tolerance` SE."""
    best = _best(trials, rows)
    i = next((t for t in range(best) if _is_near(trials[t], trials[best], rows, tolerance)), best)
    name, top = trials[i].name, trials[best].name
    if i == 0:
        return i, _why_none(trials, best)
    if i == best:
        return i, f"{name} has the best score, and nothing simpler comes near enough."
    return i, f"{name} is the simplest method that is not clearly worse than the best ({top})."


def best_beyond_temperature(trials: list[Trial], rows: Rows, margin: float) -> Picked:
    """Return the best candidate that beats temperature by `margin` SE, else temperature.

    The model as it is stands in for temperature where its score is not the worse one.
    """
    best = _best(trials, rows)
    plain = [
        i for i, t in enumerate(trials) if isinstance(t.calibrator, Identity | TemperatureScaling)
    ]
    start = _best(trials, rows, plain)
    if trials[start].losses is None:
        return best, f"{trials[best].name} has the best score."
    clear = [
        i for i, trial in enumerate(trials)
        if trial.losses is not None and not _is_near(trials[start], trial, rows, margin)
    ]  # fmt: skip
    i = _best(trials, rows, clear) if clear else start
    name, top = trials[i].name, trials[best].name
    if i == 0:
        return i, _why_none(trials, best)
    if i == start != best:
        return i, f"{name} is taken, for the best method ({top}) is not clearly better."
    if i == start:
        return i, f"{name} has the best score."
    than = "the model as it is" if start == 0 else trials[start].name
    if i == best:
        return i, f"{name} has the best score, and it is clearly better than {than}."
    return i, f"{name} is the best of the methods that are clearly better than {than}."


def _best(trials: list[Trial], rows: Rows, among: list[int] | None = None) -> int:
    """Return the place of the best score; where all were left out, the first place."""
    places = list(range(len(trials))) if among is None else among
    losses = [trials[i].losses for i in places]
    scores = [np.inf if each is None else float((rows.mass * each).sum()) for each in losses]
    return places[int(np.argmin(scores))]


def _is_near(trial: Trial, best: Trial, rows: Rows, tolerance: float) -> bool:
    """Say whether a score is above another by no more than `tolerance` standard errors."""
    compared = gap(trial, best, rows)
    return compared is not None and compared[0] <= tolerance * compared[1]


def _why_none(trials: list[Trial], best: int) -> str:
    """Say why the model stays as it is."""
    if len([t for t in trials if t.losses is not None]) == 1 and len(trials) > 1:
        return "The model stays as it is: every method had to be left out."
    if best == 0:
        return "No method has a better score than the model as it is."
    top = trials[best].name
    return f"Even the best method ({top}) is not clearly better than the model as it is."
