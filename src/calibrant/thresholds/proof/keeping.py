"""Screening of candidates: which of them hold all targets."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.inputs import FloatArray
from calibrant.results import Interval
from calibrant.stats import mean_upper_bound, switched_log_evidence
from calibrant.thresholds.measures import Measures
from calibrant.thresholds.proof.candidates import Candidates
from calibrant.thresholds.proof.certify import certify_positions
from calibrant.thresholds.proof.ranked import RankedRows
from calibrant.thresholds.rates import Cost, RateValue, Target


def certify_cost(
    rows: RankedRows, candidates: Candidates, target: Target, delta: float
) -> NDArray[np.bool_]:
    """Return for each fixed threshold whether its expected cost is certified below the limit.

    The thresholds do not depend on the rows; delta is split evenly among them.
    """
    assert isinstance(target.rate, Cost)
    level = delta / len(candidates.positions)
    evidence = _cost_evidence(rows, candidates, target.rate, target.value)
    return np.asarray(evidence >= -math.log(level))


def cost_bound(rows: RankedRows, cost: Cost, position: int, delta: float) -> float:
    """Return an upper bound of the expected cost at a threshold fixed beforehand."""
    values, weights = _costs_of_rows(rows, cost, position)
    low, high = min(cost.matrix), max(cost.matrix)
    return mean_upper_bound(
        values, low, high, delta=delta, weights=weights, largest_weight=rows.largest_weight
    )


def cost_value(rows: RankedRows, cost: Cost, position: int, confidence: float) -> RateValue:
    """Return the mean cost at a position, with a two-sided betting interval."""
    half = (1 - confidence) / 2
    values, weights = _costs_of_rows(rows, cost, position)
    low, high = min(cost.matrix), max(cost.matrix)
    options: dict[str, Any] = {"weights": weights, "largest_weight": rows.largest_weight}
    above = mean_upper_bound(values, low, high, delta=half, **options)
    below = -mean_upper_bound(-values, -high, -low, delta=half, **options)
    mean = float(Measures(rows, np.array([position])).estimate(cost)[0])
    n = rows.n if rows.weight is None else rows.weight.sum() ** 2 / (rows.weight**2).sum()
    return RateValue(mean, Interval(below, above, confidence, "bets on both sides"), float(n))


def _costs_of_rows(
    rows: RankedRows, cost: Cost, position: int
) -> tuple[FloatArray, FloatArray | None]:
    fp, fn, tp, tn = cost.matrix
    acted = np.arange(rows.n) < position
    values = np.where(acted, np.where(rows.event, tp, fp), np.where(rows.event, fn, tn))
    return values, rows.weight


def _cost_evidence(
    rows: RankedRows, candidates: Candidates, cost: Cost, limit: float
) -> FloatArray:
    """Return the log evidence that the mean cost is below the limit, at each position."""
    fp, fn, tp, tn = cost.matrix
    heavy = np.ones(rows.n) if rows.weight is None else rows.weight
    passed = heavy * (limit - np.where(rows.event, fn, tn))
    acted = heavy * (limit - np.where(rows.event, tp, fp))
    worst = rows.largest_weight * (limit - max(cost.matrix))
    return switched_log_evidence(passed, acted, candidates.positions, worst)


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
