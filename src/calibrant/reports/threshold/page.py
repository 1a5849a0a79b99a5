"""One self-contained HTML page for thresholds: the promise, and what every threshold would do."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from calibrant.errors import TargetUnreachable
from calibrant.files.atomic_write import check_writable
from calibrant.formatting import counted, sentence
from calibrant.reports.evaluation.page import rendered, write_page
from calibrant.reports.evaluation.page_data import script_json
from calibrant.reports.threshold.section import lead_data, section_data
from calibrant.reports.threshold.view import PointView, chart_data, question_of
from calibrant.thresholds.band import Band
from calibrant.thresholds.classes import OperatingPoints
from calibrant.thresholds.curve import curve_of
from calibrant.thresholds.operating_point import OperatingPoint
from calibrant.thresholds.rates import Cost
from calibrant.thresholds.scores import On

__all__ = ["point_view", "threshold_html", "write_threshold_html"]

Result = OperatingPoint | OperatingPoints | Band | TargetUnreachable


def threshold_html(
    result: Result,
    *,
    title: str = "Operating point",
    source: str | None = None,
    out: str = "",
    command: str = "",
    notes: Sequence[str] = (),
    **rows: Any,
) -> str:
    """Return a threshold, several or a band as one HTML page that needs no network and no file.

    Parameters
    ----------
    result : what `select`, `select_each` or `select_band` returned or raised
    title : heading of the page
    source : where the rows came from, such as a file name
    out : where the result was saved; empty where it was not
    command : how to apply it
    notes : sentences about the rows
    **rows : the labelled rows behind the result, as for `point_view`
    """
    views = _views(result, rows)
    lead = lead_data(result) if isinstance(result, OperatingPoints | Band) else None
    data = {
        "lead": lead,
        "sections": [section_data(view, key) for key, view in enumerate(views)],
        "several": lead is not None,
        "size": counted(views[0].curve.n, "row"),
        "out": out,
        "command": command,
        "notes": [sentence(note) for note in notes],
        "charts": script_json([chart_data(view) for view in views]),
    }
    return rendered("threshold", data, title=title, source=source)


def write_threshold_html(
    result: Result,
    path: str | os.PathLike[str],
    *,
    source: str | None = None,
    out: str = "",
    command: str = "",
    notes: Sequence[str] = (),
    name: str = "path",
    **rows: Any,
) -> Path:
    """Write the page of `threshold_html` to `path`, whole or not at all.

    Parameters
    ----------
    result, source, out, command, notes : as for `threshold_html`
    path : where the page goes
    name : what errors call the path
    **rows : the labelled rows behind the result, as for `point_view`
    """
    check_writable(path, name=name)  # before the page is made
    page = threshold_html(result, source=source, out=out, command=command, notes=notes, **rows)
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
    """Put a result beside what every threshold would do on the rows behind it.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant.thresholds import precision, select
    >>> labels, probs = [0] * 50 + [1] * 50, np.linspace(0, 1, 100)
    >>> point = select(labels, probs, hold=precision >= 0.8)
    >>> view = point_view(point, labels=labels, scores=probs, on="probs", classes=[0, 1])
    >>> float(view.curve["precision"].value[view.place]) == point["precision"].value
    True
    """
    probs, logits = (scores, None) if on == "probs" else (None, scores)
    masks = {"withheld": withheld, "outside": outside}
    question = question_of(labels, probs, logits, result.of, tuple(classes), weights, **masks)
    keep = []
    if isinstance(result, OperatingPoint):
        keep = [result.logit if on == "logits" else result.threshold]
        cost = cost or result.cost
    elif result.threshold is not None and on == "probs":
        keep = [result.threshold]
    curve = curve_of(question, confidence=result.confidence or 0.95, keep=keep)
    return PointView(result, curve, None if result.of is None else cost)


def _views(result: Result, rows: dict[str, Any]) -> list[PointView]:
    if isinstance(result, OperatingPoints):
        made = [point_view(point, **rows) for point in result.points.values()]
        return made + [point_view(error, **rows) for error in result.unreachable.values()]
    if isinstance(result, Band):
        upper, lower = (point_view(p, **rows) for p in (result.upper, result.lower))
        return [replace(upper, side="act"), replace(lower, side="clear", cost=None)]
    return [point_view(result, **rows)]
