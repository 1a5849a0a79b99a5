"""The tables of a study as plain values: candidates, splits, calibrators, rule, truth, settings."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from calibrant.formatting import floor_words, format_signed, number, percent, sentence
from calibrant.metrics.catalogue import better_of, title_of
from calibrant.results import Evaluation, Figure
from calibrant.study.report.wording import (
    baseline_of,
    candidate_name,
    capitalise,
    figure_of,
    method_name,
    model_name,
    shown_name,
    trained_candidates,
    value_of,
)
from calibrant.study.result import CandidateResult, KnownTruth, OutOfScope, StudyResult

COLUMNS = (
    ("accuracy", "Accuracy"),
    ("precision_macro", "Precision"),
    ("recall_macro", "Recall"),
    ("f1_macro", "F1"),
    ("nll", "Log loss"),
    ("ece_ew", "ECE"),
    ("mce", "MCE"),
)
"""The columns of the paper's table; precision, recall and F1 are means over classes."""

_MOST_CLASSES = 30  # of the table of splits
_SOURCES = {"logs": "the logs", "golden": "the golden set"}
_USES = {
    "train": "the models learn from them",
    "steer": "they choose the epoch that is kept, and AdaFocal follows them",
    "choice": "they choose the candidate; nobody was trained or steered by them",
    "log_test": "they show how the logs differ from the golden set",
    "calibrate": "they fit the calibrator and choose the thresholds",
    "test": "they judge; nothing is chosen by them",
    "out_of_scope": "they belong to no class and test the out-of-scope rule",
}
_STEER_ALONE = "they choose the epoch that is kept; of several candidates, that one too"
"""Without choice rows: a single candidate, or a study of an earlier version."""

NOTHING_LEARNED = "learned nothing"
"""What is said of a candidate that is not better than the class shares."""

_SCORES = {
    "energy": "energy (how little all scores together speak for any class)",
    "entropy": "entropy (how evenly the probability is spread over the classes)",
    "unreadable": "unreadable (whether the model cannot read the row)",
    "max_logit": "largest score (how little the best class stands out)",
}


def best_values(result: StudyResult) -> dict[tuple[str, str], float]:
    """Return the best value of each column among the eligible candidates that learned something.

    A constant prediction is calibrated whatever it is worth.
    """
    best: dict[tuple[str, str], float] = {}
    for part in ("test", "scaled"):
        for name, _ in COLUMNS:
            values = [
                value
                for one in trained_candidates(result, references=False)
                if one.learned and (value := value_of(getattr(one, part), name)) is not None
            ]
            if len(values) > 1:
                best[part, name] = (max if better_of(name) == "higher" else min)(values)
    return best


def candidate_rows(result: StudyResult) -> list[dict[str, Any]]:
    """Return a row for each candidate, failed ones with their reason."""
    best = best_values(result)
    return [_candidate_row(one, one is result.best, best) for one in result.candidates]


def _candidate_row(
    one: CandidateResult, chosen: bool, best: Mapping[tuple[str, str], float]
) -> dict[str, Any]:
    judged = best if one.learned and not one.reference else {}
    note = "chosen" if chosen else "for reference, cannot be chosen" if one.reference else ""
    if not one.learned:
        note = ", ".join(word for word in (note, NOTHING_LEARNED) if word)
    return {
        "name": candidate_name(one),
        "failed": "" if one.failed is None else sentence(one.failed),
        "lacking": "trained" if one.way == "one" else "made",
        "note": note,
        "chosen": chosen,
        "reference": one.reference,
        "learned": one.learned,
        "refinement": number(one.refinement),
        "cells": [_cell(one.test, name, judged.get(("test", name))) for name, _ in COLUMNS],
        "scaled": [
            _cell(one.scaled, name, judged.get(("scaled", name))) for name in ("nll", "ece_ew")
        ],
        "temperature": number(one.temperature, 2),
        "epochs": f"{one.best_epoch + 1} of {one.epochs}" if one.epochs else "–",
        "behind": _behind(one),
        **_costs(one),
    }


