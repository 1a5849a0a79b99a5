"""Model card of a bundle, in Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from calibrant.bundle.card.model import (
    data_handling,
    failure_modes,
    figures,
    hand_over,
    intended_use,
    origin,
)
from calibrant.bundle.card.wording import escape_html
from calibrant.errors import InputError
from calibrant.formatting import format_count, printable, quote_name, sentence
from calibrant.reports.threshold.text import acting_rule, clearing_rule
from calibrant.reports.threshold.wording import (
    decision_score_words,
    same_place_words,
    threshold_words,
)

if TYPE_CHECKING:
    from calibrant.bundle.bundle import Bundle
    from calibrant.bundle.decision_rules import DecisionRule
    from calibrant.thresholds.operating_point import OperatingPoint

_SHOWN = ("precision", "accuracy", "recall", "npv", "coverage", "cost")
"""Rates of a point on the card, if measured."""


def decision_rules(bundle: Bundle) -> Iterator[str]:
    """Describe when each point acts, and on which scores."""
    if bundle.calibration is None:
        yield "Probabilities are those of the classifier: there is no calibrator."
    elif bundle.calibration.method == "identity":
        yield "Probabilities are those of the classifier, without further calibration."
    else:
        yield f"Probabilities are calibrated with `{bundle.calibration.method}`."
    if not bundle.points:
        yield "There is no operating point: it gives probabilities and makes no decisions."
        return
    yield from _rule_lines(bundle)
    if _has_several_rules(bundle):
        yield "If several of them act on a row, the one of the most probable class decides."
    scope = "" if bundle.ood is None else ", as are all rows out of scope"
    yield f"All other rows are left to a person{scope}: the bundle abstains."
    for of, action in bundle.actions.items():
        yield f"Acting on {escape_html(quote_name(of))} means: {escape_html(printable(action))}."


def _rule_lines(bundle: Bundle) -> Iterator[str]:
    """Describe each rule, the alternatives, and the scale of the decision scores."""
    for rule in bundle.decision_rules:
        words = escape_html(sentence(printable(_rule_text(rule))))
        yield f"Point {rule.position}: {words}{_place_text(rule)}"
    for i in filter(bundle.is_alternative, range(len(bundle.points))):
        yield f"Point {i} is an alternative: it decides only on request."
    own = [not rule.same_scale for rule in bundle.decision_rules]
    if any(own):
        which = "The decision score" if all(own) else "A decision score not called calibrated"
        yield (
            f"{which} is the classifier's own probability, on which its threshold was chosen, and "
            "not the calibrated probability: the two are on different scales."
        )


def _has_several_rules(bundle: Bundle) -> bool:
    """Return whether more than one active rule acts on rows."""
    active = [each for i, each in enumerate(bundle.points) if not bundle.is_alternative(i)]
    return sum(not rule.clears for each in active for rule in each.rules) > 1


def _rule_text(each: DecisionRule) -> str:
    point, calibrated = each.rule.point, each.decides_on == "calibrated"
    if not each.rule.clears:
        return acting_rule(point, calibrated=calibrated)
    return clearing_rule(point, calibrated=calibrated)


def _place_text(each: DecisionRule) -> str:
    """Say where the threshold lies on the calibrated scale, if that is another number."""
    if each.moved is None:
        return ""
    point = each.rule.point
    shown = threshold_words(point.threshold, point.logit)
    return f" {same_place_words(shown, each.moved.prob, each.moved.logit)}"


def promises(bundle: Bundle) -> Iterator[str]:
    """List every promise with the labels behind it, or the reason there is none."""
    if not bundle.points:
        yield "Nothing, because it has no operating point."
    for i, each in enumerate(bundle.points):
        for promise in each.promises:
            yield f"Point {i}: {escape_html(sentence(printable(promise)))}"
        if len(each.promises) > 1 and each.confidence is not None:
            yield f"These promises hold together, with {each.confidence * 100:.4g} % confidence."
        for rule in each.rules:
            measured = ", ".join(_rate_texts(rule.point))
            score = decision_score_words(rule.point.threshold, rule.point.logit)
            where = f"At {score}, on {_labels_text(rule.point)}"
            yield f"{where}, measured: {measured}." if measured else f"{where}."
    together = bundle.provenance.get("confidence_together")
    if len(bundle.points) > 1 and isinstance(together, int | float):
        yield f"All promises of all points hold together, with {together * 100:.4g} % confidence."


def _labels_text(point: OperatingPoint) -> str:
    what = "predicted correctly" if point.of is None else f"of {escape_html(quote_name(point.of))}"
    rows = f"{format_count(point.n, 'labelled row')}, {point.positives:,} of them {what}"
    return f"{rows}, weighted" if point.weighted else rows


def _rate_texts(point: OperatingPoint) -> Iterator[str]:
    for name in _SHOWN:
        rate = point.rates.get(name)
        if rate is None or rate.value is None:
            continue
        span = rate.interval
        ends = "" if span is None else f" ({span.low:.3f} to {span.high:.3f})"
        if span is not None and point.settles(name):
            ends = " by definition"
        yield f"{name} {rate.value:.3f}{ends}"


def non_promises(bundle: Bundle) -> Iterator[str]:
    """List common misreadings of the promises."""
    yield "Nothing about any single row: a promise is about the share among many rows."
    yield (
        "Nothing about rows unlike those it was chosen on: after a change of customers, "
        "products, seasons or the classifier, check it on new labels."
    )
    if bundle.scorer is None:
        yield "Nothing about the scores of another classifier, or of this one after retraining."
    risks = [1.0 - each.confidence for each in bundle.points if each.confidence is not None]
    together = bundle.provenance.get("confidence_together")
    if len(risks) > 1 and not isinstance(together, int | float):
        together = max(0.0, 1.0 - sum(risks))
        yield (
            "The points were chosen one by one: all promises hold together with a confidence of "
            f"only at least {together * 100:.4g} %."
        )
    if _has_several_rules(bundle):
        yield (
            "Nothing about the rows that a point decides alone: its promise is about all rows that "
            "it acts on, including those decided by another point."
        )
    acted = {of for each in bundle.points for of in each.acts_on}
    others = [escape_html(quote_name(name)) for name in bundle.classes if str(name) not in acted]
    if acted and None not in acted and others and len(bundle.classes) > 2:
        yield f"Nothing about {', '.join(others)}, on which no point acts."


def changes(bundle: Bundle) -> Iterator[str]:
    """List the changes, newest first."""
    saved = bundle.provenance.get("changes")
    entries = (
        [each for each in saved if isinstance(each, Mapping)] if isinstance(saved, list) else []
    )
    for each in reversed(entries):
        yield " ".join(_change_sentences(each))


def _change_sentences(each: Mapping[str, Any]) -> Iterator[str]:
    by = f", by {_words(each['by'])}" if each.get("by") else ""
    yield f"{_words(each.get('at') or 'At an unknown time')}{by}:"
    yield _sentence(each.get("what") or "the operating points were changed")
    yield f"Reason: {_sentence(each['reason'])}" if each.get("reason") else "No reason was given."
    if each.get("base"):
        yield f"Before that it was version {_words(str(each['base'])[:12])}."


def _words(value: Any) -> str:
    return escape_html(printable(" ".join(str(value).split())))


def _sentence(value: Any) -> str:
    return escape_html(sentence(printable(" ".join(str(value).split()))))


SECTIONS: Mapping[str, Callable[[Bundle], Iterator[str]]] = {
    "Intended use": intended_use,
    "What it decides": decision_rules,
    "What it promises": promises,
    "Figures": figures,
    "What it does not promise": non_promises,
    "Failure modes": failure_modes,
    "Hand-over to a person": hand_over,
    "Data handling": data_handling,
    "Where it comes from": origin,
    "Changes": changes,
}
"""Sections of a card in order, with their writers; empty sections are omitted."""


_INPUT_NOUN = {"text": "texts", "table": "rows of a table", "image": "images"}


def card_of(bundle: Bundle, more: Mapping[str, str] | None = None) -> str:
    """Write the card of a bundle as Markdown."""
    custom = _check_sections(more or {})
    parts = [_head(bundle)]
    for title, lines in SECTIONS.items():
        own_lines = (
            [escape_html(printable(" ".join(custom[title].split())))] if title in custom else []
        )
        rows = "\n".join(f"- {line}" for line in (*own_lines, *lines(bundle)))
        parts += [f"## {title}\n\n{rows}"] if rows else []
    return "\n\n".join(parts) + "\n"


def _head(bundle: Bundle) -> str:
    classes = ", ".join(escape_html(quote_name(name)) for name in bundle.classes)
    what = (
        "This bundle turns the scores of a classifier into decisions. It does not contain the "
        "classifier: pass the logits of the classifier."
        if bundle.scorer is None
        else f"This bundle is a classifier that turns {_INPUT_NOUN[bundle.scorer.kind]} into "
        "probabilities and decisions."
    )
    return (
        f"# Model card\n\n{what}\n\nIt has {format_count(len(bundle.classes), 'class')}: {classes}."
    )


def _check_sections(more: Mapping[str, str]) -> Mapping[str, str]:
    for title, text in more.items():
        if title not in SECTIONS:
            raise InputError(
                f"card has the unknown section {title!r}: choose one of {', '.join(SECTIONS)}."
            )
        if not isinstance(text, str) or not text.strip():
            raise InputError(f"the card section {title!r} must be non-empty text.")
    return more
