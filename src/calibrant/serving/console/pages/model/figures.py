"""The figures that travel with a bundle, in the words of the report: test rows and candidates."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import islice
from typing import Any

from calibrant.formatting import format_count, number, sentence, title_of
from calibrant.reports.evaluation.page_data import STATES, figure_cards, figure_row
from calibrant.results import Figure, Floor, Interval
from calibrant.study.report.choice_rows import choice_data
from calibrant.study.report.tables import config_rows
from calibrant.study.report.wording import loss_name, shown_name

__all__ = ["candidate_data", "entries_of", "figure_data", "figures_of", "judged_rows", "table_of"]

_KNOWN = ("candidates", "n", "points", "source", "splits", "test", "verdict", "why")
"""Metrics that have their own place on the page, or stand in the provenance."""

_MOST = 200
"""Rows of a table: whoever packed a bundle by hand may have put anything into it."""


def figures_of(metrics: Mapping[str, Any]) -> dict[str, Figure]:
    """Return the figures of the test rows; what has another shape is left out.

    Examples
    --------
    >>> found = figures_of({"test": {"accuracy": {"value": 0.9, "low": 0.8, "high": 0.95}}})
    >>> print(found["accuracy"])
    accuracy: 0.9000 [0.8000, 0.9500]
    """
    made = ((str(name), _figure(name, saved)) for name, saved in table_of(metrics, "test").items())
    return {name: figure for name, figure in made if figure is not None}


def figure_data(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """Gather the figures: a few as cards, all in a table, and what else was packed."""
    found = figures_of(metrics)
    rest = {name: value for name, value in metrics.items() if name not in _KNOWN}
    return {
        "cards": list(figure_cards(found)),
        "rows": [figure_row(name, figure) for name, figure in found.items()][:_MOST],
        "judged": judged_rows(metrics),
        "verdict": _verdict(table_of(metrics, "verdict")),
        "rest": list(islice(config_rows(rest), _MOST)),
    }


def candidate_data(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """Gather the comparison of the candidates: what chose among them, and their test figures."""
    entries = entries_of(metrics, "candidates")
    columns = list(dict.fromkeys(name for each in entries for name in table_of(each, "test")))
    why = metrics.get("why")
    able = sum(not each.get("reference") for each in entries)
    return {
        "columns": [title_of(str(name)) for name in columns],
        "rows": [_candidate(each, columns) for each in entries[:_MOST]],
        "choice": choice_data(table_of(metrics, "splits"), able),
        "why": sentence(why) if isinstance(why, str) and why.strip() else "",
    }


def judged_rows(metrics: Mapping[str, Any], n: Any = None) -> str:
    """Say which rows judged, as the report does: "2,905 golden test rows"."""
    rows = metrics.get("n") if n is None else n
    kind = "golden" if metrics.get("source") == "golden" else "held-out"
    whole = isinstance(rows, int) and not isinstance(rows, bool)
    return format_count(rows, f"{kind} test row") if whole else f"{kind} test rows"  # type: ignore[arg-type]


def table_of(saved: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return an object within another; nothing where it is something else."""
    found = saved.get(name)
    return found if isinstance(found, Mapping) else {}


def _verdict(saved: Mapping[str, Any]) -> dict[str, str] | None:
    """Say whether the probabilities come true, as the report does; None where nobody said it."""
    found, text = saved.get("miscalibrated"), saved.get("text")
    if not isinstance(text, str) or not isinstance(found, bool | None):
        return None
    state, badge = STATES[found]
    return {"state": state, "badge": badge, "words": sentence(text)}


def _candidate(saved: Mapping[str, Any], columns: list[Any]) -> dict[str, Any]:
    test = table_of(saved, "test")
    chosen, failed = saved.get("chosen") is True, saved.get("failed")
    beside = "for reference, cannot be chosen" if saved.get("reference") else ""
    return {
        "name": _name(saved),
        "note": "chosen" if chosen else beside,
        "chosen": chosen,
        "failed": sentence(str(failed)) if failed else "",
        "lacking": "trained" if saved.get("way", "one") == "one" else "made",
        "refinement": number(_number(saved.get("refinement"))),
        "cells": [number(_number(test.get(name)), 3) for name in columns],
        "weights": f"{saved['weights']:,}" if _whole(saved.get("weights")) else "\N{EN DASH}",
    }


def _name(saved: Mapping[str, Any]) -> str:
    """Return a candidate's name with the word that people have for its loss."""
    loss, name = str(saved.get("loss") or ""), str(saved.get("name") or "")
    if loss and name.startswith(loss):
        return shown_name(loss_name(loss) + name.removeprefix(loss))
    return shown_name(name or loss_name(loss) or "without a name")


def _figure(name: Any, saved: Any) -> Figure | None:
    if _number(saved) is not None:
        return Figure(str(name), _number(saved), "")
    if not isinstance(saved, Mapping) or "value" not in saved:
        return None
    low, high = (_number(saved.get(end)) for end in ("low", "high"))
    mean, q95 = (_number(table_of(saved, "floor").get(part)) for part in ("mean", "q95"))
    return Figure(
        str(name),
        _number(saved["value"]),
        str(saved.get("definition") or ""),
        None if low is None or high is None else Interval(low, high),
        None if mean is None or q95 is None else Floor(mean, q95),
        _number(saved.get("error_bound")),
        str(saved["why"]) if saved.get("why") else None,
    )


def _number(value: Any) -> float | None:
    """Return a finite number; None for all else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def entries_of(saved: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    """Return the objects of a list within another object; none where it is something else."""
    found = saved.get(name)
    return [each for each in found if isinstance(each, Mapping)] if isinstance(found, list) else []
