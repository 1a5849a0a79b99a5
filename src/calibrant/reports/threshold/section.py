"""What the page about thresholds says in words: verdicts, cards and tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from calibrant.errors import TargetUnreachable
from calibrant.formatting import format_count, number, percent, quote_name, sentence
from calibrant.reports.threshold.view import PointView
from calibrant.reports.threshold.wording import (
    aim_words,
    aims_of,
    measured_interval,
    rate_interval,
    rate_meaning,
    rate_value,
    score_source,
    threshold_words,
)
from calibrant.thresholds.band import Band
from calibrant.thresholds.classes import OperatingPoints
from calibrant.thresholds.operating_point import OperatingPoint
from calibrant.thresholds.proof.largest_weight import condition_clause

_MOST_CARDS = 3


def section_data(view: PointView, key: int, *, source: str = "") -> dict[str, Any]:
    """Gather what the template shows of one result, as plain values.

    `source` names whose probabilities the decision scores are, such as "calibrated".
    """
    curve = view.curve
    of = curve.of
    return {
        "key": key,
        "title": view.title,
        **_verdict(view),
        "cards": list(_cards(view)),
        "rule": _rule(view, score_source(of, source=source)),
        "score": score_source(of, source=source),
        "reached": view.point is not None,
        "promised": view.promised,
        "top_label": of is None,
        "clears": view.clears,
        "of": "" if of is None else str(of),
        "chosen": view.words,
        "lines": [(name, view.title_of(name)) for name in view.lines],
        "aims": [name for name, _, _ in aims_of(view.result)],
        "tiles": [(name, view.title_of(name)) for name in view.tiles],
        "baseline": _baseline(view),
        "rates": list(_rate_rows(view)),
        "level": f"{100 * curve.confidence:g} %",
        "has_logits": view.has_logits,
        "wide": view.wide,
        "last": len(curve.threshold),
        "weighted": curve.weighted,
        "notes": _notes(view),
    }


def lead_data(whole: Band | OperatingPoints, *, source: str = "") -> dict[str, Any]:
    """Return the joint verdict on several thresholds, as plain values; see `section_data`."""
    if isinstance(whole, OperatingPoints):
        return _lead_of_classes(whole)
    act, clear = (threshold_words(p.threshold, p.logit) for p in (whole.upper, whole.lower))
    score = f"its decision score, {score_source(whole.upper.of, source=source)},"
    rule = (
        f"Act on a row when {score} is at least {act}, clear it below {clear}, and hand the rows "
        f"between to a person: {percent(whole.automated)} of these rows need none."
    )
    if whole.guarantee is not None:
        return _verdict_data("good", "Promise", whole.guarantee, [rule])
    why = [sentence(whole.why)] if whole.why else []
    return _verdict_data(
        "unknown", "No promise", "These thresholds carry no promise.", [*why, rule]
    )


def _lead_of_classes(whole: OperatingPoints) -> dict[str, Any]:
    promised = [point for point in whole.points.values() if point.guarantee is not None]
    more = []
    if whole.unreachable:
        names = ", ".join(quote_name(name) for name in whole.unreachable)
        more.append(f"Without a threshold: {names}. The promises of the others stand.")
    if whole.flagged_twice:
        more.append(
            f"{format_count(whole.flagged_twice, 'row')} would be flagged by several classes."
        )
    if not promised or whole.confidence is None:
        return _verdict_data("unknown", "No promise", "No promise can be made for any class.", more)
    many = f"All {len(promised)} promises below hold together"
    if len(promised) == 1:
        many = "One promise can be made: it holds"
    level = f"with {100 * whole.confidence:g} % confidence"
    drawn = (
        f"on new rows drawn like these {promised[0].n:,}{condition_clause(promised[0].condition)}"
    )
    head = f"{many}, {level}, {drawn}."
    state = "bad" if whole.unreachable else "good"
    badge = "Some targets not reached" if whole.unreachable else "Promise"
    return _verdict_data(state, badge, head, more)


def _verdict_data(state: str, badge: str, headline: str, more: list[str]) -> dict[str, Any]:
    headline = sentence(headline).replace(" %", "\N{NO-BREAK SPACE}%")
    return {"state": state, "badge": badge, "headline": headline, "more": more}


def _verdict(view: PointView) -> dict[str, Any]:
    result = view.result
    why = [sentence(result.why)] if result.why else []
    if isinstance(result, OperatingPoint):
        if result.guarantee is not None:
            return _verdict_data("good", "Promise", result.guarantee, [])
        return _verdict_data("unknown", "No promise", "This threshold carries no promise.", why)
    aims = " and ".join(aim_words(aim) for aim in aims_of(result)) or result.target
    about = "" if result.of is None else f" for class {quote_name(result.of)}"
    if result.confidence is None:
        head = f"On these rows no threshold has what was asked for{about}: {aims}."
    else:
        sure = f"with {100 * result.confidence:g} % confidence"
        head = f"No threshold can promise that {aims}{about}, {sure}."
    return _verdict_data("bad", "Target not reached", head, why)


def _rule(view: PointView, source: str) -> str:
    """Return the rule with the exact threshold: rows can be tied just below it."""
    point = view.point
    if point is None:
        return ""
    shown = repr(point.threshold) if point.works_on_probs else f"log-odds {point.logit!r}"
    score = f"its decision score, {source},"
    if view.clears:
        return f"Clear a row when {score} is below {shown}."
    if view.curve.of is None:
        if point.threshold <= 0:
            return "Accept every prediction."
        return f"Accept a prediction when {score} is at least {shown}; hand over the rest."
    if point.threshold <= 0:
        return f"Act on every row: {score} does not matter."
    return f"Act on a row when {score} is at least {shown}."


def _cards(view: PointView) -> Iterator[dict[str, Any]]:
    if isinstance(view.result, TargetUnreachable):
        yield from _missing_cards(view.result)
        return
    aims = {name: (sense, value) for name, sense, value in aims_of(view.result)}
    objective = view.result.objective.rpartition(" ")[2]
    names = dict.fromkeys([*aims, *([] if view.clears else [objective]), *view.tiles])
    for name in [name for name in names if name in view.rates][:_MOST_CARDS]:
        yield _rate_card(view, name, aims.get(name))


def _rate_card(view: PointView, name: str, aim: tuple[str, float] | None) -> dict[str, Any]:
    rate = view.rates[name]
    lines = []
    if aim is not None:
        lines.append(f"{'Promised' if view.promised else 'Asked for'}: {_bound(name, *aim)}")
    if view.settles(name):
        lines.append("By definition: no row stays below the threshold")
    elif rate.interval is not None:
        level = f"{100 * rate.interval.confidence:g} %"
        lines.append(f"{level} interval: {rate_interval(name, rate.interval)}")
    return {
        "title": f"{view.title_of(name)}, measured",
        "value": rate_value(name, rate.value),
        "lines": lines,
        "meaning": sentence(rate_meaning(name, view.curve.of)),
    }


def _bound(name: str, sense: str, value: float) -> str:
    shown = f"{value:.6g}" if name == "cost" else f"{100 * value:.6g} %"
    return f"{'at least' if sense == '>=' else 'at most'} {shown}"


def _missing_cards(result: TargetUnreachable) -> Iterator[dict[str, Any]]:
    """Yield the best bound, and the labelled rows and positives that would be needed."""
    aims = aims_of(result)
    if result.best is not None:
        kind = "cost" if result.best_of == "cost" else ""
        where = [] if result.threshold is None else [threshold_words(result.threshold)]
        alone = "What these rows do prove."
        several = f"What these rows do prove of the {result.best_of}, the hardest of the targets."
        yield {
            "title": "Best value" if result.confidence is None else "Best value proved",
            "value": rate_value(kind, result.best),
            "lines": [f"At a decision score of {words}" for words in where],
            "meaning": alone if len(aims) == 1 else several,
        }
    if result.confidence is None:
        return
    have = [f"Now there are {result.n:,}."]
    if result.labels_needed is None:
        meaning = "These rows name no number that would be enough; the reason stands above."
        value = "may not help"
        yield {"title": "More labelled rows", "value": value, "lines": have, "meaning": meaning}
        return
    yield {
        "title": "Labelled rows needed",
        "value": f"about {result.labels_needed:,}",
        "lines": have,
        "meaning": "With as many rows like these, the promise can be made about 4 times in 5.",
    }
    if result.positives_needed is not None:
        kind = (
            "right predictions" if result.of is None else f"rows of class {quote_name(result.of)}"
        )
        yield {
            "title": "Positives among them",
            "value": f"about {result.positives_needed:,}",
            "lines": [f"Now there are {result.positives:,}."],
            "meaning": f"Positives are {kind}.",
        }


def _rate_rows(view: PointView) -> Iterator[dict[str, str]]:
    aims = {name: (sense, value) for name, sense, value in aims_of(view.result)}
    for name, rate in view.rates.items():
        yield {
            "title": view.title_of(name),
            "meaning": rate_meaning(name, view.curve.of),
            "value": rate_value(name, rate.value),
            "interval": _interval(view, name) or "no row to judge it by",
            "n": f"{rate.n:,.0f}" if rate.n == round(rate.n) else f"{rate.n:,.1f}",
            "target": _bound(name, *aims[name]) if name in aims else "",
        }


def _interval(view: PointView, name: str) -> str:
    if view.point is None:
        return rate_interval(name, view.rates[name].interval)
    return measured_interval(view.point, name)


def _baseline(view: PointView) -> dict[str, str] | None:
    """Return the optimal rule for calibrated probabilities, if costs are known."""
    if view.baseline is None:
        return None
    known = None if view.point is None else view.point.baseline
    cost = "" if known is None else number(known["cost"])
    return {"threshold": threshold_words(view.baseline), "cost": cost}


def _notes(view: PointView) -> list[str]:
    point = view.point
    if point is None:
        return []
    notes = [sentence(note) for note in point.notes]
    if not view.promised:
        return notes
    how = f"How the promise was proved: {point.method}."
    kind = "It is about rows like these: after the model or its inputs change, choose again."
    return [how, kind, *notes]
