"""Screening of candidates: which of them hold all targets."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from calibrant.thresholds.measures import Measures
from calibrant.thresholds.proof.candidates import Candidates
from calibrant.thresholds.proof.certify import certify_positions
from calibrant.thresholds.proof.expected_cost import certify_cost
from calibrant.thresholds.proof.ranked import RankedRows
from calibrant.thresholds.rates import Cost, Target


def screen_candidates(
    rows: RankedRows, candidates: Candidates, targets: tuple[Target, ...], delta: float | None
) -> NDArray[np.bool_]:
    """Return a mask of the candidates that hold all targets; by their estimates if delta is None.

    Each of T targets gets delta / T. At a threshold fixed beforehand the largest p-value would be
    enough, but here the data choose where each target is tested.
    """
    holds = np.asarray(candidates.positions <= rows.last)
    for target in targets:
        if delta is None:
            holds &= estimates_meet(rows, candidates, target)
        elif isinstance(target.rate, Cost):
            holds &= certify_cost(rows, candidates, target, delta / len(targets))
        else:
            holds &= candidates.translate_mask(
                rows, certify_positions(rows, target, delta / len(targets))
            )
    return holds


def estimates_meet(rows: RankedRows, candidates: Candidates, target: Target) -> NDArray[np.bool_]:
    """Return a mask of the candidates whose estimate exists and meets the target."""
    value = Measures(rows, candidates.positions).estimate(target.rate)
    return np.asarray(value >= target.value if target.sense == ">=" else value <= target.value)
