"""What the labelled rows of each rule must show, and at which share of the page's error."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from calibrant.bundle import Bundle, BundlePoint
from calibrant.bundle.points import Rule
from calibrant.bundle.versions.rule_marks import RulePosition
from calibrant.serving.console.pages.overview.audit import CONFIDENCE
from calibrant.thresholds import Band
from calibrant.thresholds.proof.certify import claim_of
from calibrant.thresholds.rates import Target

__all__ = ["COUNTS_RIGHT", "Limit", "is_promised", "is_told", "limits_of", "said_of"]

COUNTS_RIGHT = {"precision": True, "accuracy": True, "false_discovery": False}
"""Rates that acted decisions tell, and whether they count those that are right."""


@dataclass(frozen=True)
class Limit:
    """What a rule promises about the rows that it would act on.

    Parameters
    ----------
    least : share of them that must be right
    confidence : of the verdict about it, so that all verdicts of the page hold together
    """

    least: float
    confidence: float


def limits_of(bundle: Bundle) -> dict[RulePosition, Limit]:
    """Return the limit of each rule whose promise labels of acted decisions can tell.

    Each has its share of the error, whether or not labels came in about it: the shares must not
    move.
    """
    found = {
        (i, j): claim_of(target).least
        for i, each in enumerate(bundle.points)
        if not bundle.is_alternative(i)
        for _, rules in said_of(each)
        if is_promised(rules)
        for j, rule in rules.items()
        for target in rule.point.hold
        if is_told(rule, target)
    }
    confidence = 1 - (1 - CONFIDENCE) / max(1, len(found))
    return {place: Limit(least, confidence) for place, least in found.items()}


def is_told(rule: Rule, target: Target) -> bool:
    """Tell whether labels of rows that the rule acts on say something about a target."""
    return target.rate.name in COUNTS_RIGHT and not rule.clears


def is_promised(rules: Mapping[int, Rule]) -> bool:
    """Tell whether these rules keep a promise."""
    return all(rule.point.guarantee is not None for rule in rules.values())


def said_of(each: BundlePoint) -> Iterable[tuple[str, dict[int, Rule]]]:
    """Yield every sentence of a point with the rules that it is about, by their position."""
    rules = dict(enumerate(each.rules))
    if isinstance(each.result, Band):
        yield each.promises[0], rules
    else:
        yield from ((said, {j: rules[j]}) for j, said in enumerate(each.promises))
