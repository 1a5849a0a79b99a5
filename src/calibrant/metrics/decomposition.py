"""How much of a proper score is calibration and how much is refinement (CORP)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from calibrant.errors import InputError
from calibrant.inputs import FloatArray, Target, as_scored
from calibrant.metrics.problem import one_tally
from calibrant.metrics.tally import Tally

__all__ = ["Decomposition", "decompose", "tally_decomposition"]

Score = Literal["brier", "nll"]


@dataclass(frozen=True)
class Decomposition:
    """score = calibration + refinement, and refinement = uncertainty - discrimination."""

    score: float
    calibration: float
    refinement: float
    discrimination: float
    uncertainty: float

    def to_dict(self) -> dict[str, float | None]:
        """Return plain numbers; an infinite one becomes None."""
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
    r"""Split a proper score of one binary problem with the best monotone recalibration.

    With :math:`S` the mean score, :math:`S_c` that of the isotonic fit on the same rows and
    :math:`S_u` that of the constant event rate: calibration = :math:`S - S_c` (what a monotone
    map could repair), refinement = :math:`S_c`, discrimination = :math:`S_u - S_c`, uncertainty =
    :math:`S_u`. The fit sees the rows it is judged on, so calibration is optimistic (too large)
    at small n.

    For two classes the score is `brier` or `nll`. For more classes it is not: these judge all
    probabilities of a row, this one the largest against "its class is the label".

    Parameters
    ----------
    labels : (n,) labels
    probs : (n,) P(positive) or (n, K)
    score : "brier", or "nll" for log loss
    target : "positive" (default for two classes) or "top-label" (default for more)
    weights : inverse inclusion probabilities
    classes : names behind the columns, when labels are names

    Examples
    --------
    >>> found = decompose([0, 0, 1, 1], [0.2, 0.2, 0.6, 0.6])
    >>> round(found.score, 4), round(found.calibration, 4), found.refinement, found.uncertainty
    (0.1, 0.1, 0.0, 0.25)

    References
    ----------
    Dimitriadis, Gneiting & Jordan (2021), PNAS 118(8).
    """
    if score not in get_args(Score):
        raise InputError(f"score must be 'brier' or 'nll', got {score!r}.")
    scored = as_scored(labels, probs, weights=weights, classes=classes)
    return tally_decomposition(one_tally(scored, target), score)


def tally_decomposition(tally: Tally, score: Score) -> Decomposition:
    """Split the score of a tally; see `decompose`."""
    fitted = isotonic_rate(tally)
    constant = np.full_like(fitted, tally.event_rate)
    found, best, worst = (_mean_score(tally, p, score) for p in (tally.score, fitted, constant))
    return Decomposition(found, found - best, best, worst - best, worst)


def isotonic_rate(tally: Tally) -> FloatArray:
    """Return the rising event rate that fits best, at each score."""
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
