"""The story of a study in a few sentences, each computed from what was measured."""

from __future__ import annotations

from collections.abc import Sequence

from calibrant.reports.study_result import CandidateResult, StudyResult
from calibrant.reports.study_words import (
    baseline_of,
    candidate_name,
    family,
    figure_of,
    judged_rows,
    method_name,
    trained,
    value_of,
)
from calibrant.reports.words import number, percent, quoted, sentence
from calibrant.results import Evaluation, Figure

__all__ = ["story"]

_ECE, _NLL = "ece_ew", "nll"


def story(result: StudyResult) -> list[tuple[str, str]]:
    """Tell what the usual way claims, what other losses change, what calibration adds and costs.

    Returns
    -------
    pairs of a short title and what there is to say; what was not tried is left out
    """
    told = [("The usual way", _claims(result)), ("Logs and golden rows", _shift(result))]
    told += [("Focal loss", _focal(result)), ("AdaFocal", _adafocal(result))]
    told += [
        ("Calibration", _calibration(result)),
        ("Cross-entropy with temperature", _beside(result)),
    ]
    told.append(("What it costs", _price(result)))
    return [(title, words) for title, words in told if words]


def _claims(result: StudyResult) -> str:
    """Say what cross-entropy says of itself, and what is true."""
    one = baseline_of(result)
    if one is None or one.test is None:
        return "Cross-entropy could not be trained, so nothing here can be compared with it."
    name = "Cross-entropy, the usual loss,"
    error, verdict = figure_of(one.test, _ECE), one.test.verdict
    where = f"on the {judged_rows(result)}"
    if one.test.target == "top-label":
        gap = abs(100 * (verdict.mean_score - verdict.event_rate))
        said = f"{name} is on average {percent(verdict.mean_score)} sure of its predictions, and "
        said += f"{percent(verdict.event_rate)} of them are right {where}: a gap of {gap:.1f} "
        said += "percentage points."
    else:
        of = quoted(one.test.classes[-1])
        said = f"{name} gives class {of} a probability of {percent(verdict.mean_score)} on average,"
        said += f" and {percent(verdict.event_rate)} of the rows are of it {where}. "
        said += sentence(verdict.text)
    tail = f" Its calibration error (ECE) is {_with_chance(error)}." if error else ""
    return f"{said}{tail}{_no_more_than_chance(one.test)}"


def _no_more_than_chance(found: Evaluation) -> str:
    if found.verdict.miscalibrated is False and found.target == "top-label":
        return " That is no more than chance explains: it is not seen to be miscalibrated."
    return ""


def _with_chance(error: Figure) -> str:
    chance = "" if error.floor is None else f", where chance alone gives {number(error.floor.mean)}"
    return f"{number(error.value)}{chance}"


def _shift(result: StudyResult) -> str:
    """Say what the logs would have made one believe."""
    one = baseline_of(result) or result.best
    logs, gold = value_of(one.log_test, _ECE), value_of(one.test, _ECE)
    if one.log_test is None or one.test is None or logs is None or gold is None:
        return ""
    way = "too bad" if logs > gold else "too good"
    right = [percent(value_of(part, "accuracy")) for part in (one.log_test, one.test)]
    return (
        f"On held-out rows of the logs, the same model ({candidate_name(one)}) has a calibration "
        f"error of {number(logs)} and {right[0]} accuracy; on the golden rows {number(gold)} and "
        f"{right[1]}. Judged by the logs alone its calibration would look {way}."
    )


def _focal(result: StudyResult) -> str:
    tried = [one for one in trained(result, references=False) if family(one) == "focal"]
    words = _changes(result, tried, "Focal loss, which turns away from rows that are already right")
    if not words or len(tried) < 2:
        return words
    worst = max(tried, key=lambda one: value_of(one.test, _ECE) or 0.0)
    return f"{words} Of the {len(tried)} tried it has the smallest error; the largest is " + (
        f"{number(value_of(worst.test, _ECE))} ({candidate_name(worst)})."
    )


def _adafocal(result: StudyResult) -> str:
    tried = [one for one in trained(result, references=False) if family(one) == "adafocal"]
    return _changes(result, tried, "AdaFocal, which sets gamma by the errors it sees in training")


