"""Promises of a bundle, and whether labels show that they are kept."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from calibrant.bundle import Bundle
from calibrant.bundle.decision_rules import describe_rule
from calibrant.bundle.points import Rule
from calibrant.bundle.versions.rule_marks import RulePosition
from calibrant.formatting import format_count, percent
from calibrant.results import Interval
from calibrant.serving.console.pages.overview.audit import (
    CALIBRATED,
    ActedSummary,
    combine_acted,
    describe_assumption,
)
from calibrant.serving.console.pages.overview.limits import (
    COUNTS_RIGHT,
    is_auditable,
    is_promised,
    iter_promises,
    promise_limits,
)
from calibrant.serving.console.pages.overview.point_audit import PointAudit
from calibrant.stats import robbins, share_log_evidence, wilson
from calibrant.thresholds.after.target_check import find_further_rows
from calibrant.thresholds.proof.certify import as_share_claim
from calibrant.thresholds.rates import Rate, Target

_STATES = {"kept": "good", "broken": "bad"}
_BADGES = {"kept": "Kept", "broken": "Not kept", "undecidable": "Undecided"}
_MAX_LABELS = 10**7  # If more labels than this would be needed, no number is given


@dataclass(frozen=True)
class PromiseAudit:
    """One target of a promise, checked on all labels about its rows.

    The interval is anytime-valid, so a promise stays broken once the interval has been below it,
    until all labels together show that it is kept. However often the page is loaded, a kept promise
    is called broken with at most the allowed error probability.
    """

    target: Target  # target that is promised
    audit: PointAudit  # labelled rows that the point would act on
    interval: Interval | None  # interval of the share of them that is right; None without labels
    # decisions in the window that the promise is about; None if it also covers rows that another
    # point decided
    acted: ActedSummary | None
    assumption: str = CALIBRATED  # assumption behind the expected figure

    @property
    def verdict(self) -> str | None:
        """`kept`, `broken` or `undecidable`; None if withheld or without labels."""
        if self.interval is None or self.audit.without_logits:
            return None
        least = as_share_claim(self.target).least
        if self.interval.low >= least:
            return "kept"
        return "broken" if self.interval.high <= least or self.audit.broken else "undecidable"

    @property
    def labels_needed(self) -> int | None:
        """Further labels that would decide at the same share; None if no number would."""
        if self.verdict != "undecidable" or self.interval is None:
            return None
        return _labels_to_decide(
            self.audit, as_share_claim(self.target).least, 1 - self.interval.confidence
        )

    @property
    def state(self) -> str:
        """`good`, `bad` or `unknown`."""
        return _STATES.get(self.verdict or "", "unknown")

    @property
    def badge(self) -> str:
        """The verdict in words."""
        if self.audit.without_logits:
            return "Unknown"
        return _BADGES[self.verdict] if self.verdict else "Not audited yet"

    @property
    def sentences(self) -> list[str]:
        """What the labels show, and what is expected."""
        audited = self._audited_sentences()
        expected, n = self._expected()
        if expected is None:
            no_decisions = self.acted is not None and self.acted.n == 0
            return audited or [
                "No decisions to act in this time." if no_decisions else "No labels yet."
            ]
        good = COUNTS_RIGHT[self.target.rate.name]
        rate = self.target.rate.title if isinstance(self.target.rate, Rate) else ""
        value = expected if good else 1 - expected
        words = f"Expected {rate}, if {self.assumption}: {percent(value)}"
        if self.verdict and self._is_contradicted(expected):
            return [*audited, f"{words}; the labels contradict it, so it does not hold."]
        missed = ", which does not meet the promise" if self._misses(value, n) else ""
        return [*audited, f"{words}{missed}."]

    def _audited_sentences(self) -> list[str]:
        """Describe what the labels show."""
        audit, interval = self.audit, self.interval
        if audit.without_logits:
            many = format_count(audit.without_logits, "labelled prediction")
            were = "was" if audit.without_logits == 1 else "were"
            return [
                f"{many} of this point {were} stored without the logits of all classes, so it is "
                "not known whether it would act on them."
            ]
        if interval is None:
            return []
        since = "" if audit.since is None else f", since {audit.since:%Y-%m-%d}"
        ends = f"{percent(interval.low)} to {percent(interval.high)}"
        words = f"{interval.confidence * 100:.4g} % interval {ends}"
        many = format_count(audit.rows, "labelled row")
        sentences = [
            f"Right on {audit.right:,} of {many} that it would act on{since}: "
            f"{percent(audit.share)} ({words})."
        ]
        if self.verdict == "broken" and interval.high > as_share_claim(self.target).least:
            sentences.append("Earlier labels showed that it is not kept.")
        if self.labels_needed is not None:
            more = format_count(self.labels_needed, "more label")
            sentences.append(f"About {more} would decide at the same share.")
        return sentences

    def _expected(self) -> tuple[float | None, int]:
        """Return the expected share and its number of rows, of the labelled rows if any."""
        if self.interval is not None:
            return self.audit.expected, self.audit.rows
        return (None, 0) if self.acted is None else (self.acted.expected, self.acted.n)

    def _is_contradicted(self, expected: float) -> bool:
        """Whether the labels contradict the expected share of the same rows."""
        span = self.interval
        return span is not None and not span.low <= expected <= span.high

    def _misses(self, value: float, n: int) -> bool:
        """Whether the expected rate misses the target by more than chance.

        Probabilities with mean p vary no more than outcomes do, so Wilson's interval is wide
        enough.
        """
        span = wilson(value * n, n)
        return not self.target.met_by(span.high if self.target.sense == ">=" else span.low)


def _labels_to_decide(audit: PointAudit, least: float, error: float) -> int | None:
    """Return how many further labels decide at the same share; None if too many."""
    share = audit.right / audit.rows

    def decides(rows: int) -> bool:
        at = np.array(share * rows), np.array(float(rows)), np.array(least)
        return float(share_log_evidence(*at)) >= -math.log(error)

    return find_further_rows(audit.rows, decides, _MAX_LABELS)


@dataclass(frozen=True)
class Promise:
    """Promise of an operating point, and whether it is kept."""

    point: int  # position of the point in the bundle
    sentence: str  # the promise, or why there is none
    promised: bool  # whether there is one
    on_request: bool  # whether the point decides only when a request names it
    # checks of the targets that labels of acted decisions estimate
    checks: tuple[PromiseAudit, ...] = ()
    unchecked: tuple[str, ...] = ()  # other targets, in words
    rules: tuple[str, ...] = ()  # thresholds on the decision score, in words

    @property
    def state(self) -> str:
        """`bad` if a check is, `good` if all are, else `unknown`."""
        states = {check.state for check in self.checks}
        if "bad" in states:
            return "bad"
        return "good" if states == {"good"} and not self.unchecked else "unknown"


def check_promises(
    bundle: Bundle,
    audits: Mapping[RulePosition, PointAudit],
    acted: Sequence[ActedSummary],
    total: int,
    *,
    comparable: bool = True,
) -> tuple[Promise, ...]:
    """Return every promise of a bundle, broken ones first, then in packed order.

    All verdicts hold together with the confidence of the page; see `promise_limits`.
    """
    checker = _Checker(bundle, audits, acted, total)
    promises = []
    for i, each in enumerate(bundle.points):
        on_request = bundle.is_alternative(i)
        for sentence, rules in iter_promises(each):
            promised = is_promised(rules)
            checkable = rules if promised and comparable and not on_request else {}
            checks, unchecked = checker.check_rules(i, checkable)
            words = _rule_words(bundle, i, rules)
            promises.append(Promise(i, sentence, promised, on_request, checks, unchecked, words))
    return tuple(sorted(promises, key=lambda each: (each.on_request, each.state != "bad")))


def _rule_words(bundle: Bundle, position: int, rules: Mapping[int, Rule]) -> tuple[str, ...]:
    """Describe the thresholds of some rules of a point, by position in it."""
    described = [each.to_dict() for each in bundle.decision_rules if each.position == position]
    return tuple(f"{describe_rule(described[j])}." for j in rules)


class _Checker:
    """Check targets of rules, each at its share of the error."""

    def __init__(
        self,
        bundle: Bundle,
        audits: Mapping[RulePosition, PointAudit],
        acted: Sequence[ActedSummary],
        total: int,
    ) -> None:
        self._audits, self._assumption = audits, describe_assumption(bundle)
        self._acted = {each.name: each for each in acted} | {None: combine_acted(acted, total)}
        self._overlaps = may_overlap(bundle)
        self._limits = promise_limits(bundle)

    def check_rules(
        self, i: int, rules: Mapping[int, Rule]
    ) -> tuple[tuple[PromiseAudit, ...], tuple[str, ...]]:
        """Return checks of the auditable targets, and the other targets in words."""
        checks, unchecked = [], []
        for j, rule in rules.items():
            for target in rule.point.hold:
                if is_auditable(rule, target):
                    checks.append(self._check(rule, target, (i, j)))
                else:
                    unchecked.append(target.words)
        return tuple(checks), tuple(unchecked)

    def _check(self, rule: Rule, target: Target, place: RulePosition) -> PromiseAudit:
        audit, interval = self._audits.get(place, PointAudit()), None
        if audit.rows:
            interval = robbins(audit.right, audit.rows, confidence=self._limits[place].confidence)
        of = None if rule.point.of is None else str(rule.point.of)
        no_decisions = ActedSummary(of, 0, 0.0, None, 0, 0, None)
        acted = None if self._overlaps else self._acted.get(of, no_decisions)
        return PromiseAudit(target, audit, interval, acted, self._assumption)


def may_overlap(bundle: Bundle) -> bool:
    """Whether two points may act on the same row, which only one of them decides.

    A promise is about all rows that its point would act on. At most one class can be above one half
    of the same scores.
    """
    deciding = [each for i, each in enumerate(bundle.points) if not bundle.is_alternative(i)]
    acting = [(each, rule) for each in deciding for rule in each.rules if not rule.clears]
    if len(acting) < 2:
        return False
    same_scores = len({each.decides_on for each, _ in acting}) == 1
    return not same_scores or any(r.point.of is None or r.point.threshold <= 0.5 for _, r in acting)
