"""Which positions keep a target, with a chance of at most delta that any of them does not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from calibrant.inputs import IntArray
from calibrant.stats import running_log_evidence, switched_log_evidence
from calibrant.thresholds.proof.ranked import Ranked
from calibrant.thresholds.proof.walk import binomial_passes, walk
from calibrant.thresholds.rates import Rate, Target

__all__ = ["Claim", "certified", "claim_of"]

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Claim:
    """A target in one of two forms, so that each needs one proof.

    Either "of the rows on this side, at least `least` are positive (or not)", which needs the walk,
    or "of this group, at least (at most) `least` are acted on", which is monotone in the threshold.

    Parameters
    ----------
    among : the side (`act`, `pass`) or the group (`positive`, `negative`, `all`)
    event : what is counted: `positive` or `negative` on a side, `act` or `pass` in a group
    least : the share that it must reach
    """

    among: Literal["act", "pass", "positive", "negative", "all"]
    event: Literal["act", "pass", "positive", "negative"]
    least: float

    def says_the_same_as(self, rate: Rate) -> bool:
        """Whether a rate is this share, or one minus it."""
        return self.among == rate.given and rate.event in (self.event, _OPPOSITE[self.event])

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


def claim_of(target: Target) -> Claim:
    """Write a target as "at least": at most 15 % wrong is at least 85 % right.

    Examples
    --------
    >>> from calibrant.thresholds.rates import false_discovery, fpr
    >>> claim_of(false_discovery <= 0.15)
    Claim(among='act', event='positive', least=0.85)
    >>> claim_of(fpr <= 0.25)
    Claim(among='negative', event='pass', least=0.75)
    """
    rate = target.rate
    if not isinstance(rate, Rate):
        raise TypeError("a cost is no share")
    if target.sense == ">=":
        return Claim(rate.given, rate.event, target.value)
    # Subtraction leaves a digit of rubbish that would show in reports and shift plans.
    return Claim(rate.given, _OPPOSITE[rate.event], round(1 - target.value, 15))


def certified(rows: Ranked, target: Target, delta: float) -> Mask:
    """Say of each of `rows.ends` whether acting on the rows before it keeps the target.

    With probability at least 1 - delta all that are certified do, so that any of them may be
    taken, by whatever rule.
    """
    claim = claim_of(target)
    if not claim.on_a_side:
        return _shares_of_group(rows, claim, delta)
    event = rows.event if claim.event == "positive" else ~rows.event
    weight = rows.weight
    if claim.among == "pass":  # the same walk, from the lowest score upwards
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
    found = np.zeros(len(rows.ends), dtype=bool)
    for first, last in walk(rows.n, claim.least, delta, passes):
        found |= (taken >= first) & (taken <= last)
    return found


def _shares_of_group(rows: Ranked, claim: Claim, delta: float) -> Mask:
    """Certify a share of a fixed group: it only moves one way with the threshold."""
    group = {"positive": rows.event, "negative": ~rows.event}.get(claim.among)
    inside = np.ones(rows.n, dtype=bool) if group is None else group
    if rows.weight is not None:
        return _weighted_shares(rows, inside, claim, delta)
    size = int(inside.sum())
    acted = np.cumsum(inside)[rows.ends - 1]
    counted = acted if claim.event == "act" else size - acted
    return np.asarray(counted >= _fewest_hits(size, claim.least, delta))


def _fewest_hits(n: int, least: float, delta: float) -> int:
    """Return the smallest h with P(Bin(n, least) >= h) <= delta; n + 1 where there is none."""
    from scipy.special import betainc

    low, high = 0, n + 1  # P(>= 0) = 1 fails; n + 1 can never be reached
    while high - low > 1:
        middle = (low + high) // 2
        passed = betainc(middle, n - middle + 1, least) <= delta
        low, high = (low, middle) if passed else (middle, high)
    return high


def _weighted_shares(rows: Ranked, inside: Mask, claim: Claim, delta: float) -> Mask:
    """Certify the weighted share of a group by bets, at all positions at once."""
    assert rows.weight is not None  # the caller looked
    heavy = np.where(inside, rows.weight, 0.0)
    hit, miss = heavy * (1 - claim.least), -heavy * claim.least
    passed, acted = (miss, hit) if claim.event == "act" else (hit, miss)
    worst = -claim.least * rows.largest_weight
    evidence = switched_log_evidence(passed, acted, rows.ends, worst)
    return np.asarray(evidence >= -np.log(delta))
