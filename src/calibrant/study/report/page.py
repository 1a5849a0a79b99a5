"""Self-contained HTML page of a study, and the data of its charts."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from calibrant.files.atomic_write import check_writable
from calibrant.formatting import describe_target, format_count, percent, sentence
from calibrant.reports.displays.epoch_panels import (
    bin_title,
    choose_bins,
    describe_range,
    filled_bins,
)
from calibrant.reports.evaluation.page import render_page, write_page
from calibrant.reports.evaluation.page_data import reliability_data, scheme_words, script_json
from calibrant.reports.threshold.section import section_data
from calibrant.reports.threshold.view import chart_data
from calibrant.reports.threshold.wording import decision_score_words
from calibrant.results import Evaluation
from calibrant.study.report.headline import (
    headline_data,
    promise_data,
    scores_words,
    several_words,
)
from calibrant.study.report.lead import lead_data
from calibrant.study.report.story import story, way_sentences
from calibrant.study.report.tables import (
    COLUMNS,
    bundle_rows,
    calibrator_rows,
    candidate_rows,
    choice_data,
    config_rows,
    definition_rows,
    race_data,
    scope_data,
    shift_rows,
    split_data,
    truth_data,
)
from calibrant.study.report.wording import (
    baseline_of,
    candidate_name,
    chosen_name,
    figure_of,
    judged_rows,
    judged_words,
    method_name,
    short_name,
    shown_name,
    trained_candidates,
    value_of,
)
from calibrant.study.result import CandidateResult, PointResult, StudyResult
from calibrant.thresholds import OperatingPoint

_POINTS = 300  # per curve, one curve per candidate
_RECORDED = ("refinement", "nll", "ece", "f1")
_ENDS = 0.05  # probabilities within this of 0 or 1 are at the ends


def study_html(result: StudyResult, *, source: str | None = None) -> str:
    """Return a study as one self-contained HTML page.

    The page starts with the chosen model, its calibration and its promises; then come the summary,
    the candidates, the charts, and their data. Names of classes are escaped.
    """
    numbers = chart_numbers(result)
    data = {**_join_percent_signs(_page_data(result, numbers)), "charts": script_json(numbers)}
    return render_page("study", data, title=result.title, source=source, scripts=("threshold",))


def write_study_html(
    result: StudyResult,
    path: str | os.PathLike[str],
    *,
    source: str | None = None,
    name: str = "path",
) -> Path:
    """Write the page of `study_html` to `path` atomically and return the path."""
    check_writable(path, name=name)  # before the page is rendered
    return write_page(study_html(result, source=source), path, name=name)


def _join_percent_signs(value: Any) -> Any:
    """Keep numbers and their percent signs on one line."""
    if isinstance(value, str):
        return value.replace(" %", "\N{NO-BREAK SPACE}%")
    if isinstance(value, list | tuple):
        return [_join_percent_signs(part) for part in value]
    if isinstance(value, dict):
        return {key: _join_percent_signs(part) for key, part in value.items()}
    return value


def _page_data(result: StudyResult, numbers: dict[str, Any]) -> dict[str, Any]:
    points = [_point(one, k, result) for k, one in enumerate(result.points)]
    return {
        **headline_data(result),
        "lead": lead_data(result, numbers, points),
        "size": _size(result),
        "story": story(result),
        "golden": result.golden,
        "judged_rows": judged_rows(result),
        "judged_words": judged_words(result),
        "columns": [title for _, title in COLUMNS],
        "race": race_data(result),
        "candidates": candidate_rows(result),
        "ways": way_sentences(result),
        "bundle": bundle_rows(result),
        "shift": shift_rows(result),
        "best_name": chosen_name(result),
        "calibrates": result.method != "identity",
        "method": method_name(result.method),
        "calibrators": calibrator_rows(result),
        "choice": choice_data(result.splits, _n_candidates(result)),
        "level": f"{100 * result.calibrated.confidence:g} %",
        "schemes": scheme_words(result.calibrated),
        "judged": describe_target(result.calibrated),
        **_chart_words(result, numbers),
        "points": points,
        "checked_by": _checked_by(result),
        "several": several_words(result),
        "scores": scores_words(result),
        "actions": _actions(result),
        "scope": scope_data(result.out_of_scope),
        "truth": truth_data(result),
        **_fresh_checks(result),
        "splits": split_data(result),
        "config": list(config_rows(result.config)),
        "definitions": list(definition_rows(result)),
        "notes": [sentence(note) for note in result.notes],
    }


def _n_candidates(result: StudyResult) -> int:
    """Return the number of candidates, including failed ones."""
    return sum(not one.reference for one in result.candidates)


def _size(result: StudyResult) -> str:
    rows = sum(part["rows"] for part in result.splits.values())
    took = f", {result.seconds / 60:,.0f} minutes" if result.seconds >= 90 else ""
    candidates = format_count(len(trained_candidates(result, references=False)), "candidate")
    classes = format_count(len(result.classes), "class")
    return f"{format_count(rows, 'row')}, {classes}, {candidates}{took}"


def _chart_words(result: StudyResult, numbers: dict[str, Any]) -> dict[str, Any]:
    """Return which charts are drawn, and their titles."""
    drawn = [one for one in numbers["candidates"] if one["focus"] is not None]
    return {
        "reliable": _fixed_diagrams(result),
        **_selectable_diagrams(numbers["candidates"]),
        "has_logs": any(one.log_test is not None for one in trained_candidates(result)),
        "focus": shown_name(result.focus),
        "legend": [
            {
                "name": candidate_name(one),
                "chosen": one is result.best,
                "reference": one.reference,
                "recorded": bool(one.records),
            }
            for one in trained_candidates(result)
        ],
        "panels": [
            {"name": one["name"], "ends": percent(one["focus"]["ends"])}
            for one in [*drawn, *([numbers["bundle"]] if numbers["bundle"]["panel"] else [])]
        ],
        "has_focus": bool(drawn),
        "has_records": has_records(result),
        "gammas": [candidate_name(one) for one in trained_candidates(result) if has_gammas(one)],
    }


def _selectable_diagrams(candidates: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the selectable diagrams; cross-entropy with temperature scaling is the default."""
    diagrams = [
        (f"{k} {part}", f"{one['name']}, {words}", one["baseline"] and part == "scaled")
        for k, one in enumerate(candidates)
        for part, words in (("scaled", "after temperature scaling"), ("own", "as it is"))
        if one["reliability"][part] is not None
    ]
    first = next((key for key, _, usual in diagrams if usual), diagrams[0][0] if diagrams else "")
    return {"others": [(key, words) for key, words, _ in diagrams], "other": first}


