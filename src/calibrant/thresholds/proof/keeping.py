"""Which candidates hold all targets at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from calibrant.thresholds.measures import Measures
from calibrant.thresholds.proof.candidates import Candidates
from calibrant.thresholds.proof.certify import certified
from calibrant.thresholds.proof.expected_cost import cost_certified
from calibrant.thresholds.proof.ranked import Ranked
from calibrant.thresholds.rates import Cost, Target

__all__ = ["estimates_meet", "kept_candidates"]


def kept_candidates(
    rows: Ranked, found: Candidates, targets: tuple[Target, ...], delta: float | None
) -> NDArray[np.bool_]:
    """Say which candidates hold all targets: certified, or by their estimates where delta is None.

    Each of T targets gets delta / T. The largest of their p-values would do at a threshold that
    was fixed beforehand, but here the data choose where each target is put to the test.
    """
    kept = np.asarray(found.positions <= rows.last)
    for target in targets:
        if delta is None:
            kept &= estimates_meet(rows, found, target)
        elif isinstance(target.rate, Cost):
            kept &= cost_certified(rows, found, target, delta / len(targets))
        else:
            kept &= found.of_ends(rows, certified(rows, target, delta / len(targets)))
    return kept


def estimates_meet(rows: Ranked, found: Candidates, target: Target) -> NDArray[np.bool_]:
    """Say at which candidates the estimate meets the target; where there is none it does not."""
    value = Measures(rows, found.positions).estimate(target.rate)
    return np.asarray(value >= target.value if target.sense == ">=" else value <= target.value)
