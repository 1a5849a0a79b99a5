"""The thresholds that are looked at."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibrant.convert import probs_from_logits
from calibrant.inputs import FloatArray, IntArray
from calibrant.thresholds.proof.question import Question, Threshold
from calibrant.thresholds.proof.ranked import Ranked
from calibrant.thresholds.rates import Cost

__all__ = ["Candidates", "candidates_at_ends", "fixed_candidates"]

FIXED_LOG_ODDS = np.arange(-12.0, 12.5, 0.5)
"""Thresholds that are known before any row is seen, for means that have no walk."""


@dataclass(frozen=True)
class Candidates:
    """Thresholds, and the position of each.

    Parameters
    ----------
    positions : (M,) rows acted on
    thresholds : (M,) probabilities that were fixed beforehand; None: between the rows' own scores
    """

    positions: IntArray
    thresholds: FloatArray | None = None

    def of_ends(self, rows: Ranked, mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Translate what is said of `rows.ends` into what is said of these candidates."""
        if self.thresholds is None:
            return mask
        place = np.searchsorted(rows.ends, self.positions)
        return np.asarray(mask[place] & (self.positions > 0))

    def threshold(self, question: Question, chosen: int) -> Threshold:
        """Return the chosen threshold."""
        if self.thresholds is None:
            return question.threshold_at(int(self.positions[chosen]))
        return question.fixed_threshold(float(self.thresholds[chosen]))


def candidates_at_ends(question: Question) -> Candidates:
    """Return every threshold that tells the rows apart in another way."""
    return Candidates(question.rows.ends)


def fixed_candidates(question: Question, cost: Cost) -> Candidates:
    """Return a list of thresholds that depends on no row, the best for calibrated scores in it."""
    fixed = np.unique(np.append(probs_from_logits(FIXED_LOG_ODDS), cost.baseline))
    return Candidates(np.array([question.position_of(t) for t in fixed]), fixed)