def _fixed_diagrams(result: StudyResult) -> list[dict[str, str]]:
    """Return the fixed reliability diagrams: cross-entropy, chosen, calibrated if it differs."""
    base, best = baseline_of(result), result.best
    shown = []
    if base is not None and base is not best:
        shown.append(("base", base, base.test, "as it is"))
    shown.append(("best", best, best.test, "as it is"))
    if result.method != "identity":
        shown.append(("bundle", best, result.calibrated, f"with {method_name(result.method)}"))
    return [
        {
            "key": key,
            "title": f"{candidate_name(one)}, {how}",
            "verdict": "" if evaluation is None else sentence(evaluation.verdict.text),
        }
        for key, one, evaluation, how in shown
    ]


def _fresh_checks(result: StudyResult) -> dict[str, Any]:
    """Return the check of each promise on fresh rows."""
    promises = []
    for point in result.points:
        data = promise_data(point, result)
        if point.fresh is not None:
            promises.append(
                {**data["checks"][-1], "title": data["title"], "decides": point.decides}
            )
    states = {one["state"] for one in promises}
    return {
        "truth_promises": promises,
        "truth_state": "bad" if "bad" in states else "good" if "good" in states else "",
        "rows_word": "messages" if result.kind == "text" else "rows",
    }


def _checked_by(result: StudyResult) -> str:
    """Return a clause naming the rows that check the promises, or an empty text."""
    rows = [point.check.n for point in result.points if point.check is not None]
    if not rows:
        return ""
    too = ", those that belong to no class too" if rows[0] > result.calibrated.n else ""
    return f"the {judged_rows(result, rows[0])} then check it{too}"


def _point(point: PointResult, k: int, result: StudyResult) -> dict[str, Any]:
    """Return the data of a promise and its section."""
    source = "" if result.method == "identity" else "model's own"
    section = section_data(point.view, k, source=source)
    return {**section, "promise": promise_data(point, result)}


def _actions(result: StudyResult) -> list[dict[str, str]]:
    """Return the action and its threshold for each class that has either."""
    decided: dict[str, str] = {
        str(point.result.of): decision_score_words(
            point.result.threshold, point.result.logit, calibrated=point.calibrated_threshold
        )
        for point in result.points
        if point.decides and isinstance(point.result, OperatingPoint)
    }
    names = [*result.actions, *(name for name in decided if name not in result.actions)]
    return [
        {
            "name": "a prediction of any class" if name == "None" else shown_name(name),
            "does": result.actions.get(name, "not named"),
            "when": f"from {decided[name]} on"
            if name in decided
            else "never: there is no promised threshold",
        }
        for name in names
    ]


