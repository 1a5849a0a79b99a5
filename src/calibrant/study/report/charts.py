"""Chart data of a study's page."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from calibrant.reports.displays.epoch_panels import (
    bin_title,
    choose_bins,
    describe_range,
    filled_bins,
)
from calibrant.reports.evaluation.page_data import reliability_data
from calibrant.reports.threshold.view import chart_data
from calibrant.results import Evaluation
from calibrant.study.report.wording import (
    baseline_of,
    candidate_name,
    figure_of,
    method_name,
    trained_candidates,
    value_of,
)
from calibrant.study.result import CandidateResult, StudyResult

_POINTS = 300  # per curve, one curve per candidate
_RECORDED = ("refinement", "nll", "ece", "f1")
_ENDS = 0.05  # probabilities within this of 0 or 1 are at the ends


def chart_numbers(result: StudyResult) -> dict[str, Any]:
    """Return the data of all charts."""
    return {
        "candidates": [_candidate(one, result) for one in trained_candidates(result)],
        "bundle": {
            "name": f"{candidate_name(result.best)} with {method_name(result.method)}",
            "reliability": reliability_data(result.calibrated),
            "focus": focus_of(result.calibrated, result.focus),
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