def _behind(one: CandidateResult) -> str:
    """Format how far a candidate is behind the best one on the choice rows."""
    if not one.behind or one.behind_error is None:
        return ""
    return f"{number(one.behind)} \N{PLUS-MINUS SIGN} {number(one.behind_error)} behind"


def _costs(one: CandidateResult) -> dict[str, str]:
    micros = 1e6 * one.score_seconds
    return {
        "seconds": f"{one.seconds:,.0f}" if one.seconds >= 1 else number(one.seconds, 1),
        "micros": f"{micros:,.0f}" if micros >= 1 else "< 1" if micros else "–",
        "weights": f"{one.weights:,}" if one.weights else "–",
    }


def race_data(result: StudyResult) -> dict[str, Any] | None:
    """Return the race of the models with cross-entropy, or None for a single model."""
    racers: dict[str, CandidateResult] = {}
    for one in result.candidates:
        if one.raced and one.loss == "ce" and one.way == "one":
            racers.setdefault(one.model, one)
    if len(racers) < 2:
        return None
    winner = result.winner
    rows = [
        {
            "name": capitalise(model_name(one.model)),
            "won": one.model == winner,
            "failed": "" if one.failed is None else sentence(one.failed),
            "refinement": number(one.refinement),
            "behind": _behind(one).removesuffix(" behind") or "–",
            "accuracy": percent(value_of(one.test, "accuracy")),
            "nll": number(value_of(one.scaled, "nll"), 3),
            **_costs(one),
        }
        for one in racers.values()
    ]
    return {"winner": model_name(winner), "rows": rows}


def _cell(evaluation: Evaluation | None, name: str, best: float | None) -> dict[str, Any]:
    figure = figure_of(evaluation, name)
    value = None if figure is None else figure.value
    return {
        "value": number(value, 3),
        "interval": _short_interval(figure, 3 if name == "ece_ew" else 2),
        "floor": "" if figure is None else floor_words(figure.floor),
        "best": value is not None and value == best,
        "why": "" if figure is None or figure.value is not None else figure.why or "",
    }


def _short_interval(figure: Figure | None, digits: int) -> str:
    """Format an interval briefly, so that ten columns fit on a page."""
    if figure is None or figure.interval is None:
        return ""
    return f"{figure.interval.low:.{digits}f}–{figure.interval.high:.{digits}f}"


def bundle_rows(result: StudyResult) -> list[dict[str, Any]]:
    """Return the rows of the bundle and of cross-entropy with temperature scaling."""
    name = f"{candidate_name(result.best)} with {method_name(result.method)}"
    shown = [(name, "the bundle", result.calibrated)]
    base = baseline_of(result)
    if base is not None and base.scaled is not None:
        other = f"{candidate_name(base)} with temperature scaling"
        if base is not result.best or result.method != "temperature":
            shown.append((other, "beside it", base.scaled))
    return [
        {
            "name": name,
            "note": note,
            "cells": [_cell(evaluation, column, None) for column, _ in COLUMNS],
            "floor": _floor(evaluation),
        }
        for name, note, evaluation in shown
    ]


def _floor(evaluation: Evaluation) -> str:
    figure = figure_of(evaluation, "ece_ew")
    return "" if figure is None else floor_words(figure.floor)


def shift_rows(result: StudyResult) -> list[dict[str, Any]]:
    """Return the same figures on the test rows and on held-out rows of the logs."""
    return [
        {
            "name": candidate_name(one),
            "chosen": one is result.best,
            "accuracy": [percent(value_of(part, "accuracy")) for part in (one.test, one.log_test)],
            "nll": [number(value_of(part, "nll"), 3) for part in (one.test, one.log_test)],
            "ece": [number(value_of(part, "ece_ew"), 3) for part in (one.test, one.log_test)],
            "gap": [_gap(part) for part in (one.test, one.log_test)],
        }
        for one in trained_candidates(result)
        if one.log_test is not None
    ]