def chart_numbers(result: StudyResult) -> dict[str, Any]:
    """Return the data of all charts."""
    candidates = [_candidate(one, result) for one in trained_candidates(result)]
    focus = focus_of(result.calibrated, result.focus)
    seen = result.method == "identity" and any(one["focus"] for one in candidates)
    return {
        "candidates": candidates,
        "bundle": {
            "name": f"{candidate_name(result.best)} with {method_name(result.method)}",
            "reliability": reliability_data(result.calibrated),
            "focus": focus,
            "panel": focus is not None and not seen,  # else its curves are those of a candidate
            "ece": value_of(result.calibrated, "ece_ew"),
            "accuracy": value_of(result.calibrated, "accuracy"),
            "nll": value_of(result.calibrated, "nll"),
        },
        "floor": _floor(result.calibrated),
        "gammas": [gamma_data(one) for one in trained_candidates(result) if has_gammas(one)],
        "points": [chart_data(point.view) for point in result.points],
    }


def _candidate(one: CandidateResult, result: StudyResult) -> dict[str, Any]:
    parts = {"own": one.test, "scaled": one.scaled, "logs": one.log_test}
    return {
        "name": candidate_name(one),
        "short": short_name(one, result.winner),
        "chosen": one is result.best,
        "baseline": one is baseline_of(result),
        "reference": one.reference,
        "reliability": {
            key: None if evaluation is None else reliability_data(evaluation)
            for key, evaluation in parts.items()
        },
        "focus": None if one.test is None else focus_of(one.test, result.focus),
        "accuracy": value_of(one.test, "accuracy"),
        "nll": value_of(one.scaled, "nll"),
        "ece": value_of(one.test, "ece_ew"),
        "scaledEce": value_of(one.scaled, "ece_ew"),
        "best": one.best_epoch,
        "epochs": [int(record["epoch"]) + 1 for record in one.records],
        "records": {name: _column(one.records, name) for name in _RECORDED},
    }


def focus_of(evaluation: Evaluation, focus: Any) -> dict[str, Any] | None:
    """Return histogram and curve of the class in focus, or None if they were not stored."""
    entries = evaluation.curves.get("classes") or ()
    entry = next((entry for entry in entries if entry["class"] == focus), None)
    if entry is None:
        return None
    curve = entry.get("curve") or {}
    indices = _thin_indices(len(curve.get("threshold") or ()))
    names = ("threshold", "precision", "recall", "flagged")
    counts = {name: _round_all(entry.get(name) or ()) for name in ("with_event", "without_event")}
    return {
        **{
            name: _round_all(np.asarray(curve.get(name) or (), dtype=float)[indices])
            for name in names
        },
        **counts,
        "edges": _round_all(entry.get("edges") or ()),
        "ends": _at_ends(entry),
    }


def _thin_indices(n: int) -> Any:
    """Return the indices of a thinned curve, including the first and last."""
    return np.unique(np.linspace(0, n - 1, min(n, _POINTS)).round().astype(int)) if n else []


def _at_ends(entry: Mapping[str, Any]) -> float | None:
    """Return the share of rows whose probability is near 0 or 1."""
    edges = np.asarray(entry.get("edges") or (), dtype=float)
    if len(edges) < 2:
        return None
    rows = np.asarray(entry["with_event"], dtype=float) + np.asarray(entry["without_event"])
    outer = (edges[1:] <= _ENDS + 1e-9) | (edges[:-1] >= 1 - _ENDS - 1e-9)
    return float(rows[outer].sum() / rows.sum()) if rows.sum() > 0 else None


def _floor(evaluation: Evaluation) -> dict[str, float] | None:
    figure = figure_of(evaluation, "ece_ew")
    if figure is None or figure.floor is None:
        return None
    return {"mean": figure.floor.mean, "most": figure.floor.q95}


def has_records(result: StudyResult) -> bool:
    """Return whether any candidate has epoch records."""
    return any(one.records for one in trained_candidates(result))


def has_gammas(one: CandidateResult) -> bool:
    """Return whether a candidate has a history of gammas."""
    return one.gammas is not None and len(one.gammas["step"]) > 0


def gamma_data(one: CandidateResult) -> dict[str, Any]:
    """Return error and gamma of the lowest, middle and highest bin, update by update."""
    assert one.gammas is not None
    table = {
        name: np.array(one.gammas[name], dtype=float) for name in ("error", "gamma", "edges")
    }  # None becomes NaN
    count = np.array(one.gammas["count"], dtype=int)
    filled = filled_bins(table["error"])
    bins = choose_bins(table["gamma"].shape[1], None, filled)
    return {
        "name": candidate_name(one),
        "step": [int(step) for step in one.gammas["step"]],
        "bins": [
            {
                "title": bin_title(b, filled),
                "sure": describe_range(b, table["edges"][-1], count[-1]),
                "error": _round_all(table["error"][:, b]),
                "gamma": _round_all(table["gamma"][:, b]),
            }
            for b in bins
        ],
    }


def _column(records: Iterable[Mapping[str, Any]], name: str) -> list[float | None]:
    return _round_all(math.nan if record[name] is None else record[name] for record in records)


def _round_all(values: Iterable[float]) -> list[float | None]:
    """Round to six digits to keep the page small; NaN becomes null."""
    return [float(f"{v:.6g}") if math.isfinite(v) else None for v in values]
