"""Promises of a bundle, and whether labels say that they are kept."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from calibrant.bundle import Bundle
from calibrant.bundle.points import Rule
from calibrant.bundle.versions.rule_marks import RulePosition
from calibrant.formatting import counted, percent
from calibrant.results import Interval
from calibrant.serving.console.pages.overview.audit import CALIBRATED, Acted, added, believed
from calibrant.serving.console.pages.overview.limits import (
    COUNTS_RIGHT,
    is_promised,
    is_told,
    limits_of,
    said_of,
)
from calibrant.serving.console.pages.overview.point_audit import PointAudit
from calibrant.stats import robbins, share_log_evidence, wilson
from calibrant.thresholds.after.target_check import more_than
from calibrant.thresholds.proof.certify import claim_of
from calibrant.thresholds.rates import Rate, Target

__all__ = ["Check", "Promise", "may_overlap", "promises_of"]

_STATES = {"kept": "good", "broken": "bad"}
_BADGES = {"kept": "Kept", "broken": "Not kept", "undecidable": "Cannot be told yet"}
_MOST = 10**7
"""Where more labels than this would be needed, none are said to decide."""


@dataclass(frozen=True)
class Check:
    """One target of a promise against all labels that came in about its rows.

    The interval holds at any time, so what it once said stays said: a promise is broken where the
    interval lies below it, or lay below it after any label before, until the labels of all that
    time say that it is kept. However often the page is looked at, a promise that is kept is called
    broken with no more than the error that is allowed.

    Parameters
    ----------
    target : what is promised
    audit : labelled rows that the point would act on
    interval : of the share of them that is right; None without labels
    acted : decisions of the chosen hours that the promise is about; None where it is about others
        too, that another point decided
    believed : what the expected figure rests on
    """

    target: Target
    audit: PointAudit
    interval: Interval | None
    acted: Acted | None
    believed: str = CALIBRATED

    @property
    def verdict(self) -> str | None:
        """`kept`, `broken`, or `undecidable`; None where it is withheld or nothing is labelled."""
        if self.interval is None or self.audit.lacking:
            return None
        least = claim_of(self.target).least
        if self.interval.low >= least:
            return "kept"
        return "broken" if self.interval.high <= least or self.audit.broken else "undecidable"

    @property
    def more(self) -> int | None:
        """Further labels that would decide it if the share stayed; None where none would."""
        if self.verdict != "undecidable" or self.interval is None:
            return None
        return _further(self.audit, claim_of(self.target).least, 1 - self.interval.confidence)

    @property
    def state(self) -> str:
        """`good`, `bad` or `unknown`."""
        return _STATES.get(self.verdict or "", "unknown")

    @property
    def badge(self) -> str:
        """The verdict in words."""
        if self.audit.lacking:
            return "Cannot be told"
        return _BADGES[self.verdict] if self.verdict else "Not audited yet"

    @property
    def sentences(self) -> list[str]:
        """What labels say, and what is expected."""
        found = self._audited()
        expected, n = self._expected()
        if expected is None:
            none = self.acted is not None and self.acted.n == 0
            return found or ["Nothing was acted on in this time." if none else "No label yet."]
        good = COUNTS_RIGHT[self.target.rate.name]
        rate = self.target.rate.title if isinstance(self.target.rate, Rate) else ""
        value = expected if good else 1 - expected
        words = f"Expected {rate}, if {self.believed}: {percent(value)}"
        if self.verdict and self._belied(expected):
            return [*found, f"{words}; the labels say otherwise, so it does not hold."]
        lags = ", which does not meet the promise" if self._lags(value, n) else ""
        return [*found, f"{words}{lags}."]

    def _audited(self) -> list[str]:
        """Say what the labels say."""
        audit, span = self.audit, self.interval
        if audit.lacking:
            many = counted(audit.lacking, "labelled prediction")
            return [
                f"{many} of this point {'is' if audit.lacking == 1 else 'are'} on record without "
                "the logits of all classes, so it is not known what it would do with them."
            ]
        if span is None:
            return []
        since = "" if audit.since is None else f", since {audit.since:%Y-%m-%d}"
        sure = f"{span.confidence * 100:.4g} % interval {percent(span.low)} to {percent(span.high)}"
        many = counted(audit.rows, "labelled row")
        found = [
            f"Right on {audit.right:,} of {many} that it would act on{since}: "
            f"{percent(audit.share)} ({sure})."
        ]
        if self.verdict == "broken" and span.high > claim_of(self.target).least:
            found.append("Earlier labels had shown that it is not kept.")
        if self.more is not None:
            found.append(f"About {counted(self.more, 'more label')} would decide if that stayed.")
        return found

    def _expected(self) -> tuple[float | None, int]:
        """Return what is expected, of the labelled rows where there are any, and of how many."""
        if self.interval is not None:
            return self.audit.expected, self.audit.rows
        return (None, 0) if self.acted is None else (self.acted.expected, self.acted.n)

    def _belied(self, expected: float) -> bool:
        """Whether the labels contradict what is expected of the same rows."""
        span = self.interval
        return span is not None and not span.low <= expected <= span.high

    def _lags(self, value: float, n: int) -> bool:
        """Whether what is expected misses the target by more than few decisions may by chance.

        Probabilities with a mean p spread no more than outcomes do, so Wilson's interval is wide
        enough.
        """
        span = wilson(value * n, n)
        return not self.target.met_by(span.high if self.target.sense == ">=" else span.low)


def _further(audit: PointAudit, least: float, error: float) -> int | None:
    """Return how many further labels decide if the share stays; None where too many would."""
    share = audit.right / audit.rows

    def decides(rows: int) -> bool:
        at = np.array(share * rows), np.array(float(rows)), np.array(least)
        return float(share_log_evidence(*at)) >= -math.log(error)

    return more_than(audit.rows, decides, _MOST)


@dataclass(frozen=True)
class Promise:
    """What an operating point promises, and whether it is kept.

    Parameters
    ----------
    point : its position in the bundle
    sentence : the promise, or why there is none
    promised : whether there is one
    on_request : whether it decides only where a request asks for it
    checks : of its targets that acted decisions tell
    unchecked : its other targets, in words
    """

    point: int
    sentence: str
    promised: bool
    on_request: bool
    checks: tuple[Check, ...] = ()
    unchecked: tuple[str, ...] = ()

    @property
    def state(self) -> str:
        """`bad` where a check is, `good` where all are, else `unknown`."""
        states = {check.state for check in self.checks}
        if "bad" in states:
            return "bad"
        return "good" if states == {"good"} and not self.unchecked else "unknown"


def promises_of(
    bundle: Bundle,
    audits: Mapping[RulePosition, PointAudit],
    acted: Sequence[Acted],
    total: int,
    *,
    comparable: bool = True,
) -> tuple[Promise, ...]:
    """Return every promise of a bundle; those that are not kept first, then as they were packed.

    All verdicts hold together with the confidence of the page; see `limits_of`.
    """
    checked = _Checked(bundle, audits, acted, total)
    found = []
    for i, each in enumerate(bundle.points):
        on_request = bundle.is_alternative(i)
        for sentence, rules in said_of(each):
            promised = is_promised(rules)
            asked = rules if promised and comparable and not on_request else {}
            checks, unchecked = checked.of(i, asked)
            found.append(Promise(i, sentence, promised, on_request, checks, unchecked))
    return tuple(sorted(found, key=lambda each: (each.on_request, each.state != "bad")))


class _Checked:
    """Checks targets of rules, each at its share of the error."""

    def __init__(
        self,
        bundle: Bundle,
        audits: Mapping[RulePosition, PointAudit],
        acted: Sequence[Acted],
        total: int,
    ) -> None:
        self._audits, self._believed = audits, believed(bundle)
        self._acted = {each.name: each for each in acted} | {None: added(acted, total)}
        self._overlaps = may_overlap(bundle)
        self._limits = limits_of(bundle)

    def of(self, i: int, rules: Mapping[int, Rule]) -> tuple[tuple[Check, ...], tuple[str, ...]]:
        """Return the targets that labels of acted decisions tell, and the others in words."""
        checks, unchecked = [], []
        for j, rule in rules.items():
            for target in rule.point.hold:
                if is_told(rule, target):
                    checks.append(self._check(rule, target, (i, j)))
                else:
                    unchecked.append(target.words)
        return tuple(checks), tuple(unchecked)

    def _check(self, rule: Rule, target: Target, place: RulePosition) -> Check:
        audit, span = self._audits.get(place, PointAudit()), None
        if audit.rows:
            span = robbins(audit.right, audit.rows, confidence=self._limits[place].confidence)
        of = None if rule.point.of is None else str(rule.point.of)
        none = Acted(of, 0, 0.0, None, 0, 0, None)
        acted = None if self._overlaps else self._acted.get(of, none)
        return Check(target, audit, span, acted, self._believed)


def may_overlap(bundle: Bundle) -> bool:
    """Tell whether two points may want to act on the same row, of which only one decides.

    A promise is about all rows that its point would act on. Above one half of the same scores only
    one class can lie.
    """
    heard = [each for i, each in enumerate(bundle.points) if not bundle.is_alternative(i)]
    acting = [(each, rule) for each in heard for rule in each.rules if not rule.clears]
    if len(acting) < 2:
        return False
    alike = len({each.decides_on for each, _ in acting}) == 1
    return not alike or any(r.point.of is None or r.point.threshold <= 0.5 for _, r in acting)
