"""Check of one target on later rows: kept, broken, or undecidable at this n."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from calibrant.inputs import FloatArray
from calibrant.results import Interval
from calibrant.stats import clopper_pearson, mean_upper_bound
from calibrant.stats.betting import bets_against, mean_of_bets
from calibrant.thresholds.proof.certify import as_share_claim
from calibrant.thresholds.rates import Cost, Target

TransferVerdict = Literal["kept", "broken", "undecidable"]

MOST_ROWS = 10**9  # Beyond this many rows, the estimate counts as too near the target

_ROWS = {
    "act": "rows acted on",
    "pass": "rows passed over",
    "positive": "positive rows",
    "negative": "other rows",
    "all": "rows",
}


@dataclass(frozen=True)
class TargetCheck:
    """Check of one target on later rows.

    Parameters
    ----------
    target : the promised target
    verdict : `kept`, `broken`, or `undecidable` at this n
    value : the rate (or mean cost) on the later rows; None if no row meets its condition
    interval : two-sided, at this target's share of the confidence
    n : rows that meet the condition
    p_kept : p-value of the opposite of the target; small means kept
    p_broken : p-value of the target; small means broken
    more : further rows of that condition that would decide it at the same estimate; None if it is
        decided, or if no number of rows would decide it
    """

    target: Target
    verdict: TransferVerdict
    value: float | None
    interval: Interval | None
    n: int
    p_kept: float
    p_broken: float
    more: int | None = None

    @property
    def rows(self) -> str:
        """The counted rows, in words."""
        return "rows" if isinstance(self.target.rate, Cost) else _ROWS[self.target.rate.condition]

    @property
    def text(self) -> str:
        """The result as a clause, without a full stop."""
        if self.value is None or self.interval is None:
            return f"it is unknown whether {self.target.words}: there are no {self.rows}"
        shown = [self._format(v) for v in (self.value, self.interval.low, self.interval.high)]
        evidence = f"{shown[0]} on {self.n:,} {self.rows}, interval {shown[1]} to {shown[2]}"
        if self.verdict == "kept":
            return f"{self.target.words} ({evidence})"
        if self.verdict == "broken":
            return f"it is false that {self.target.words} ({evidence})"
        return f"it is undecided whether {self.target.words} ({evidence}; {self._what_decides()})"

    def _what_decides(self) -> str:
        if self.more is None:
            return "the estimate is too near the target for any number of rows to decide it"
        return f"about {self.more:,} more {self.rows} would decide it at the same estimate"

    def _format(self, value: float) -> str:
        """Format a value with as many digits as the target needs."""
        limit = self.target.value
        if isinstance(self.target.rate, Cost):
            return f"{value:.4g}"
        return f"{value * 100:.{math.ceil(-math.log10(min(limit, 1 - limit)))}f} %"

    def to_dict(self) -> dict[str, Any]:
        """Return the stable JSON shape."""
        span = self.interval
        return {
            "target": str(self.target),
            "verdict": self.verdict,
            "value": self.value,
            "low": None if span is None else span.low,
            "high": None if span is None else span.high,
            "interval_method": None if span is None else span.method,
            "n": self.n,
            "p_kept": self.p_kept,
            "p_broken": self.p_broken,
            "more": self.more,
        }


def check_share(target: Target, hits: int, n: int, level: float) -> TargetCheck:
    """Test a share by the exact binomial test, `hits` events among `n` rows of the condition."""
    if n == 0:
        return TargetCheck(target, "undecidable", None, None, 0, 1.0, 1.0)
    least = as_share_claim(target).least
    good = hits if target.sense == ">=" else n - hits
    p_kept, p_broken = _tails(good, n, least)
    verdict = _verdict(p_kept, p_broken, level)
    more = _further_rows(good, n, least, level) if verdict == "undecidable" else None
    span = clopper_pearson(hits, n, confidence=1 - level)
    return TargetCheck(target, verdict, hits / n, span, n, p_kept, p_broken, more)


def check_mean(
    target: Target, values: FloatArray, weights: FloatArray, largest: float, level: float
) -> TargetCheck:
    """Test a weighted mean, of a cost or of an event (0 or 1), by betting."""
    if not len(values):
        return TargetCheck(target, "undecidable", None, None, 0, 1.0, 1.0)
    costs = target.rate.matrix if isinstance(target.rate, Cost) else (0.0, 1.0)
    low, high, limit = min(costs), max(costs), target.value
    over = _Bets(weights * (values - limit), largest * (low - limit))
    under = _Bets(weights * (limit - values), largest * (limit - high))
    good, bad = (over, under) if target.sense == ">=" else (under, over)
    verdict = _verdict(good.p_value, bad.p_value, level)
    value = float(np.average(values, weights=weights))
    toward = good if target.met_by(value) else bad
    more = toward.further_rows(len(values), level) if verdict == "undecidable" else None
    heavy: dict[str, Any] = {"weights": weights, "largest_weight": largest, "delta": level / 2}
    below = -mean_upper_bound(-values, -high, -low, **heavy)
    above = mean_upper_bound(values, low, high, **heavy)
    span = Interval(below, above, 1 - level, "bets on the mean")
    return TargetCheck(target, verdict, value, span, len(values), good.p_value, bad.p_value, more)


def _verdict(p_kept: float, p_broken: float, level: float) -> TransferVerdict:
    return "kept" if p_kept <= level else "broken" if p_broken <= level else "undecidable"


def _tails(good: int, n: int, least: float) -> tuple[float, float]:
    """Return P(Bin(n, least) >= good) and P(Bin(n, least) <= good)."""
    from scipy.special import bdtr, bdtrc

    above = 1.0 if good == 0 else float(bdtrc(good - 1, n, least))
    return above, float(bdtr(good, n, least))


def _further_rows(good: int, n: int, least: float, level: float) -> int | None:
    """Return how many further rows decide a share at the same estimate, rounded up."""
    if math.isclose(good / n, least, rel_tol=1e-12):
        return None

    def decides(rows: int) -> bool:
        if good > least * n:
            return _tails(good * rows // n, rows, least)[0] <= level
        return _tails(-(-good * rows // n), rows, least)[1] <= level

    return find_further_rows(n, decides)


def find_further_rows(n: int, decides: Callable[[int], bool], most: int = MOST_ROWS) -> int | None:
    """Return the smallest number of rows beyond n that decides, for a monotone `decides`."""
    low, high = n, 2 * n
    while not decides(high):
        low, high = high, 2 * high
        if high > most:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if decides(middle) else (middle, high)
    return high - n


class _Bets:
    """Betting evidence that gains have a positive mean, and its growth."""

    def __init__(self, gains: FloatArray, worst: float) -> None:
        self.sums = np.array([np.log1p(bet * gains).sum() for bet in bets_against(worst)])

    def log_evidence(self, times: float = 1.0) -> float:
        """Return the log evidence of the same rows repeated `times` times."""
        return float(mean_of_bets(times * self.sums))

    @property
    def p_value(self) -> float:
        """P-value of the evidence, by Markov's inequality."""
        return min(1.0, math.exp(-self.log_evidence()))

    def further_rows(self, n: int, level: float) -> int | None:
        """Return how many further rows like these n make the evidence large enough."""
        return find_further_rows(n, lambda rows: self.log_evidence(rows / n) >= -math.log(level))
