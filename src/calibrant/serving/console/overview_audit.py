"""Whether acting is right: expected of every acted decision, audited where labels came in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from calibrant.bundle import Bundle, BundlePoint
from calibrant.bundle.points import Rule
from calibrant.reports.words import counted, percent
from calibrant.results import Interval
from calibrant.stats import clopper_pearson, wilson
from calibrant.store import ActedCount, AuditedCount
from calibrant.thresholds import Band, check_counts
from calibrant.thresholds.rates import Rate, Target

__all__ = [
    "CALIBRATED",
    "CONFIDENCE",
    "Acted",
    "Check",
    "Promise",
    "acted_of",
    "added",
    "believed",
    "may_overlap",
    "promises_of",
]

CONFIDENCE = 0.95
"""Of all intervals and verdicts of the page together."""

CALIBRATED = "calibration still holds"
"""What expected figures rest on, where the bundle has a calibrator."""

_TOLD = {"precision": True, "accuracy": True, "false_discovery": False}
"""Rates that acted decisions tell, and whether they count those that are right."""

_STATES = {"kept": "good", "broken": "bad"}
_BADGES = {"kept": "Kept", "broken": "Not kept", "undecidable": "Cannot be told yet"}


@dataclass(frozen=True)
class Acted:
    """Decisions to act on one class, or on all of them together.

    Parameters
    ----------
    name : the class they were acted on as; None for all together
    n, share : how many, and as a share of all predictions
    expected : mean calibrated probability of being right; None where there are no decisions
    audited, right : how many have a label, and of how many it is the class acted on
    interval : exact, of the share that is right; None without labels
    """

    name: str | None
    n: int
    share: float
    expected: float | None
    audited: int
    right: int
    interval: Interval | None

    @property
    def precision(self) -> float | None:
        """Share of the labelled decisions that is right."""
        return self.right / self.audited if self.audited else None

    @property
    def belied(self) -> bool:
        """Whether the labels contradict what was expected."""
        span = self.interval
        return (
            span is not None
            and self.expected is not None
            and not span.low <= self.expected <= span.high
        )

    @property
    def audit_words(self) -> str:
        """What labels say, as a sentence."""
        if self.interval is None:
            return "No label yet."
        ends = f"{percent(self.interval.low)} to {percent(self.interval.high)}"
        many = counted(self.audited, "labelled decision")
        sure = f"{self.interval.confidence * 100:.4g} % interval"
        return f"{self.right:,} of {many} right, {percent(self.precision)} ({sure} {ends})."


def acted_of(
    acted: Sequence[ActedCount], audited: Sequence[AuditedCount], total: int
) -> tuple[Acted, ...]:
    """Put what is expected of each class beside what labels say; the most frequent class first.

    Where several classes have labels, their intervals hold together with 95 % confidence.

    Parameters
    ----------
    acted : decisions to act, with the sum of their probabilities
    audited : decisions to act that have a label
    total : predictions of all kinds

    Examples
    --------
    >>> (found,) = acted_of([ActedCount("bad", 4, 3.6)], [AuditedCount("bad", 10, 9)], total=8)
    >>> found.expected, found.share
    (0.9, 0.5)
    >>> print(found.audit_words)
    9 of 10 labelled decisions right, 90.0 % (95 % interval 55.5 % to 99.7 %).
    """
    told = {each.acted_as: each for each in audited if each.n > 0}
    made = {each.acted_as: each for each in acted if each.n > 0}
    names = sorted({*made, *told}, key=lambda name: (-made[name].n if name in made else 0, name))
    found = []
    for name in names:
        n, prob = (made[name].n, made[name].prob) if name in made else (0, 0.0)
        count, right = (told[name].n, told[name].right) if name in told else (0, 0)
        found.append(_acted(name, n, prob, total, count, right, _level(len(told))))
    return tuple(found)


def added(acted: Sequence[Acted], total: int) -> Acted:
    """Return all acted decisions together, whatever their class.

    Parameters
    ----------
    acted : of each class
    total : predictions of all kinds

    Examples
    --------
    >>> both = acted_of([ActedCount("a", 3, 2.7), ActedCount("b", 1, 0.5)], [], total=8)
    >>> added(both, 8).expected, added(both, 8).n
    (0.8, 4)
    """
    prob = sum(each.expected * each.n for each in acted if each.expected is not None)
    audited, right = (sum(getattr(each, name) for each in acted) for name in ("audited", "right"))
    return _acted(None, sum(each.n for each in acted), prob, total, audited, right, _level(1))


def _acted(
    name: str | None, n: int, prob: float, total: int, audited: int, right: int, level: float
) -> Acted:
    span = clopper_pearson(right, audited, confidence=1 - level) if audited else None
    share, expected = n / total if total else 0.0, min(1.0, prob / n) if n else None
    return Acted(name, n, share, expected, audited, right, span)


def _level(among: int) -> float:
    """Return the error that each of several statements may have."""
    return (1 - CONFIDENCE) / max(1, among)


@dataclass(frozen=True)
class Check:
    """One target of a promise against the labels that came in.

    Parameters
    ----------
    target : what is promised
    acted : the decisions that it is about
    verdict : `kept`, `broken`, or `undecidable`; None without labels
    more : further labels that would decide it if the share stayed; None where none would
    believed : what the expected figure rests on
    """

    target: Target
    acted: Acted
    verdict: str | None
    more: int | None = None
    believed: str = CALIBRATED

    @property
    def state(self) -> str:
        """`good`, `bad` or `unknown`."""
        return _STATES.get(self.verdict or "", "unknown")

    @property
    def badge(self) -> str:
        """The verdict in words."""
        return _BADGES[self.verdict] if self.verdict else "Not audited yet"

    @property
    def sentences(self) -> list[str]:
        """What labels say, and what is expected."""
        found = [self.acted.audit_words] if self.verdict else []
        if self.verdict == "undecidable" and self.more is not None:
            found.append(f"About {counted(self.more, 'more label')} would decide if that stayed.")
        if self.acted.expected is None:
            return found or ["Nothing was acted on in this time."]
        good = _TOLD[self.target.rate.name]
        value = self.acted.expected if good else 1 - self.acted.expected
        rate = self.target.rate.title if isinstance(self.target.rate, Rate) else ""
        expected = f"Expected {rate}, if {self.believed}: {percent(value)}"
        if self.acted.belied:
            return [*found, f"{expected}; the labels say otherwise, so it does not hold."]
        lags = ", which does not meet the promise" if self._lags(value) else ""
        return [*found, f"{expected}{lags}."]

    def _lags(self, value: float) -> bool:
        """Whether what is expected misses the target by more than few decisions may by chance.

        Probabilities with a mean p spread no more than outcomes do, so Wilson's interval is wide
        enough.
        """
        span = wilson(value * self.acted.n, self.acted.n)
        return not self.target.met_by(span.high if self.target.sense == ">=" else span.low)


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
    bundle: Bundle, acted: Sequence[Acted], total: int, *, comparable: bool = True
) -> tuple[Promise, ...]:
    """Return every promise of a bundle; those that are not kept first, then as they were packed.

    Parameters
    ----------
    bundle : whose points promise something
    acted : decisions of this bundle to act, by class
    total : predictions of all kinds
    comparable : whether the decisions are those of this bundle alone; else nothing is checked
    """
    by_name = {each.name: each for each in acted} | {None: added(acted, total)}
    found = []
    for i, each in enumerate(bundle.points):
        on_request = bundle.is_alternative(i)
        for sentence, rules in _said(each):
            promised = all(rule.point.guarantee is not None for rule in rules)
            checked = rules if promised and comparable and not on_request else ()
            checks, unchecked = _checked(checked, by_name, believed(bundle))
            found.append(Promise(i, sentence, promised, on_request, checks, unchecked))
    return tuple(sorted(found, key=lambda each: (each.on_request, each.state != "bad")))


def _checked(
    rules: Sequence[Rule], by_name: Mapping[str | None, Acted], rests_on: str
) -> tuple[tuple[Check, ...], tuple[str, ...]]:
    """Return the targets that labels of acted decisions tell, and the others in words."""
    checks, unchecked = [], []
    for rule in rules:
        for target in rule.point.hold:
            if target.rate.name in _TOLD and not rule.clears:
                checks.append(_check(target, _about(rule, by_name), rests_on))
            else:
                unchecked.append(target.words)
    return tuple(checks), tuple(unchecked)


def believed(bundle: Bundle) -> str:
    """Say what must be true for the expected figures of a bundle to be."""
    return CALIBRATED if bundle.calibration is not None else "the model's own probabilities hold"


def may_overlap(bundle: Bundle) -> bool:
    """Tell whether two points may want to act on the same row, of which only one decides.

    A promise is about all rows that its point would act on. Above one half of the same scores only
    one class can lie.

    Parameters
    ----------
    bundle : whose points are asked, but for those that decide on request only
    """
    heard = [each for i, each in enumerate(bundle.points) if not bundle.is_alternative(i)]
    acting = [(each, rule) for each in heard for rule in each.rules if not rule.clears]
    if len(acting) < 2:
        return False
    alike = len({each.decides_on for each, _ in acting}) == 1
    return not alike or any(r.point.of is None or r.point.threshold <= 0.5 for _, r in acting)


def _said(each: BundlePoint) -> Iterable[tuple[str, tuple[Rule, ...]]]:
    """Yield every sentence of a point with the rules that it is about."""
    if isinstance(each.result, Band):
        yield each.promises[0], each.rules
    else:
        yield from ((said, (rule,)) for said, rule in zip(each.promises, each.rules, strict=True))


def _about(rule: Rule, by_name: Mapping[str | None, Acted]) -> Acted:
    of = None if rule.point.of is None else str(rule.point.of)
    return by_name.get(of) or Acted(of, 0, 0.0, None, 0, 0, None)


def _check(target: Target, acted: Acted, rests_on: str) -> Check:
    if acted.interval is None:
        return Check(target, acted, None, believed=rests_on)
    hits = acted.right if _TOLD[target.rate.name] else acted.audited - acted.right
    # Each side at half the level, so that the verdict is what the two-sided interval says.
    sure = (1 + acted.interval.confidence) / 2
    found = check_counts(target, hits, acted.audited, confidence=sure).checks[0]
    return Check(target, acted, found.verdict, found.more, rests_on)