def _changes(result: StudyResult, tried: Sequence[CandidateResult], what: str) -> str:
    """Say what the best calibrated of some candidates does to error and accuracy."""
    known = [one for one in tried if value_of(one.test, _ECE) is not None]
    if not known:
        return ""
    best = min(known, key=lambda one: value_of(one.test, _ECE) or 0.0)
    here, base = figure_of(best.test, _ECE), baseline_of(result)
    there = None if base is None else figure_of(base.test, _ECE)
    called = f" ({candidate_name(best)})" if ":" in best.loss or best.seed else ""
    right = percent(value_of(best.test, "accuracy"))
    if base is None or here is None or there is None:
        error = number(value_of(best.test, _ECE))
        return f"{what}{called}: calibration error {error}, {right} accuracy."
    helps = "helps" if _value(here) < _value(there) else "does not help"
    apart = "" if _apart(here, there) else (
        " The intervals of the two errors overlap, so these rows alone do not prove a difference."
    )  # fmt: skip
    return (
        f"{what}, {helps} here{called}: before any calibration its error is {number(here.value)} "
        f"instead of {number(there.value)}, and its accuracy {right} instead of "
        f"{percent(value_of(base.test, 'accuracy'))}.{apart}"
    )


def _value(figure: Figure) -> float:
    return figure.value or 0.0


def _apart(a: Figure, b: Figure) -> bool:
    """Say whether two intervals have nothing in common."""
    if a.interval is None or b.interval is None:
        return False
    return a.interval.high < b.interval.low or b.interval.high < a.interval.low


def _calibration(result: StudyResult) -> str:
    """Say what the calibrator adds to the chosen candidate."""
    own, after = result.best.test, result.calibrated
    name, method = candidate_name(result.best), method_name(result.method)
    if result.method == "identity":
        return f"No calibrator helped {name} clearly, so its probabilities are used as they are."
    rows = result.splits.get("calibrate", {}).get("rows")
    fitted = "" if rows is None else f", fitted on {rows:,} calibrate rows,"
    losses, errors = ([value_of(part, n) for part in (own, after)] for n in (_NLL, _ECE))
    floor = figure_of(after, _ECE)
    chance = "" if floor is None or floor.floor is None else (
        f" (chance alone gives {number(floor.floor.mean)})"
    )  # fmt: skip
    return (
        f"{method[:1].upper()}{method[1:]}{fitted} takes the log loss of {name} from "
        f"{number(losses[0])} to {number(losses[1])} and its calibration error from "
        f"{number(errors[0])} to {number(errors[1])}{chance}."
    )


def _beside(result: StudyResult) -> str:
    """Put cross-entropy with temperature scaling beside the chosen one: it is the least to beat."""
    base = baseline_of(result)
    if base is None or base.scaled is None:
        return ""
    losses = [value_of(base.scaled, _NLL), value_of(result.calibrated, _NLL)]
    errors = [value_of(base.scaled, _ECE), value_of(result.calibrated, _ECE)]
    words = (
        f"Temperature scaling alone, which divides all scores by one number and changes no "
        f"prediction, takes cross-entropy to a calibration error of {number(errors[0])} and a log "
        f"loss of {number(losses[0])}"
    )
    if base is result.best or losses[0] is None or losses[1] is None:
        return f"{words}."
    better = "lower than" if losses[1] < losses[0] else "not lower than"
    return (
        f"{words}. The chosen model's are {number(errors[1])} and {number(losses[1])}: its log "
        f"loss is {better} that of cross-entropy with temperature scaling."
    )


def _price(result: StudyResult) -> str:
    """Say what is paid in accuracy."""
    base = baseline_of(result)
    if base is None:
        return ""
    then, now = (value_of(part, "accuracy") for part in (base.test, result.calibrated))
    before, after = (value_of(part, "f1_macro") for part in (base.test, result.calibrated))
    if then is None or now is None or before is None or after is None:
        return ""
    paid = "accuracy and F1 pay for it" if now < then and after < before else (
        "nothing is paid in accuracy" if now >= then else "accuracy pays for it"
    )  # fmt: skip
    same = "Accuracy stays at" if now == then else f"Accuracy goes from {percent(then)} to"
    return (
        f"{same} {percent(now)} and macro F1 (precision and recall in one number, all classes "
        f"alike) from {number(before, 3)} to {number(after, 3)} against plain cross-entropy: "
        f"{paid} on these rows."
    )
