"""Self-contained HTML page of operating points: the promise and the operating curve."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from calibrant.errors import TargetUnreachable
from calibrant.files.atomic_write import check_writable
from calibrant.formatting import format_count, sentence
from calibrant.reports.evaluation.page import render_page, write_page
from calibrant.reports.evaluation.page_data import script_json
from calibrant.reports.threshold.section import lead_data, section_data
from calibrant.reports.threshold.view import PointView, build_curve_problem, chart_data
from calibrant.thresholds.band import Band
from calibrant.thresholds.classes import OperatingPoints
from calibrant.thresholds.curve import compute_curve
from calibrant.thresholds.operating_point import OperatingPoint
from calibrant.thresholds.rates import Cost
from calibrant.thresholds.scores import On

Result = OperatingPoint | OperatingPoints | Band | TargetUnreachable


def threshold_html(
    result: Result,
    *,
    title: str = "Operating point",
    source: str | None = None,
    out: str = "",
    command: str = "",
    notes: Sequence[str] = (),
    calibrated: bool = False,
    **rows: Any,
) -> str:
    """Return operating points as one self-contained HTML page.

    Parameters
    ----------
    result : what `select`, `select_each` or `select_band` returned or raised
    title : heading of the page
    source : where the rows came from, such as a file name
    out : where the result was saved; empty if it was not saved
    command : how to apply it
    notes : sentences about the rows
    calibrated : whether the decision scores are those of a calibrator
    **rows : the labelled rows behind the result, as for `point_view`
    """
    whose = "calibrated" if calibrated else ""
    views = _views(result, rows)
    lead = lead_data(result, source=whose) if isinstance(result, OperatingPoints | Band) else None
    data = {
        "lead": lead,
        "sections": [section_data(view, key, source=whose) for key, view in enumerate(views)],
        "several": lead is not None,
        "size": format_count(views[0].curve.n, "row"),
        "out": out,
        "command": command,
        "notes": [sentence(note) for note in notes],
        "charts": script_json([chart_data(view) for view in views]),
    }
    return render_page("threshold", data, title=title, source=source)


def write_threshold_html(
    result: Result,
    path: str | os.PathLike[str],
    *,
    source: str | None = None,
    out: str = "",
    command: str = "",
    notes: Sequence[str] = (),
    name: str = "path",
    calibrated: bool = False,
    **rows: Any,
) -> Path:
    """Write the page of `threshold_html` to `path` atomically.

    Parameters
    ----------
    result, source, out, command, notes, calibrated : as for `threshold_html`
    path : path of the page
    name : name of the path in error messages
    **rows : the labelled rows behind the result, as for `point_view`
    """
    check_writable(path, name=name)  # before the page is rendered
    options: dict[str, Any] = {"out": out, "command": command, "calibrated": calibrated}
    page = threshold_html(result, source=source, notes=notes, **options, **rows)
    return write_page(page, path, name=name)


def point_view(
    result: OperatingPoint | TargetUnreachable,
    *,
    labels: Any,
    scores: Any,
    on: On,
    classes: Sequence[Any],
    weights: Any = None,
    cost: Cost | None = None,
    withheld: Any = None,
    outside: Any = None,
) -> PointView:
    """Combine a result with the operating curve of its rows."""
    probs, logits = (scores, None) if on == "probs" else (None, scores)
    masks = {"withheld": withheld, "outside": outside}
    problem = build_curve_problem(
        labels, probs, logits, result.of, tuple(classes), weights, **masks
    )
    keep = []
    if isinstance(result, OperatingPoint):
        keep = [result.logit if on == "logits" else result.threshold]
        cost = cost or result.cost
    elif result.threshold is not None and on == "probs":
        keep = [result.threshold]
    curve = compute_curve(problem, confidence=result.confidence or 0.95, keep=keep)
    return PointView(result, curve, None if result.of is None else cost)


def _views(result: Result, rows: dict[str, Any]) -> list[PointView]:
    if isinstance(result, OperatingPoints):
        views = [point_view(point, **rows) for point in result.points.values()]
        return views + [point_view(error, **rows) for error in result.unreachable.values()]
    if isinstance(result, Band):
        upper, lower = (point_view(p, **rows) for p in (result.upper, result.lower))
        return [replace(upper, side="act"), replace(lower, side="clear", cost=None)]
    return [point_view(result, **rows)]
