"""Limits that labelled rows must show for each promise, and their share of the error."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from calibrant.bundle import Bundle, BundlePoint
from calibrant.bundle.points import Rule
from calibrant.bundle.versions.rule_marks import RulePosition
from calibrant.serving.console.pages.overview.audit import CONFIDENCE
from calibrant.thresholds import Band
from calibrant.thresholds.proof.certify import as_share_claim
from calibrant.thresholds.rates import Target

COUNTS_RIGHT = {"precision": True, "accuracy": True, "false_discovery": False}
"""Rates that labels of acted decisions estimate, and whether they count right decisions."""


@dataclass(frozen=True)
class PromiseLimit:
    """Promised lower bound for the rows that a rule would act on."""

    least: float  # smallest share of them that must be right
    confidence: float  # confidence of its verdict, such that all verdicts of the page hold together


def promise_limits(bundle: Bundle) -> dict[RulePosition, PromiseLimit]:
    """Return the limit of each rule whose promise can be audited from acted decisions.

    Each rule has its share of the error whether or not labels exist for it: the shares must not
    change over time.
    """
    limits = {
        (i, j): as_share_claim(target).least
        for i, each in enumerate(bundle.points)
        if not bundle.is_alternative(i)
        for _, rules in iter_promises(each)
        if is_promised(rules)
        for j, rule in rules.items()
        for target in rule.point.hold
        if is_auditable(rule, target)
    }
    confidence = 1 - (1 - CONFIDENCE) / max(1, len(limits))
    return {place: PromiseLimit(least, confidence) for place, least in limits.items()}


def is_auditable(rule: Rule, target: Target) -> bool:
    """Whether labels of rows that the rule acts on estimate the target."""
    return target.rate.name in COUNTS_RIGHT and not rule.clears


def is_promised(rules: Mapping[int, Rule]) -> bool:
    """Whether all of these rules carry a promise."""
    return all(rule.point.guarantee is not None for rule in rules.values())


def iter_promises(point: BundlePoint) -> Iterable[tuple[str, dict[int, Rule]]]:
    """Yield each promise of a point with its rules, by position."""
    rules = dict(enumerate(point.rules))
    if isinstance(point.result, Band):
        yield point.promises[0], rules
    else:
        yield from ((promise, {j: rules[j]}) for j, promise in enumerate(point.promises))