def _gap(evaluation: Evaluation | None) -> str:
    """Format mean confidence minus event rate, in percentage points."""
    if evaluation is None:
        return "–"
    points = 100 * (evaluation.verdict.mean_score - evaluation.verdict.event_rate)
    return f"{points + 0.0:+.1f}"


def split_data(result: StudyResult) -> dict[str, Any]:
    """Return the rows of each split; of many classes only the largest."""
    parts = result.splits
    total: dict[str, int] = {}
    for part in parts.values():
        for name, rows in part.get("classes", {}).items():
            total[name] = total.get(name, 0) + rows
    names = list(total)
    if len(names) > _MOST_CLASSES:
        names = sorted(names, key=lambda name: -total[name])[:_MOST_CLASSES]
    return {
        "parts": list(split_rows(parts)),
        "columns": [name.replace("_", " ") for name in parts],
        "classes": [
            {"name": shown_name(name), "cells": [_share(part, name) for part in parts.values()]}
            for name in names
        ],
        "shown": len(names),
        "all": len(total),
    }


def split_rows(parts: Mapping[str, Mapping[str, Any]]) -> Iterator[dict[str, str]]:
    """Yield source, size and use of each split."""
    uses = _USES if "choice" in parts else {**_USES, "steer": _STEER_ALONE}
    for name, part in parts.items():
        yield {
            "name": name.replace("_", " "),
            "source": _SOURCES.get(str(part.get("source")), str(part.get("source", ""))),
            "rows": f"{part['rows']:,}",
            "use": uses.get(name, ""),
        }


def _share(part: Mapping[str, Any], name: str) -> tuple[str, str]:
    rows = part.get("classes", {}).get(name, 0)
    return f"{rows:,}", percent(rows / part["rows"]) if part["rows"] else ""


def calibrator_rows(result: StudyResult) -> list[dict[str, str]]:
    """Return the compared calibrators."""
    if result.choice is None:
        return []
    return [
        {
            "method": method_name(one.method),
            "score": number(one.score),
            "gain": "" if one.method == "identity" else format_signed(one.gain),
            "error": "" if one.method == "identity" else number(one.gain_error),
            "ece": number(one.ece_em),
            "note": f"left out: {one.why_not}" if one.why_not else "",
            "chosen": "chosen" if one.method == result.choice.chosen else "",
        }
        for one in result.choice.candidates
    ]


def scope_data(rule: OutOfScope | None) -> dict[str, Any] | None:
    """Describe the out-of-scope rule."""
    if rule is None:
        return None
    passed = percent(rule.quantile)
    known = (
        "The model itself knows what it cannot read: a number far outside the train rows, a "
        "category that they lack, a text without a known word. Such a row is never acted on and "
        f"goes to a person. Of the in-scope test rows the rule stops {percent(rule.flagged)}."
    )
    return {
        "words": known
        if rule.score == "unreadable"
        else (
            f"A row whose {_SCORES.get(rule.score, rule.score)} score is above a threshold is "
            "unlike the train rows: it is never acted on, whatever its probability, and goes to a "
            f"person. Each predicted class has its threshold, which lets {passed} of its in-scope "
            "rows through by design (a class that hardly any row is predicted as is let through "
            f"whole); fitted on {rule.n:,} rows. Of the in-scope test rows the rule stops "
            f"{percent(rule.flagged)}."
        ),
        "rows": [
            {
                "score": name.replace("_", " "),
                "used": name == rule.score,
                "auroc": number(row.get("auroc"), 3),
                "fpr95": percent(row.get("fpr95")),
                "caught": percent(row.get("caught")),
            }
            for name, row in rule.scores.items()
        ],
        "outside": f"{rule.out_of_scope:,}",
    }


