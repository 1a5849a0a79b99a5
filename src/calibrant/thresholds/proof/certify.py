"""Certification of positions: all of them keep a target, except with probability delta."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from calibrant.inputs import IntArray
from calibrant.stats import running_log_evidence, switched_log_evidence
from calibrant.thresholds.proof.ranked import RankedRows
from calibrant.thresholds.proof.walk import binomial_passes, walk
from calibrant.thresholds.rates import Rate, Target

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class ShareClaim:
    """A target rewritten as a lower bound on a share.

    Either "at least `least` of the rows on this side are positive (or negative)", which needs the
    walk, or "at least `least` of this group are acted on (or passed over)", which is monotone in
    the threshold.
    """

    # the side (`act`, `pass`) or the group (`positive`, `negative`, `all`)
    among: Literal["act", "pass", "positive", "negative", "all"]
    # the counted event: `positive` or `negative` on a side, `act` or `pass` in a group
    event: Literal["act", "pass", "positive", "negative"]
    least: float  # lower bound of the share

    def matches_rate(self, rate: Rate) -> bool:
        """Whether a rate is this share or its complement."""
        return self.among == rate.condition and rate.event in (self.event, _OPPOSITE[self.event])

    @property
    def on_a_side(self) -> bool:
        """Whether the share is among rows chosen by the threshold."""
        return self.among in ("act", "pass")


_OPPOSITE: dict[str, Literal["act", "pass", "positive", "negative"]] = {
    "positive": "negative",
    "negative": "positive",
    "act": "pass",
    "pass": "act",
}


def as_share_claim(target: Target) -> ShareClaim:
    """Rewrite a target as a lower bound: at most 15 % wrong is at least 85 % right."""
    rate = target.rate
    if not isinstance(rate, Rate):
        raise TypeError("a cost is not a share")
    if target.sense == ">=":
        return ShareClaim(rate.condition, rate.event, target.value)
    # Round away the floating-point error: it would show in reports and shift the starts.
    return ShareClaim(rate.condition, _OPPOSITE[rate.event], round(1 - target.value, 15))


def certify_positions(rows: RankedRows, target: Target, delta: float) -> Mask:
    """Return for each of `rows.ends` whether acting on the rows before it keeps the target.

    With probability at least 1 - delta all certified positions keep it, so any of them may be
    chosen, by any rule.
    """
    claim = as_share_claim(target)
    if not claim.on_a_side:
        return _certify_group_share(rows, claim, delta)
    event = rows.event if claim.event == "positive" else ~rows.event
    weight = rows.weight
    if claim.among == "pass":  # the same walk, upwards from the lowest score
        event, weight = event[::-1], None if weight is None else weight[::-1]
    if weight is None:
        passes = binomial_passes(np.cumsum(event), claim.least)
    else:
        evidence = running_log_evidence(
            weight * (event - claim.least), -claim.least * rows.largest_weight
        )

        def passes(positions: IntArray, level: float) -> Mask:
            return np.asarray(evidence[positions - 1] >= -np.log(level))

    taken = rows.ends if claim.among == "act" else rows.n - rows.ends
    mask = np.zeros(len(rows.ends), dtype=bool)
    for first, last in walk(rows.n, claim.least, delta, passes):
        mask |= (taken >= first) & (taken <= last)
    return mask


def _certify_group_share(rows: RankedRows, claim: ShareClaim, delta: float) -> Mask:
    """Certify a share of a fixed group, which is monotone in the threshold."""
    group = {"positive": rows.event, "negative": ~rows.event}.get(claim.among)
    inside = np.ones(rows.n, dtype=bool) if group is None else group
    if rows.weight is not None:
        return _certify_weighted_share(rows, inside, claim, delta)
    size = int(inside.sum())
    acted = np.cumsum(inside)[rows.ends - 1]
    counted = acted if claim.event == "act" else size - acted
    return np.asarray(counted >= _fewest_hits(size, claim.least, delta))


def _fewest_hits(n: int, least: float, delta: float) -> int:
    """Return the smallest h with P(Bin(n, least) >= h) <= delta; n + 1 if there is none."""
    from scipy.special import betainc

    low, high = 0, n + 1  # P(>= 0) = 1 fails; n + 1 can never be reached
    while high - low > 1:
        middle = (low + high) // 2
        passed = betainc(middle, n - middle + 1, least) <= delta
        low, high = (low, middle) if passed else (middle, high)
    return high


def _certify_weighted_share(
    rows: RankedRows, inside: Mask, claim: ShareClaim, delta: float
) -> Mask:
    """Certify the weighted share of a group by betting, at all positions at once."""
    assert rows.weight is not None
    heavy = np.where(inside, rows.weight, 0.0)
    hit, miss = heavy * (1 - claim.least), -heavy * claim.least
    passed, acted = (miss, hit) if claim.event == "act" else (hit, miss)
    worst = -claim.least * rows.largest_weight
    evidence = switched_log_evidence(passed, acted, rows.ends, worst)
    return np.asarray(evidence >= -np.log(delta))
