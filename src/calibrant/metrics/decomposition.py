"""Decomposition of proper scores into calibration and refinement (CORP)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from calibrant.errors import InputError
from calibrant.inputs import FloatArray, Target, as_scored_rows
from calibrant.metrics.problem import tally_target
from calibrant.metrics.tally import Tally

Score = Literal["brier", "nll"]


@dataclass(frozen=True)
class Decomposition:
    """Parts of a proper score: calibration + refinement, or with uncertainty - discrimination."""

    score: float
    calibration: float
    refinement: float
    discrimination: float
    uncertainty: float

    def to_dict(self) -> dict[str, float | None]:
        """Return the parts as numbers, with None for infinite ones."""
        return {k: v if np.isfinite(v) else None for k, v in vars(self).items()}


def decompose(
    labels: Any,
    probs: Any,
    *,
    score: Score = "brier",
    target: Target | None = None,
    weights: Any = None,
    classes: Sequence[Any] | None = None,
) -> Decomposition:
    r"""Decompose a proper score of one binary problem by isotonic recalibration.

    With :math:`S` the mean score, :math:`S_c` that of the isotonic fit on the same rows and
    :math:`S_u` that of the constant event rate: calibration = :math:`S - S_c` (which a monotone map
    could remove), refinement = :math:`S_c`, discrimination = :math:`S_u - S_c`, uncertainty =
    :math:`S_u`. The fit uses the rows that it is evaluated on, so calibration is overestimated at
    small n.

    For two classes the score equals `brier` or `nll`. For more classes it does not: those score all
    probabilities of a row, this one only the largest, against "its class is the label".

    Parameters
    ----------
    labels : (n,) labels
    probs : (n,) P(positive) or (n, K)
    score : "brier", or "nll" for log loss
    target : "positive" (default for two classes) or "top-label" (default for more)
    weights : inverse inclusion probabilities
    classes : class names in column order, if labels are names

    Examples
    --------
    >>> parts = decompose([0, 0, 1, 1], [0.2, 0.2, 0.6, 0.6])
    >>> round(parts.score, 4), round(parts.calibration, 4), parts.refinement, parts.uncertainty
    (0.1, 0.1, 0.0, 0.25)

    References
    ----------
    Dimitriadis, Gneiting & Jordan (2021), PNAS 118(8).
    """
    if score not in get_args(Score):
        raise InputError(f"score must be 'brier' or 'nll', got {score!r}.")
    scored = as_scored_rows(labels, probs, weights=weights, classes=classes)
    return tally_decomposition(tally_target(scored, target), score)


def tally_decomposition(tally: Tally, score: Score) -> Decomposition:
    """Decompose the score of a tally; see `decompose`."""
    fitted = isotonic_rate(tally)
    constant = np.full_like(fitted, tally.event_rate)
    observed, best, worst = (_mean_score(tally, p, score) for p in (tally.score, fitted, constant))
    return Decomposition(observed, observed - best, best, worst - best, worst)


def isotonic_rate(tally: Tally) -> FloatArray:
    """Return the isotonic fit of the event rate at each score."""
    from scipy.optimize import isotonic_regression

    mass = np.where(tally.mass > 0, tally.mass, np.finfo(float).tiny)
    rate = np.clip(tally.hits / mass, 0.0, 1.0)
    return np.asarray(isotonic_regression(rate, weights=mass).x)


def _mean_score(tally: Tally, probs: FloatArray, score: Score) -> float:
    missed, hit = tally.weight[:, 0], tally.weight[:, 1]
    if score == "brier":
        return float((missed @ probs**2 + hit @ (1.0 - probs) ** 2) / tally.total)
    with np.errstate(divide="ignore", invalid="ignore"):
        parts = (
            np.where(missed > 0, -missed * np.log1p(-probs), 0.0),
            np.where(hit > 0, -hit * np.log(probs), 0.0),
        )
    return float((parts[0].sum() + parts[1].sum()) / tally.total)
