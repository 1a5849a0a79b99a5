"""Estimates of rates at given positions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from calibrant.inputs import FloatArray, IntArray
from calibrant.results import Interval
from calibrant.stats import clopper_pearson, wilson
from calibrant.thresholds.proof.ranked import RankedRows
from calibrant.thresholds.rates import Cost, Rate, RateValue


@dataclass(frozen=True)
class Measures:
    """Counts and rates when the first k rows are acted on."""

    rows: RankedRows  # the ranked rows
    positions: IntArray  # (M,) values of k

    def estimate(self, rate: Rate | Cost) -> FloatArray:
        """Return the rate at each position; NaN where no row meets its condition."""
        if isinstance(rate, Cost):
            return self._cost(rate)
        part, whole = self.parts(rate, power=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(part / whole)

    def value(self, rate: Rate, confidence: float) -> RateValue:
        """Return the rate at the only position, with its interval."""
        part, whole = (float(x[0]) for x in self.parts(rate, power=1))
        if whole == 0:
            return RateValue(None, None, 0)
        estimate = part / whole
        if self.rows.weight is None:
            span = clopper_pearson(part, whole, confidence=confidence)
            return RateValue(estimate, span, int(whole))
        n = whole**2 / float(self.parts(rate, power=2)[1][0])
        span = wilson(estimate * n, n, confidence=confidence)
        method = "Wilson at the effective number of rows, approximate"
        return RateValue(estimate, Interval(span.low, span.high, confidence, method), n)

    def parts(self, rate: Rate, power: int) -> tuple[FloatArray, FloatArray]:
        """Return the weight of the event within the condition, and of the condition."""
        positive, acted, acted_positive, total = self._sums(power)
        cell = {
            ("act", "positive"): acted_positive,
            ("act", "negative"): acted - acted_positive,
            ("pass", "positive"): positive - acted_positive,
            ("pass", "negative"): (total - acted) - (positive - acted_positive),
        }
        sides, labels = ("act", "pass"), ("positive", "negative")
        if rate.condition in sides:
            part = cell[rate.condition, rate.event]
            return part, cell[rate.condition, "positive"] + cell[rate.condition, "negative"]
        inside = labels if rate.condition == "all" else (rate.condition,)
        part = sum((cell[rate.event, label] for label in inside), np.zeros(len(self.positions)))
        whole = sum((cell[s, label] for s in sides for label in inside), np.zeros(1))
        return part, np.broadcast_to(whole, part.shape)

    def _cost(self, cost: Cost) -> FloatArray:
        positive, acted, acted_positive, total = self._sums(1)
        fp, fn, tp, tn = cost.matrix
        passed_positive = positive - acted_positive
        sums = (
            fp * (acted - acted_positive)
            + fn * passed_positive
            + tp * acted_positive
            + tn * ((total - acted) - passed_positive)
        )
        return np.asarray(sums / total)

    def _sums(self, power: int) -> tuple[float, FloatArray, FloatArray, float]:
        """Return the sums over positives, rows acted on, positives among those, and all rows."""
        if self.rows.weight is None:
            acted_positive = np.append(0, self.rows.hits)[self.positions].astype(np.float64)
            acted = self.positions.astype(np.float64)
            return float(self.rows.positives), acted, acted_positive, float(self.rows.n)
        everything, positive = self._running[power - 1]
        acted_positive, acted = positive[self.positions], everything[self.positions]
        return float(positive[-1]), acted, acted_positive, float(everything[-1])

    @cached_property
    def _running(self) -> list[tuple[FloatArray, FloatArray]]:
        """Running sums of weights and squared weights, of all rows and of positives."""
        assert self.rows.weight is not None
        sums_by_power: list[tuple[FloatArray, FloatArray]] = []
        for power in (1, 2):
            heavy: NDArray[np.float64] = self.rows.weight**power
            sums = (heavy, heavy * self.rows.event)
            sums_by_power.append((_running_sum(sums[0]), _running_sum(sums[1])))
        return sums_by_power


def _running_sum(values: FloatArray) -> FloatArray:
    return np.concatenate([[0.0], np.cumsum(values)])
