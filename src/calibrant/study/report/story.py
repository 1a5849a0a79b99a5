"""Summary of a study in a few sentences, computed from the measurements."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from calibrant.formatting import number, percent, quote_name, sentence
from calibrant.results import Evaluation, Figure
from calibrant.study.report.tables import race_data
from calibrant.study.report.wording import (
    baseline_of,
    candidate_name,
    family,
    figure_of,
    join_words,
    judged_rows,
    loss_name,
    method_name,
    singles,
    trained_candidates,
    value_of,
)
from calibrant.study.result import CandidateResult, StudyResult

_AVERAGES = {
    "ensemble": (
        "An ensemble gives the average of the probabilities of networks that were trained in the "
        "same way from different first weights (seeds): as one model, which takes as much work as "
        "all of them."
    ),
    "weighted": (
        "A weighted ensemble gives a weighted average of the probabilities of several models, each "
        "after its temperature: as one model, which takes as much work as all of them. Its weights "
        "are fitted on the choice rows, and its loss there is cross-fitted."
    ),
    "mc_dropout": (
        "MC dropout gives the average of the probabilities of one network with parts of it left "
        "out, other parts in each pass: as one model, which takes as much work as all passes."
    ),
}
"""What each kind of average is."""

_TITLES = {"ensemble": "Ensembles", "mc_dropout": "MC dropout", "weighted": "Weighted ensemble"}
_IDLE = (
    "It learned nothing: its log loss is no smaller than that of always giving the class shares, "
    "and a small calibration error of such a model means nothing."
)
_ECE, _NLL = "ece_ew", "nll"


def story(result: StudyResult) -> list[tuple[str, str]]:
    """Summarise the baseline, the effect of other losses and of calibration, and the cost."""
    sections = [
        ("The race of the models", _race(result)),
        ("The usual way", _claims(result)),
        ("Logs and golden rows", _shift(result)),
    ]
    sections += [("Focal loss", _focal(result)), ("AdaFocal", _adafocal(result))]
    sections += averages(result)
    sections += [
        ("Calibration", _calibration(result)),
        ("Cross-entropy with temperature", _beside(result)),
    ]
    sections.append(("What it costs", _price(result)))
    return [(title, words) for title, words in sections if words]


def _race(result: StudyResult) -> str:
    """Compare the models with cross-entropy, after temperature scaling on the choice rows."""
    race = race_data(result)
    if race is None:
        return ""
    known = [row for row in race["rows"] if not row["failed"]]
    listed = join_words(
        f"{row['name'].lower() if row['name'][1:].islower() else row['name']} {row['refinement']}"
        for row in known
    )
    return (
        f"With cross-entropy, the log loss of the choice rows after temperature scaling is: "
        f"{listed}. The other losses were trained with {race['winner']}, the first that is within "
        "one standard error of the best."
    )


def _claims(result: StudyResult) -> str:
    """Compare the confidence of cross-entropy with its accuracy."""
    one = baseline_of(result)
    if one is None or one.test is None:
        return "Cross-entropy could not be trained, so nothing here can be compared with it."
    name = f"{candidate_name(one)}, the usual loss,"
    error, verdict = figure_of(one.test, _ECE), one.test.verdict
    where = f"on the {judged_rows(result)}"
    if one.test.target == "top-label":
        gap = abs(100 * (verdict.mean_score - verdict.event_rate))
        words = f"{name} is on average {percent(verdict.mean_score)} sure of its predictions, and "
        words += f"{percent(verdict.event_rate)} of them are right {where}: a gap of {gap:.1f} "
        words += "percentage points."
    else:
        of = quote_name(one.test.classes[-1])
        words = (
            f"{name} gives class {of} a probability of {percent(verdict.mean_score)} on average,"
        )
        words += f" and {percent(verdict.event_rate)} of the rows are of it {where}. "
        words += sentence(verdict.text)
    tail = f" Its calibration error (ECE) is {_with_chance(error)}." if error else ""
    if not one.learned:
        return f"{words}{tail} {_IDLE}"
    return f"{words}{tail}{_tested(one.test)}"


def _tested(evaluation: Evaluation) -> str:
    """Return the result of the calibration test."""
    if evaluation.target != "top-label":  # part of the verdict already
        return ""
    error = figure_of(evaluation, _ECE)
    small = error is not None and error.floor is not None and _value(error) <= error.floor.q95
    if small and evaluation.verdict.miscalibrated is False:
        return " That is no more than chance explains: it is not seen to be miscalibrated."
    if evaluation.verdict.miscalibrated is None:
        return " These rows are too few for the test of calibration to judge it."
    seen = "finds miscalibration" if evaluation.verdict.miscalibrated else "finds no miscalibration"
    p = evaluation.verdict.p_value
    sure = "" if p is None else " (p < 0.001)" if p < 0.001 else f" (p = {p:.3f})"
    return f" The test of calibration {seen}{sure}."


def _with_chance(error: Figure) -> str:
    chance = "" if error.floor is None else f", where chance alone gives {number(error.floor.mean)}"
    return f"{number(error.value)}{chance}"


def _shift(result: StudyResult) -> str:
    """Compare the calibration error on the logs and on the golden rows."""
    one = baseline_of(result) or result.best
    logs, gold = figure_of(one.log_test, _ECE), figure_of(one.test, _ECE)
    if logs is None or gold is None or logs.value is None or gold.value is None:
        return ""
    judged = "On calibration, these rows do not tell the two apart."
    if _disjoint(logs, gold):
        way = "too bad" if logs.value > gold.value else "too good"
        judged = f"Judged by the logs alone its calibration would look {way}."
    right = [percent(value_of(part, "accuracy")) for part in (one.log_test, one.test)]
    return (
        f"On held-out rows of the logs, the same model ({candidate_name(one)}) has a calibration "
        f"error of {number(logs.value)} and {right[0]} accuracy; on the golden rows "
        f"{number(gold.value)} and {right[1]}. {judged}"
    )


def _focal(result: StudyResult) -> str:
    tried = [one for one in singles(result) if family(one) == "focal"]
    words = _changes(result, tried, "Focal loss, which turns away from rows that are already right")
    known = _by_loss(result, tried)
    if not words or len(known) < 2:
        return words
    worst = max(known, key=lambda pairs: _mean(own for own, _ in pairs) or 0.0)
    return f"{words} Of the {len(known)} compared it has the smallest error; the largest is " + (
        f"{number(_mean(own for own, _ in worst))} ({loss_name(worst[0][0].loss)})."
    )


def _adafocal(result: StudyResult) -> str:
    tried = [one for one in singles(result) if family(one) == "adafocal"]
    return _changes(result, tried, "AdaFocal, which sets gamma by the errors it sees in training")


Pairs = list[tuple[CandidateResult, CandidateResult | None]]


def _by_loss(result: StudyResult, tried: Sequence[CandidateResult]) -> list[Pairs]:
    """Return for each loss its candidates, each paired with cross-entropy of its model and seed.

    Only seeds that both were trained with count, unless there are none for any loss: then the
    candidates are unpaired. Candidates that learned nothing do not count.
    """
    usual = {
        (one.model, one.seed): one
        for one in singles(result)
        if one.loss == "ce" and one.learned and value_of(one.test, _ECE) is not None
    }
    known = [one for one in tried if one.learned and value_of(one.test, _ECE) is not None]
    beside = [one for one in known if (one.model, one.seed) in usual]
    by_loss: dict[tuple[str, str], Pairs] = {}
    for one in beside or known:
        pair = (one, usual.get((one.model, one.seed)))
        by_loss.setdefault((one.model, one.loss), []).append(pair)
    return list(by_loss.values())


def _mean(ones: Iterable[CandidateResult], name: str = _ECE) -> float | None:
    """Return the mean of a figure over seeds."""
    values = [value for one in ones if (value := value_of(one.test, name)) is not None]
    return sum(values) / len(values) if values else None


def _changes(result: StudyResult, tried: Sequence[CandidateResult], what: str) -> str:
    """Describe error and accuracy of the best calibrated of some losses, on equal seeds."""
    known = _by_loss(result, tried)
    if not known:
        return _nothing_learned(tried, what)
    best = min(known, key=lambda pairs: _mean(own for own, _ in pairs) or 0.0)
    own, usual = [one for one, _ in best], [one for _, one in best if one is not None]
    right, error = percent(_mean(own, "accuracy")), _mean(own)
    if not usual:
        return f"{what}{_loss_details(own)}: calibration error {number(error)}, {right} accuracy."
    then = _mean(usual)
    helps = "helps" if (error or 0.0) < (then or 0.0) else "does not help"
    before = percent(_mean(usual, "accuracy"))
    accuracy = "the same" if right == before else f"{right} instead of {before}"
    return (
        f"{what}, {helps} here{_loss_details(own)}: before any calibration its error is "
        f"{number(error)} instead of {number(then)}, and its accuracy is {accuracy}."
        f"{_overlap_caveat(own, usual)}"
    )


def _nothing_learned(tried: Sequence[CandidateResult], what: str) -> str:
    """Say that no candidate of a kind of loss learned anything, if there are any."""
    if not tried or any(one.learned for one in tried):
        return ""
    return f"{what}, was tried. {_IDLE}"


def _loss_details(own: Sequence[CandidateResult]) -> str:
    """Return the options of a loss, its seed, or the number of seeds of a mean."""
    one = own[0]
    if len(own) > 1:
        return f" ({loss_name(one.loss)}; means over {len(own)} seeds)"
    return f" ({candidate_name(one)})" if ":" in one.loss or one.seed else ""


def _overlap_caveat(own: Sequence[CandidateResult], usual: Sequence[CandidateResult]) -> str:
    """Return a caveat if these rows do not prove a difference."""
    pairs = zip(own, usual, strict=True)
    close = sum(not _disjoint(a.test[_ECE], b.test[_ECE]) for a, b in pairs if a.test and b.test)
    if not close:
        return ""
    where = "" if len(own) == 1 else f" with {close} of the {len(own)} seeds"
    return (
        f" The intervals of the two errors overlap{where}, so these rows alone do not prove a "
        "difference."
    )


def _value(figure: Figure) -> float:
    return figure.value or 0.0


def _disjoint(a: Figure, b: Figure) -> bool:
    """Return whether two intervals are disjoint."""
    if a.interval is None or b.interval is None:
        return False
    return a.interval.high < b.interval.low or b.interval.high < a.interval.low


def _calibration(result: StudyResult) -> str:
    """Describe the effect of the calibrator on the chosen candidate."""
    own, after = result.best.test, result.calibrated
    name, method = candidate_name(result.best), method_name(result.method)
    losses, errors = ([value_of(part, n) for part in (own, after)] for n in (_NLL, _ECE))
    if result.method == "identity" and result.choice is not None:
        return f"No calibrator helped {name} clearly, so its probabilities are used as they are."
    if result.method == "identity":
        return (
            f"No calibrator was asked for, so the probabilities of {name} are used as they are: "
            f"log loss {number(losses[1])}, calibration error {number(errors[1])}{_chance(after)}."
        )
    rows = result.splits.get("calibrate", {}).get("rows")
    details = ["asked for"] if result.choice is None else []
    details += [] if rows is None else [f"fitted on {rows:,} calibrate rows"]
    fitted = f", {' and '.join(details)}," if details else ""
    return (
        f"{method[:1].upper()}{method[1:]}{fitted} takes the log loss of {name} from "
        f"{number(losses[0])} to {number(losses[1])} and its calibration error from "
        f"{number(errors[0])} to {number(errors[1])}{_chance(after)}."
    )


def _chance(evaluation: Evaluation) -> str:
    error = figure_of(evaluation, _ECE)
    if error is None or error.floor is None:
        return ""
    return f" (chance alone gives {number(error.floor.mean)})"


def _beside(result: StudyResult) -> str:
    """Compare the chosen model with cross-entropy and temperature scaling."""
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
    """Describe the change in accuracy."""
    base = baseline_of(result)
    if base is None or (base is result.best and result.method == "identity"):
        return ""  # nothing was changed
    then, now = (value_of(part, "accuracy") for part in (base.test, result.calibrated))
    before, after = (value_of(part, "f1_macro") for part in (base.test, result.calibrated))
    if then is None or now is None or before is None or after is None:
        return ""
    paid = "accuracy and F1 pay for it" if now < then and after < before else (
        "nothing is paid in accuracy" if now >= then else "accuracy pays for it"
    )  # fmt: skip
    against = "the same model uncalibrated" if base is result.best else "plain cross-entropy"
    same = "Accuracy stays at" if now == then else f"Accuracy goes from {percent(then)} to"
    return (
        f"{same} {percent(now)} and macro F1 (precision and recall in one number, all classes "
        f"alike) from {number(before, 3)} to {number(after, 3)} against {against}: {paid} on these "
        "rows."
    )


def way_sentences(result: StudyResult) -> list[str]:
    """Return one sentence for each kind of average among the candidates."""
    ways = {one.way for one in trained_candidates(result)}
    return [words for way, words in _AVERAGES.items() if way in ways]


def averages(result: StudyResult) -> list[tuple[str, str]]:
    """Describe the effect of averaging for the best ensemble and the best MC dropout."""
    return [
        (title, words)
        for way, title in _TITLES.items()
        if (words := _describe_average(result, way))
    ]


def _describe_average(result: StudyResult, way: str) -> str:
    tried = [one for one in trained_candidates(result, references=False) if one.way == way]
    if not tried:
        return ""
    best = min(tried, key=lambda one: (one.refinement is None, one.refinement))
    if way == "weighted":
        return _describe_weighted(best)
    parts = _averaged_networks(result, best)
    then, now = _mean_value(parts, "scaled", "nll"), value_of(best.scaled, "nll")
    right = [_mean_value(parts, "test", "accuracy"), value_of(best.test, "accuracy")]
    if then is None or now is None:
        return ""
    of = f"{len(parts)} networks have on average" if len(parts) > 1 else "network alone has"
    # No verdict: the difference may not generalise to other rows.
    return (
        f"{candidate_name(best)}: after temperature scaling its log loss is {number(now)}, where "
        f"its {of} {number(then)}; its accuracy is {percent(right[1])} instead of "
        f"{percent(right[0])}."
    )


def _describe_weighted(one: CandidateResult) -> str:
    """Describe the members of a weighted ensemble, what it gains and what it costs."""
    members = join_words(f"{percent(weight)} {name}" for name, weight in one.mixture)
    return (
        f"{members}: log loss {number(value_of(one.scaled, 'nll'))} after temperature scaling, "
        f"accuracy {percent(value_of(one.test, 'accuracy'))}. It takes {one.seconds:,.0f} seconds "
        f"to train and {1e6 * one.score_seconds:,.0f} microseconds to score a row, and is chosen "
        "only where it is clearly better than the best single model."
    )


def _averaged_networks(result: StudyResult, one: CandidateResult) -> list[CandidateResult]:
    """Return the networks that a candidate averages."""
    seeds = one.members or (one.seed,)
    return [
        network
        for network in singles(result)
        if (network.model, network.loss) == (one.model, one.loss) and network.seed in seeds
    ]


def _mean_value(ones: Sequence[CandidateResult], part: str, name: str) -> float | None:
    values = [value for one in ones if (value := value_of(getattr(one, part), name)) is not None]
    return sum(values) / len(values) if values else None
