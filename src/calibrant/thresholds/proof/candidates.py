"""Candidate thresholds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibrant.convert import probs_from_logits
from calibrant.inputs import FloatArray, IntArray
from calibrant.thresholds.proof.question import Threshold, ThresholdProblem
from calibrant.thresholds.proof.ranked import RankedRows
from calibrant.thresholds.rates import Cost

FIXED_LOG_ODDS = np.arange(-12.0, 12.5, 0.5)
"""Data-independent thresholds, for expected costs, which cannot be certified by a walk."""


@dataclass(frozen=True)
class Candidates:
    """Candidate thresholds and their positions."""

    positions: IntArray  # (M,) number of rows acted on
    # (M,) probabilities fixed beforehand; None where they lie between observed scores
    thresholds: FloatArray | None = None

    def translate_mask(self, rows: RankedRows, mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Translate a mask over `rows.ends` into a mask over these candidates."""
        if self.thresholds is None:
            return mask
        index = np.searchsorted(rows.ends, self.positions)
        return np.asarray(mask[index] & (self.positions > 0))

    def threshold_at(self, problem: ThresholdProblem, index: int) -> Threshold:
        """Return the threshold of one candidate."""
        if self.thresholds is None:
            return problem.threshold_at(int(self.positions[index]))
        return problem.fixed_threshold(float(self.thresholds[index]))


def candidates_at_ends(problem: ThresholdProblem) -> Candidates:
    """Return one candidate for each distinct split of the rows."""
    return Candidates(problem.rows.ends)


def fixed_candidates(problem: ThresholdProblem, cost: Cost) -> Candidates:
    """Return data-independent thresholds, including the optimum for calibrated scores."""
    fixed = np.unique(np.append(probs_from_logits(FIXED_LOG_ODDS), cost.baseline))
    return Candidates(np.array([problem.position_of(t) for t in fixed]), fixed)
