"""How much of a proper score is calibration and how much is refinement (CORP)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from calibrant.inputs import FloatArray
from calibrant.metrics.tally import Tally

__all__ = ["Decomposition", "decompose"]

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


def decompose(tally: Tally, score: Score = "brier") -> Decomposition:
    r"""Split a proper score of one binary problem with the best monotone recalibration.

    With :math:`S` the mean score, :math:`S_c` that of the isotonic fit on the same rows and
    :math:`S_u` that of the constant event rate: calibration = :math:`S - S_c` (what a monotone
    map could repair), refinement = :math:`S_c`, discrimination = :math:`S_u - S_c`, uncertainty =
    :math:`S_u`. The fit sees the rows it is judged on, so calibration is optimistic (too large)
    at small n.

    Examples
    --------
    >>> from calibrant.metrics.tally import tally_rows
    >>> tally = tally_rows(np.array([0.2, 0.2, 0.6, 0.6]), np.array([0, 0, 1, 1]) == 1)
    >>> found = decompose(tally)
    >>> round(found.score, 4), round(found.calibration, 4), found.refinement, found.uncertainty
    (0.1, 0.1, 0.0, 0.25)

    References
    ----------
    Dimitriadis, Gneiting & Jordan (2021), PNAS 118(8).
    """
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
