"""What a card says about the operating points: what they decide, what they promise, what not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from calibrant.bundle.card.wording import safe
from calibrant.formatting import format_count, printable, quote_name, sentence
from calibrant.reports.threshold.text import acting_rule

if TYPE_CHECKING:
    from calibrant.bundle.bundle import Bundle
    from calibrant.bundle.points import BundlePoint, Rule
    from calibrant.thresholds.operating_point import OperatingPoint

__all__ = ["decides", "not_promised", "promises"]

_SHOWN = ("precision", "accuracy", "recall", "npv", "coverage", "cost")
"""The rates of a point that the card gives, where they were measured."""


def decides(bundle: Bundle) -> Iterator[str]:
    """Say of each point when it acts, and on which scores."""
    if bundle.calibration is None:
        yield "Probabilities are those of the classifier: there is no calibrator."
    elif bundle.calibration.method == "identity":
        yield "Probabilities are those of the classifier, without further calibration."
    else:
        yield f"Probabilities are calibrated with `{bundle.calibration.method}`."
    if not bundle.points:
        yield "There is no operating point: it gives probabilities and decides nothing."
        return
    for i, each in enumerate(bundle.points):
        scores = _scores_of(each, bundle)
        yield from (
            f"Point {i}: {safe(sentence(printable(_rule(rule))))} {scores}" for rule in each.rules
        )
        if bundle.is_alternative(i):
            yield f"Point {i} is an alternative: it decides only where it is asked for."
    if _several(bundle):
        yield "Where several of them act on a row, the one of the most probable class decides."
    scope = "" if bundle.ood is None else ", and all that are out of scope"
    yield f"All other rows are left to a person{scope}: the bundle abstains."
    for of, action in bundle.actions.items():
        yield f"Acting on {safe(quote_name(of))} means: {safe(printable(action))}."


def _several(bundle: Bundle) -> bool:
    """Whether more than one threshold has a say about acting."""
    heard = [each for i, each in enumerate(bundle.points) if not bundle.is_alternative(i)]
    return sum(not rule.clears for each in heard for rule in each.rules) > 1


def _rule(rule: Rule) -> str:
    if not rule.clears:
        return acting_rule(rule.point)
    point, name = rule.point, printable(rule.point.of)
    if point.works_on_probs:
        return f"clear a row when P({name}) is below {point.threshold:.6g}"
    return f"clear a row when P({name}) has log-odds below {point.logit:.6g}"


def _scores_of(each: BundlePoint, bundle: Bundle) -> str:
    if each.decides_on == "calibrated":
        return "It looks at the calibrated probabilities."
    if bundle.calibration is None:
        return "It looks at the classifier's own scores."
    return (
        "It looks at the classifier's own scores, on which it was chosen, and not at the "
        "calibrated probabilities."
    )


def promises(bundle: Bundle) -> Iterator[str]:
    """Give every promise with the labels it rests on, or why there is none."""
    if not bundle.points:
        yield "Nothing: a promise belongs to an operating point."
    for i, each in enumerate(bundle.points):
        for said in each.promises:
            yield f"Point {i}: {safe(sentence(printable(said)))}"
        if len(each.promises) > 1 and each.confidence is not None:
            yield f"These promises hold together, with {each.confidence * 100:.4g} % confidence."
        for rule in each.rules:
            measured = ", ".join(_rates(rule.point))
            where = f"At {rule.point.threshold:.4g}, on {_labels(rule.point)}"
            yield f"{where}, measured: {measured}." if measured else f"{where}."
    together = bundle.provenance.get("confidence_together")
    if len(bundle.points) > 1 and isinstance(together, int | float):
        yield f"All promises of all points hold together, with {together * 100:.4g} % confidence."


def _labels(point: OperatingPoint) -> str:
    what = "predicted rightly" if point.of is None else f"of {safe(quote_name(point.of))}"
    rows = f"{format_count(point.n, 'labelled row')}, {point.positives:,} of them {what}"
    return f"{rows}, weighted" if point.weighted else rows


def _rates(point: OperatingPoint) -> Iterator[str]:
    for name in _SHOWN:
        rate = point.rates.get(name)
        if rate is None or rate.value is None:
            continue
        span = rate.interval
        ends = "" if span is None else f" ({span.low:.3f} to {span.high:.3f})"
        if span is not None and point.settles(name):
            ends = " by definition"
        yield f"{name} {rate.value:.3f}{ends}"


def not_promised(bundle: Bundle) -> Iterator[str]:
    """Say what a reader might take for a promise and is none."""
    yield "Nothing about any single row: a promise is about the share among many."
    yield (
        "Nothing about rows of another kind than those it was chosen on: after a change of "
        "customers, products, seasons or of the classifier, check it on new labels."
    )
    if bundle.scorer is None:
        yield "Nothing about the scores of another classifier, or of this one trained again."
    risks = [1.0 - each.confidence for each in bundle.points if each.confidence is not None]
    together = bundle.provenance.get("confidence_together")
    if len(risks) > 1 and not isinstance(together, int | float):
        together = max(0.0, 1.0 - sum(risks))
        yield (
            "The points were chosen one by one: all promises hold together with a confidence of at "
            f"least {together * 100:.4g} % only."
        )
    if _several(bundle):
        yield (
            "Nothing about the rows that a point decides alone: its promise is about all rows that "
            "it acts on, those that another point decides among them."
        )
    acted = {of for each in bundle.points for of in each.acts_on}
    others = [safe(quote_name(name)) for name in bundle.classes if str(name) not in acted]
    if acted and None not in acted and others and len(bundle.classes) > 2:
        yield f"Nothing about {', '.join(others)}, on which no point acts."
