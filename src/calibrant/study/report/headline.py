"""What a study comes to, in words: what was chosen, is it calibrated, what does it promise."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from calibrant.errors import TargetUnreachable
from calibrant.formatting import floor_words, number, percent, sentence
from calibrant.reports.threshold.wording import aim_words, aims_of, class_words, threshold_words
from calibrant.study.report.wording import (
    candidate_name,
    figure_of,
    joined,
    judged_rows,
    method_name,
)
from calibrant.study.result import PointResult, StudyResult
from calibrant.thresholds import OperatingPoint, Transfer
from calibrant.thresholds.proof.largest_weight import provided

__all__ = [
    "VERDICTS",
    "chosen_words",
    "cost_words",
    "headline_data",
    "promise_data",
    "promise_title",
    "several_words",
    "verdict_words",
]

_KEPT, _MADE, _NONE = "Promise kept", "Promise made", "No promise"
_BROKEN, _LOST = "Promise broken", "Cannot be promised"
_OVERRULED = {
    "kept": "Kept on fresh rows, broken on the test rows",
    "broken": "Broken on fresh rows, kept on the test rows",
}
VERDICTS = {
    "kept": ("good", "Kept"),
    "broken": ("bad", "Broken"),
    "undecidable": ("unknown", "Not decided yet"),
}
"""What later rows say of a promise: the state that colours it, and a word."""


def headline_data(result: StudyResult) -> dict[str, Any]:
    """Gather the headline: one sentence, its state, and what it rests on."""
    state, badge = _state(result)
    return {
        "state": state,
        "badge": badge,
        "headline": verdict_words(result),
        "chosen": chosen_words(result),
        "calibrated": _calibrated_words(result),
        "promises": [promise_data(one, result) for one in result.points if one.decides],
    }


def verdict_words(result: StudyResult) -> str:
    """Return the headline as one text."""
    lead = f"{candidate_name(result.best)} with {method_name(result.method)} was chosen."
    parts = [lead, _calibrated_short(result), *_promises_short(result)]
    return " ".join(parts).replace(" %", "\N{NO-BREAK SPACE}%")


def chosen_words(result: StudyResult) -> list[str]:
    """Say what was chosen and why: the network, then the calibrator."""
    words = [sentence(result.why)]
    if result.choice is None:
        return [*words, sentence(f"{method_name(result.method)} was asked for")]
    why = result.choice.why
    return [*words, sentence(f"among calibrators, {why[:1].lower()}{why[1:]}")]


def promise_title(point: PointResult) -> str:
    """Say what is to be held for which class.

    Examples
    --------
    >>> from calibrant.errors import TargetUnreachable
    >>> from calibrant.reports.threshold.view import PointView
    >>> lost = TargetUnreachable(hold="precision>=0.85", of="defect", n=40, positives=9)
    >>> promise_title(PointResult("defect: precision>=0.85", PointView(lost, None)))
    'Class “defect”: precision is at least 85 %'
    """
    of = class_words(point.result.of)
    aims = joined([aim_words(aim) for aim in aims_of(point.result)] or [point.hold])
    return f"{of[:1].upper()}{of[1:]}: {aims}"


def promise_data(point: PointResult, result: StudyResult) -> dict[str, Any]:
    """Gather one promise: is there one, what does it cost, was it kept."""
    found = point.result
    reached = isinstance(found, OperatingPoint)
    checks = []
    if point.check is not None:  # all test rows check it, those of no class too
        where = judged_rows(result, point.check.n)
        checks.append(_check_data(point.check, f"On the {where}, which chose nothing"))
    if point.fresh is not None:
        fresh = f"On {point.fresh.n:,} fresh {'messages' if result.kind == 'text' else 'rows'}"
        checks.append(_check_data(point.fresh, f"{fresh} whose truth is known"))
    state, badge = _point_state(point)
    return {
        "title": promise_title(point),
        "state": state,
        "badge": badge,
        "reached": reached,
        "threshold": threshold_words(found.threshold) if isinstance(found, OperatingPoint) else "",
        "words": _promise_words(point),
        "costs": cost_words(found) if isinstance(found, OperatingPoint) else "",
        "missing": "" if isinstance(found, OperatingPoint) else _missing_words(found),
        "checks": checks,
        "decides": point.decides,
    }


def _promise_words(point: PointResult) -> str:
    found = point.result
    if isinstance(found, OperatingPoint):
        return found.guarantee or sentence(found.why or "this threshold carries no promise")
    aims = joined([aim_words(aim) for aim in aims_of(found)] or [point.hold])
    sure = "" if found.confidence is None else f" with {100 * found.confidence:g} % confidence"
    why = f" {sentence(found.why)}" if found.why else ""
    return f"No threshold can promise{sure} that {aims}.{why}"


def _missing_words(found: TargetUnreachable) -> str:
    """Say how near the rows come to a promise, and what would be needed."""
    words = []
    if found.best is not None:
        what = found.best_of or "rate"
        shown = number(found.best) if found.best_of == "cost" else percent(found.best)
        words.append(f"The best {what} that these {found.n:,} rows prove is {shown}.")
    if found.labels_needed is not None:
        among = f", {found.positives_needed:,} of them positive," if found.positives_needed else ""
        words.append(f"About {found.labels_needed:,} labelled rows{among} would do, 4 times in 5.")
    return " ".join(words)


def cost_words(point: OperatingPoint) -> str:
    """Say what a threshold costs: the share acted on, and the rate that was given up for it."""
    at, shares = f"At threshold {threshold_words(point.threshold)},", point.rates
    acted = percent(shares["coverage"].value)
    if point.of is None:
        return f"{at} {acted} of the predictions are accepted; the rest is handed to a person."
    right, found = (percent(shares[name].value) for name in ("precision", "recall"))
    return (
        f"{at} {acted} of the rows are acted on, {right} of them rightly (precision); that finds "
        f"{found} of the rows of the class (recall). Measured on {point.n:,} calibrate rows."
    )


def several_words(result: StudyResult) -> str:
    """Say what several deciding classes do to each other; nothing where the notes say it."""
    deciding = [
        point.result.of
        for point in result.points
        if point.decides and isinstance(point.result, OperatingPoint)
    ]
    told = any("Several classes decide" in note for note in result.notes)
    if told or len(set(deciding)) < 2:
        return ""
    return (
        "Several classes decide: a row that more than one of them would act on goes to the most "
        "probable of them, so what is done in the name of one class need not be all the rows that "
        "its promise is about."
    )


def _check_data(found: Transfer, where: str) -> dict[str, str]:
    state, badge = VERDICTS[found.verdict]
    words = "; ".join(check.text for check in found.checks)
    return {"state": state, "badge": badge, "where": where, "words": sentence(words)}


def _point_state(point: PointResult) -> tuple[str, str]:
    """Return what the promise comes to: fresh rows, which are many, overrule the test rows."""
    if not isinstance(point.result, OperatingPoint):
        return "bad", _LOST
    seen = [found.verdict for found in (point.fresh, point.check) if found is not None]
    known = [verdict for verdict in seen if verdict in _DECIDED]
    final = known[0] if known else None
    if final == "broken":
        return "bad", _BROKEN if len(set(known)) == 1 else _OVERRULED[final]
    if point.result.guarantee is None:
        return "unknown", _NONE
    if final is None:
        return "good", _MADE
    return "good", _KEPT if len(set(known)) == 1 else _OVERRULED[final]


def _state(result: StudyResult) -> tuple[str, str]:
    """Return the state of the whole: the worst of its parts."""
    badges = [_point_state(point) for point in result.points if point.decides]
    names = [badge for _, badge in badges]
    if {_BROKEN, _OVERRULED["broken"]} & set(names):
        return "bad", "A promise is broken"
    wrong = result.calibrated.verdict.miscalibrated
    if wrong:
        return "bad", "Miscalibration is left"
    if _LOST in names:
        all_lost = names.count(_LOST) == len(names)
        return "bad", "No promise can be made" if all_lost else "Not every promise can be made"
    calibrated = "No miscalibration found" if wrong is False else "Too little data to judge"
    if {_KEPT, _OVERRULED["kept"]} & set(names):
        return "good", f"{calibrated}; {_kept_words(names)}"
    return ("good" if wrong is False else "unknown"), calibrated


def _kept_words(names: list[str]) -> str:
    overruled = names.count(_OVERRULED["kept"])
    kept = names.count(_KEPT) + overruled
    said = f"{kept} of {len(names)} promises kept so far"
    if kept == len(names):
        said = "promise kept" if kept == 1 else "all promises kept"
    if not overruled:
        return said
    which = "broken" if kept == 1 else f"{overruled} of them broken"
    return f"{said} on fresh rows, {which} on the test rows"


def _calibrated_short(result: StudyResult) -> str:
    wrong, where = result.calibrated.verdict.miscalibrated, judged_rows(result)
    if wrong is None:
        return f"Whether its probabilities can be trusted, {where} are too few to say."
    if wrong:
        return f"Its probabilities are still off on the {where}."
    return f"Its probabilities come true on the {where}, as far as these can tell."


def _calibrated_words(result: StudyResult) -> list[str]:
    found = figure_of(result.calibrated, "ece_ew")
    words = [sentence(result.calibrated.verdict.text)]
    if found is not None and found.value is not None:
        chance = f"; chance alone gives {floor_words(found.floor)}" if found.floor else ""
        words.append(
            f"Calibration error (ECE: how far stated probabilities are from what happened, on "
            f"average): {number(found.value)}{chance}."
        )
    return words


def _promises_short(result: StudyResult) -> Iterator[str]:
    """Yield the promise, or of several how many can be made."""
    points = [point for point in result.points if point.decides]
    if len(points) == 1:
        yield _promise_short(points[0])
    elif points:
        names = [_point_state(point)[1] for point in points]
        made = len(points) - names.count(_LOST)
        parts = [f"{made} of {len(points)} promises can be made"]
        for badge, words in _OUTCOMES:
            if count := names.count(badge):
                parts.append(f"{count} {'is' if count == 1 else 'are'} {words}")
        yield f"{joined(parts)}."


def _promise_short(point: PointResult) -> str:
    found, of = point.result, class_words(point.result.of)
    aims = joined([aim_words(aim) for aim in aims_of(found)] or [point.hold])
    if not isinstance(found, OperatingPoint):
        return f"For {of} it cannot be promised yet that {aims}."
    at = f"For {of}, {aims} at threshold {threshold_words(found.threshold)}"
    if found.guarantee is None or found.confidence is None:
        return f"{at} on the calibrate rows; nothing is promised."
    does = f"{_does(found)}{_outcome(point)}"
    sure = f"with {100 * found.confidence:g} % confidence{provided(found.condition)}"
    return f"{at}, {sure}: {does}."


def _does(point: OperatingPoint) -> str:
    """Say what a threshold does, with the rate that pays for the promise."""
    acted = percent(point["coverage"].value)
    if point.of is None:
        return f"it accepts {acted} of the predictions"
    if any(name == "recall" for name, _, _ in aims_of(point)):
        paid = f"is right on {percent(point['precision'].value)} of those"
    else:
        paid = f"finds {percent(point['recall'].value)} of the class"
    return f"it acts on {acted} of the rows and {paid}"


def _outcome(point: PointResult) -> str:
    """Say whether a promise was kept, as far as that is known."""
    seen = [(point.check, "the test rows"), (point.fresh, "fresh rows")]
    told = [f"{one.verdict} on {where}" for one, where in seen if one and one.verdict in _DECIDED]
    if told:
        return f"; {joined(told)}"
    return "; the test rows are too few to confirm it" if point.check is not None else ""


_DECIDED = ("kept", "broken")
_OUTCOMES = (
    (_KEPT, "seen to be kept"),
    (_OVERRULED["kept"], "kept on fresh rows but broken on the test rows"),
    (_BROKEN, "broken"),
    (_OVERRULED["broken"], "broken on fresh rows but kept on the test rows"),
)
