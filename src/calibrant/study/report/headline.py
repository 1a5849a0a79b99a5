"""Headline of a study: the chosen model, its calibration and its promises."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from calibrant.errors import TargetUnreachable
from calibrant.formatting import floor_words, format_count, number, percent, sentence
from calibrant.reports.threshold.wording import (
    aim_words,
    aims_of,
    class_words,
    decision_score_words,
    threshold_words,
)
from calibrant.study.report.wording import (
    candidate_name,
    chosen_name,
    figure_of,
    join_words,
    judged_rows,
    judged_words,
    method_name,
)
from calibrant.study.result import PointResult, Skill, StudyResult
from calibrant.thresholds import OperatingPoint, Transfer
from calibrant.thresholds.proof.largest_weight import condition_clause

_PROMISE_KEPT, _PROMISE_MADE, _NO_PROMISE = "Promise kept", "Promise made", "No promise"
_PROMISE_BROKEN, _UNREACHABLE = "Promise broken", "Cannot be promised"
_OVERRULED = {
    "kept": "Kept on fresh rows, broken on the test rows",
    "broken": "Broken on fresh rows, kept on the test rows",
}
VERDICTS = {
    "kept": ("good", "Kept"),
    "broken": ("bad", "Broken"),
    "undecidable": ("unknown", "Not decided yet"),
}
"""CSS state and label of each verdict on a promise."""


def headline_data(result: StudyResult) -> dict[str, Any]:
    """Return the headline: one sentence, its state, and its details."""
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
    lead = f"{chosen_name(result)} with {method_name(result.method)} was chosen."
    parts = [lead, _calibrated_short(result), *_promises_short(result)]
    if result.skill is not None and not result.skill.learned:
        parts = [nothing_learned_words(result.skill, packed=result.packed), lead]
    return " ".join(parts).replace(" %", "\N{NO-BREAK SPACE}%")


def nothing_learned_words(skill: Skill, *, packed: bool) -> str:
    """Return the headline of a model that is not clearly better than the class shares."""
    rest = (
        "the bundle was packed all the same"
        if packed
        else "nothing is promised and no bundle was packed (--pack-anyway packs it)"
    )
    return (
        f"The model learned nothing that these rows can show: its log loss is {number(skill.loss)} "
        f"and that of always saying the class shares {number(skill.base)} (they differ by "
        f"{number(skill.gain)} \N{PLUS-MINUS SIGN} {number(skill.error)}); {rest}."
    )


def skill_words(skill: Skill) -> str:
    """Return the skill against the class shares, as a sentence."""
    return (
        f"Skill against always saying the class shares: {percent(skill.value)} (log loss "
        f"{number(skill.loss)} instead of {number(skill.base)})."
    )


def gain_words(result: StudyResult) -> list[str]:
    """Return what the choice gained or lost on the test rows."""
    if result.gain is None:
        return []
    words = []
    whose = "the winner of the race" if result.best.way == "weighted" else "the same model"
    for pair, what in (
        (result.gain.usual, f"cross-entropy of {whose}"),
        (result.gain.hindsight, "the candidate that is best there"),
    ):
        if pair is None or (what.startswith("the candidate") and pair == result.gain.usual):
            continue
        name, difference, error = pair
        side = "above" if difference > 0 else "below"
        words.append(
            f"On the {judged_words(result)} its log loss after temperature scaling is "
            f"{number(abs(difference))} \N{PLUS-MINUS SIGN} {number(error)} {side} that of {what} "
            f"({name})."
        )
    return words


def failed_words(result: StudyResult) -> list[str]:
    """Return a sentence on candidates that could not be trained, if there are any."""
    failed = [one for one in result.candidates if one.failed is not None]
    if not failed:
        return []
    return [
        f"{len(failed)} of {format_count(len(result.candidates), 'candidate')} failed: "
        f"{join_words([candidate_name(one) for one in failed])}."
    ]


def chosen_words(result: StudyResult) -> list[str]:
    """Explain the choice of the network and of the calibrator."""
    words = [*failed_words(result), sentence(result.why), *gain_words(result)]
    if result.choice is None:
        return [*words, sentence(f"{method_name(result.method)} was asked for")]
    why = result.choice.why
    return [*words, sentence(f"among calibrators, {why[:1].lower()}{why[1:]}")]


def promise_title(point: PointResult) -> str:
    """Return the class and the targets held for it.

    Examples
    --------
    >>> from calibrant.errors import TargetUnreachable
    >>> from calibrant.reports.threshold.view import PointView
    >>> lost = TargetUnreachable(hold="precision>=0.85", of="defect", n=40, positives=9)
    >>> promise_title(PointResult("defect: precision>=0.85", PointView(lost, None)))
    'Class “defect”: precision is at least 85 %'
    """
    of = class_words(point.result.of)
    aims = join_words([aim_words(aim) for aim in aims_of(point.result)] or [point.hold])
    return f"{of[:1].upper()}{of[1:]}: {aims}"


def promise_data(point: PointResult, result: StudyResult) -> dict[str, Any]:
    """Return the data of one promise: its state, its cost and its checks."""
    outcome = point.result
    reached = isinstance(outcome, OperatingPoint)
    checks = []
    if point.check is not None:  # includes test rows outside all classes
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
        "threshold": threshold_words(outcome.threshold)
        if isinstance(outcome, OperatingPoint)
        else "",
        "words": _promise_words(point),
        "costs": cost_words(outcome, calibrated=point.calibrated_threshold)
        if isinstance(outcome, OperatingPoint)
        else "",
        "missing": "" if isinstance(outcome, OperatingPoint) else _missing_words(outcome),
        "checks": checks,
        "decides": point.decides,
    }


def _promise_words(point: PointResult) -> str:
    outcome = point.result
    if isinstance(outcome, OperatingPoint):
        return outcome.guarantee or sentence(outcome.why or "this threshold carries no promise")
    aims = join_words([aim_words(aim) for aim in aims_of(outcome)] or [point.hold])
    sure = "" if outcome.confidence is None else f" with {100 * outcome.confidence:g} % confidence"
    why = f" {sentence(outcome.why)}" if outcome.why else ""
    return f"No threshold can promise{sure} that {aims}.{why}"


def _missing_words(error: TargetUnreachable) -> str:
    """Return the best provable value and the number of labels needed."""
    words = []
    if error.best is not None:
        what = error.best_of or "rate"
        shown = number(error.best) if error.best_of == "cost" else percent(error.best)
        words.append(f"The best {what} that these {error.n:,} rows prove is {shown}.")
    if error.labels_needed is not None:
        among = f", {error.positives_needed:,} of them positive," if error.positives_needed else ""
        words.append(f"About {error.labels_needed:,} labelled rows{among} would do, 4 times in 5.")
    return " ".join(words)


def cost_words(point: OperatingPoint, *, calibrated: float | None = None) -> str:
    """Describe the trade-off of a threshold: the share acted on, precision and recall.

    `calibrated` is where the threshold lies among calibrated probabilities, if anywhere.
    """
    where = decision_score_words(point.threshold, point.logit, calibrated=calibrated)
    at, shares = f"At {where},", point.rates
    acted = percent(shares["coverage"].value)
    if point.of is None:
        return f"{at} {acted} of the predictions are accepted; the rest is handed to a person."
    right, recall = (percent(shares[name].value) for name in ("precision", "recall"))
    return (
        f"{at} {acted} of the rows are acted on, {right} of them rightly (precision); that finds "
        f"{recall} of the rows of the class (recall). Measured on {point.n:,} calibrate rows."
    )


def scores_words(result: StudyResult) -> str:
    """Explain what the thresholds are compared with; empty without a threshold."""
    reached = [point for point in result.points if isinstance(point.result, OperatingPoint)]
    if not reached:
        return ""
    if result.method == "identity":
        return "The decision score is the probability that the bundle gives."
    words = (
        "The decision score, which a threshold is compared with, is the model's own probability, "
        "on which the threshold was certified. The calibrated probability is another number"
    )
    if any(point.calibrated_threshold is not None for point in reached):
        return f"{words}; where the threshold lies on that scale, it stands in brackets."
    return f"{words}, which does not decide."


def several_words(result: StudyResult) -> str:
    """Explain how several deciding classes interact; empty if the notes say so already."""
    deciding = [
        point.result.of
        for point in result.points
        if point.decides and isinstance(point.result, OperatingPoint)
    ]
    noted = any("Several classes decide" in note for note in result.notes)
    if noted or len(set(deciding)) < 2:
        return ""
    return (
        "Several classes decide: a row that more than one of them would act on goes to the most "
        "probable of them, so what is done in the name of one class need not be all the rows that "
        "its promise is about."
    )


def _check_data(transfer: Transfer, where: str) -> dict[str, str]:
    state, badge = VERDICTS[transfer.verdict]
    words = "; ".join(check.text for check in transfer.checks)
    return {"state": state, "badge": badge, "where": where, "words": sentence(words)}


def _point_state(point: PointResult) -> tuple[str, str]:
    """Return the state of a promise; the many fresh rows overrule the test rows."""
    if not isinstance(point.result, OperatingPoint):
        return "bad", _UNREACHABLE
    verdicts = [check.verdict for check in (point.fresh, point.check) if check is not None]
    known = [verdict for verdict in verdicts if verdict in _DECIDED]
    final = known[0] if known else None
    if final == "broken":
        return "bad", _PROMISE_BROKEN if len(set(known)) == 1 else _OVERRULED[final]
    if point.result.guarantee is None:
        return "unknown", _NO_PROMISE
    if final is None:
        return "good", _PROMISE_MADE
    return "good", _PROMISE_KEPT if len(set(known)) == 1 else _OVERRULED[final]


def _state(result: StudyResult) -> tuple[str, str]:
    """Return the overall state: the worst of its parts."""
    if result.skill is not None and not result.skill.learned:
        return "bad", "Nothing was learned"
    badges = [_point_state(point) for point in result.points if point.decides]
    names = [badge for _, badge in badges]
    if {_PROMISE_BROKEN, _OVERRULED["broken"]} & set(names):
        return "bad", "A promise is broken"
    wrong = result.calibrated.verdict.miscalibrated
    if wrong:
        return "bad", "Miscalibration is left"
    if _UNREACHABLE in names:
        all_lost = names.count(_UNREACHABLE) == len(names)
        return "bad", "No promise can be made" if all_lost else "Not every promise can be made"
    calibrated = "No miscalibration found" if wrong is False else "Too little data to judge"
    if {_PROMISE_KEPT, _OVERRULED["kept"]} & set(names):
        return "good", f"{calibrated}; {_kept_words(names)}"
    return ("good" if wrong is False else "unknown"), calibrated


def _kept_words(names: list[str]) -> str:
    overruled = names.count(_OVERRULED["kept"])
    n_kept = names.count(_PROMISE_KEPT) + overruled
    words = f"{n_kept} of {len(names)} promises kept so far"
    if n_kept == len(names):
        words = "promise kept" if n_kept == 1 else "all promises kept"
    if not overruled:
        return words
    which = "broken" if n_kept == 1 else f"{overruled} of them broken"
    return f"{words} on fresh rows, {which} on the test rows"


def _calibrated_short(result: StudyResult) -> str:
    wrong, where = result.calibrated.verdict.miscalibrated, judged_rows(result)
    if wrong is None:
        return f"Whether its probabilities can be trusted, {where} are too few to say."
    if wrong:
        return f"Its probabilities are still off on the {where}."
    return f"Its probabilities come true on the {where}, as far as these can tell."


def _calibrated_words(result: StudyResult) -> list[str]:
    figure = figure_of(result.calibrated, "ece_ew")
    words = [] if result.skill is None else [skill_words(result.skill)]
    words.append(sentence(result.calibrated.verdict.text))
    if figure is not None and figure.value is not None:
        chance = f"; chance alone gives {floor_words(figure.floor)}" if figure.floor else ""
        words.append(
            f"Calibration error (ECE: how far stated probabilities are from what happened, on "
            f"average): {number(figure.value)}{chance}."
        )
    return words


def _promises_short(result: StudyResult) -> Iterator[str]:
    """Yield the promise, or how many of several can be made."""
    points = [point for point in result.points if point.decides]
    if len(points) == 1:
        yield _promise_short(points[0])
    elif points:
        names = [_point_state(point)[1] for point in points]
        n_made = len(points) - names.count(_UNREACHABLE)
        parts = [f"{n_made} of {len(points)} promises can be made"]
        for badge, words in _OUTCOMES:
            if count := names.count(badge):
                parts.append(f"{count} {'is' if count == 1 else 'are'} {words}")
        yield f"{join_words(parts)}."


def _promise_short(point: PointResult) -> str:
    outcome, of = point.result, class_words(point.result.of)
    aims = join_words([aim_words(aim) for aim in aims_of(outcome)] or [point.hold])
    if not isinstance(outcome, OperatingPoint):
        return f"For {of} it cannot be promised yet that {aims}."
    at = f"For {of}, {aims} at {decision_score_words(outcome.threshold, outcome.logit)}"
    if outcome.guarantee is None or outcome.confidence is None:
        return f"{at} on the calibrate rows; nothing is promised."
    does = f"{_describe_effect(outcome)}{_outcome(point)}"
    sure = f"with {100 * outcome.confidence:g} % confidence{condition_clause(outcome.condition)}"
    return f"{at}, {sure}: {does}."


def _describe_effect(point: OperatingPoint) -> str:
    """Describe the effect of a threshold, with the rate traded for the promise."""
    acted = percent(point["coverage"].value)
    if point.of is None:
        return f"it accepts {acted} of the predictions"
    if any(name == "recall" for name, _, _ in aims_of(point)):
        paid = f"is right on {percent(point['precision'].value)} of those"
    else:
        paid = f"finds {percent(point['recall'].value)} of the class"
    return f"it acts on {acted} of the rows and {paid}"


def _outcome(point: PointResult) -> str:
    """Return the verdicts on a promise, as a clause."""
    checks = [(point.check, "the test rows"), (point.fresh, "fresh rows")]
    verdicts = [
        f"{check.verdict} on {where}"
        for check, where in checks
        if check and check.verdict in _DECIDED
    ]
    if verdicts:
        return f"; {join_words(verdicts)}"
    return "; the test rows are too few to confirm it" if point.check is not None else ""


_DECIDED = ("kept", "broken")
_OUTCOMES = (
    (_PROMISE_KEPT, "seen to be kept"),
    (_OVERRULED["kept"], "kept on fresh rows but broken on the test rows"),
    (_PROMISE_BROKEN, "broken"),
    (_OVERRULED["broken"], "broken on fresh rows but kept on the test rows"),
)