def truth_data(result: StudyResult) -> dict[str, Any] | None:
    """Return the true figures beside the estimates of the test rows."""
    known = result.truth
    if known is None:
        return None
    by_name = {one.name: one for one in trained_candidates(result)}
    rows = [
        {
            "name": candidate_name(by_name[name]) if name in by_name else shown_name(name),
            "chosen": by_name.get(name) is result.best,
            "own": number(row.get("own")),
            "scaled": number(row.get("scaled")),
            "estimate": number(value_of(by_name[name].test, "ece_ew") if name in by_name else None),
        }
        for name, row in known.true_ce.items()
    ]
    return {
        "rows": f"{known.rows:,}",
        "bayes": percent(known.bayes_accuracy),
        "accuracy": percent(known.accuracy),
        "lost": f"{100 * (known.bayes_accuracy - known.accuracy):.1f}",
        "calibrated": number(known.calibrated),
        "bundle": f"{candidate_name(result.best)} with {method_name(result.method)}",
        "table": rows,
        "each": _each_words(known, "messages" if result.kind == "text" else "rows"),
    }


def _each_words(known: KnownTruth, what: str) -> str:
    """Return which fresh rows the true errors were computed on."""
    if not known.each:
        return ""
    return (
        f"All true errors, the bundle's too, are from the first {known.each:,} of the fresh {what} "
        "that belong to a class."
    )


def config_rows(config: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield the settings, nested ones with their path.

    Examples
    --------
    >>> list(config_rows({"label": "reason", "training": {"epochs": 8}, "seeds": [0, 1]}))
    [('label', 'reason'), ('training.epochs', '8'), ('seeds', '0, 1')]
    """
    for name, value in config.items():
        path = f"{prefix}{name}"
        if isinstance(value, Mapping):
            yield from config_rows(value, f"{path}.")
        elif isinstance(value, list | tuple):
            yield path, ", ".join(map(str, value)) or "none"
        else:
            yield path, "not set" if value is None else str(value)


def definition_rows(result: StudyResult) -> Iterator[tuple[str, str]]:
    """Yield the definition of each metric."""
    for name, _ in COLUMNS:
        figure = figure_of(result.calibrated, name)
        if figure is not None and figure.definition:
            yield title_of(name), sentence(figure.definition)
    interval = next(
        (f.interval for f in result.calibrated.figures.values() if f.interval is not None), None
    )
    if interval is not None:
        level = f"{100 * interval.confidence:g} %"
        yield (
            "Intervals",
            f"Where the value of all rows of this kind lies, with {level} confidence.",
        )


def choice_data(splits: Collection[str], candidates: int) -> dict[str, str]:
    """Describe the column of log losses after temperature scaling, and its role in the choice.

    Early studies had no choice rows and chose on the steer rows.

    Examples
    --------
    >>> choice_data(("train", "steer", "choice"), 5)["title"]
    'Choice log loss'
    >>> choice_data(("train", "steer"), 1)["decides"]
    ''
    """
    rows = "choice" if "choice" in splits else "steer"
    what = f"The {rows} log loss, after temperature scaling on the {rows} rows, is"
    if candidates < 2:
        words = f"{what} that of the epoch that they kept: one candidate leaves nothing to choose."
    elif rows == "steer":
        words = (
            f"{what} what the candidate was chosen by. These rows also steered the training, so it "
            "is too good for a candidate that followed them closely."
        )
    else:
        words = (
            f"{what} what the candidate was chosen by: the first of a fixed order (cross-entropy "
            "before other losses, single models before averages) that is within one standard error "
            "of the smallest. Nobody was trained or steered by these rows."
        )
    decides = "decides" if candidates > 1 else ""
    return {
        "rows": rows,
        "title": f"{rows.capitalize()} log loss",
        "decides": decides,
        "words": words,
    }
