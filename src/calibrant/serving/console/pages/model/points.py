"""Promises of a bundle and their checks on the test rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from calibrant.bundle import Bundle, BundlePoint
from calibrant.bundle.points import Rule
from calibrant.formatting import format_count, printable, sentence
from calibrant.reports.threshold.text import acting_rule, clearing_rule
from calibrant.reports.threshold.wording import (
    aim_words,
    aims_of,
    class_words,
    measured_interval,
    rate_meaning,
    rate_title,
    rate_value,
    same_place_words,
    threshold_words,
)
from calibrant.serving.console.pages.model.figures import (
    describe_test_rows,
    get_mapping,
    get_mappings,
)
from calibrant.study.report.headline import VERDICTS, cost_words
from calibrant.study.report.wording import join_words, shown_name
from calibrant.thresholds import Band, OperatingPoint


def point_data(bundle: Bundle) -> list[dict[str, Any]]:
    """Gather the promises of a bundle, one entry each, in the order of its points."""
    return [
        _entry(bundle, i, promise, rules)
        for i, each in enumerate(bundle.points)
        for promise, rules in _iter_promises(each)
    ]


def unreached_data(metrics: Mapping[str, Any]) -> list[dict[str, str]]:
    """Gather the targets that the study could not reach."""
    return [
        {"hold": shown_name(each.get("hold", "")), "why": sentence(str(each.get("why") or ""))}
        for each in get_mappings(metrics, "points")
        if each.get("reached") is False
    ]


def rule_words(rule: Rule, *, calibrated: bool = False) -> str:
    """Describe the rows of a rule: "act on a row when P(defect) is at least 0.75"."""
    words = clearing_rule if rule.clears else acting_rule
    return printable(words(rule.point, calibrated=calibrated))


def place_words(bundle: Bundle, position: int, rule: Rule) -> str:
    """Say where a threshold lies among calibrated probabilities; empty if nowhere else."""
    moved = next(
        each.moved
        for each in bundle.decision_rules
        if each.position == position and each.rule == rule
    )
    if moved is None:
        return ""
    shown = threshold_words(rule.point.threshold, rule.point.logit)
    return same_place_words(shown, moved.prob, moved.logit)


def _iter_promises(each: BundlePoint) -> Iterator[tuple[str, Sequence[Rule]]]:
    """Yield each promise with its rules; the two rules of a band share one promise."""
    if isinstance(each.result, Band):
        yield each.promises[0], each.rules
    else:
        yield from zip(each.promises, ((rule,) for rule in each.rules), strict=True)


def _entry(bundle: Bundle, position: int, promise: str, rules: Sequence[Rule]) -> dict[str, Any]:
    bundle_point, first = bundle.points[position], rules[0].point
    calibrated = bundle_point.decides_on == "calibrated"
    return {
        "position": position,
        "title": _title([rule.point for rule in rules]),
        "promised": first.guarantee is not None,
        "words": sentence(printable(promise)),
        "alternative": bundle.is_alternative(position),
        "calibrated": calibrated,
        "other_scale": not calibrated and bundle.changes_probabilities,
        "rules": [
            {
                "does": sentence(rule_words(rule, calibrated=calibrated)),
                "place": place_words(bundle, position, rule),
                "costs": _costs(rule.point),
                "rates": list(_rates(rule.point)),
                "rows": _rows(rule.point),
            }
            for rule in rules
        ],
        "check": _check(bundle.metrics, first),
    }


def _title(points: Sequence[OperatingPoint]) -> str:
    of = class_words(points[0].of)
    aims = [aim_words(aim) for point in points for aim in aims_of(point)]
    description = join_words(aims) if aims else "a threshold set by hand"
    return f"{of[:1].upper()}{of[1:]}: {description}"


def _costs(point: OperatingPoint) -> str:
    """Describe what a threshold does, if all of that was measured."""
    needed = ("coverage",) if point.of is None else ("coverage", "precision", "recall")
    return cost_words(point) if all(name in point.rates for name in needed) else ""


def _rates(point: OperatingPoint) -> Iterator[dict[str, str]]:
    for name, rate in point.rates.items():
        yield {
            "title": rate_title(name, point.of),
            "value": rate_value(name, rate.value),
            "interval": measured_interval(point, name),
            "meaning": rate_meaning(name, point.of),
        }


def _rows(point: OperatingPoint) -> str:
    weighted = ", weighted" if point.weighted else ""
    return f"{format_count(point.n, 'labelled row')}{weighted}"


def _check(metrics: Mapping[str, Any], point: OperatingPoint) -> dict[str, str] | None:
    """Return the verdict of the test rows on a point, or None if they did not judge it."""
    for each in get_mappings(metrics, "points"):
        check = get_mapping(each, "check")
        same = str(each.get("class")) == str(point.of) and each.get("threshold") == point.threshold
        if same and check.get("verdict") in VERDICTS:
            state, badge = VERDICTS[check["verdict"]]
            words = str(check.get("text", "")).partition("): ")[2]  # the badge says the rest
            rows = describe_test_rows(metrics, check.get("n"))
            where = f"On the {rows}, which were not used for any choice"
            return {"state": state, "badge": badge, "where": where, "words": sentence(words)}
    return None
