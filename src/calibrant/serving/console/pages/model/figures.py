"""Metrics packed with a bundle: figures of the test rows and of the candidates."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import islice
from typing import Any

from calibrant.formatting import format_count, number, sentence
from calibrant.metrics.catalogue import title_of
from calibrant.reports.evaluation.page_data import STATES, figure_cards, figure_row
from calibrant.results import Figure, Floor, Interval
from calibrant.study.report.tables import choice_data, config_rows
from calibrant.study.report.wording import loss_name, shown_name

_KNOWN = ("candidates", "n", "points", "source", "splits", "test", "verdict", "why")
"""Metrics shown elsewhere on the page."""

_MAX_ROWS = 200  # Largest number of table rows; a bundle packed by hand may contain anything


def parse_figures(metrics: Mapping[str, Any]) -> dict[str, Figure]:
    """Return the figures of the test rows; entries of another shape are skipped."""
    figures = (
        (str(name), _figure(name, saved)) for name, saved in get_mapping(metrics, "test").items()
    )
    return {name: figure for name, figure in figures if figure is not None}


def figure_data(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """Gather the figures: a few as cards, all as a table, and other packed metrics."""
    figures = parse_figures(metrics)
    rest = {name: value for name, value in metrics.items() if name not in _KNOWN}
    return {
        "cards": list(figure_cards(figures)),
        "rows": [figure_row(name, figure) for name, figure in figures.items()][:_MAX_ROWS],
        "judged": describe_test_rows(metrics),
        "verdict": _verdict(get_mapping(metrics, "verdict")),
        "rest": list(islice(config_rows(rest), _MAX_ROWS)),
    }


def candidate_data(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """Gather the comparison of the candidates: selection criterion and test figures."""
    entries = get_mappings(metrics, "candidates")
    columns = list(dict.fromkeys(name for each in entries for name in get_mapping(each, "test")))
    why = metrics.get("why")
    selectable = sum(not each.get("reference") for each in entries)
    return {
        "columns": [title_of(str(name)) for name in columns],
        "rows": [_candidate(each, columns) for each in entries[:_MAX_ROWS]],
        "choice": choice_data(get_mapping(metrics, "splits"), selectable),
        "why": sentence(why) if isinstance(why, str) and why.strip() else "",
    }


def describe_test_rows(metrics: Mapping[str, Any], n: Any = None) -> str:
    """Describe the test rows as the report does: "2,905 golden test rows"."""
    rows = metrics.get("n") if n is None else n
    kind = "golden" if metrics.get("source") == "golden" else "held-out"
    whole = isinstance(rows, int) and not isinstance(rows, bool)
    return format_count(rows, f"{kind} test row") if whole else f"{kind} test rows"  # type: ignore[arg-type]


def get_mapping(saved: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return a mapping inside another, or an empty one if it is something else."""
    value = saved.get(name)
    return value if isinstance(value, Mapping) else {}


def _verdict(saved: Mapping[str, Any]) -> dict[str, str] | None:
    """Return the calibration verdict as the report words it, or None if there is none."""
    miscalibrated, text = saved.get("miscalibrated"), saved.get("text")
    if not isinstance(text, str) or not isinstance(miscalibrated, bool | None):
        return None
    state, badge = STATES[miscalibrated]
    return {"state": state, "badge": badge, "words": sentence(text)}


def _candidate(saved: Mapping[str, Any], columns: list[Any]) -> dict[str, Any]:
    test = get_mapping(saved, "test")
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
    """Return a candidate's name with its loss in words."""
    loss, name = str(saved.get("loss") or ""), str(saved.get("name") or "")
    if loss and name.startswith(loss):
        return shown_name(loss_name(loss) + name.removeprefix(loss))
    return shown_name(name or loss_name(loss) or "unnamed")


def _figure(name: Any, saved: Any) -> Figure | None:
    if _number(saved) is not None:
        return Figure(str(name), _number(saved), "")
    if not isinstance(saved, Mapping) or "value" not in saved:
        return None
    low, high = (_number(saved.get(end)) for end in ("low", "high"))
    mean, q95 = (_number(get_mapping(saved, "floor").get(part)) for part in ("mean", "q95"))
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
    """Return a finite number, or None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def get_mappings(saved: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    """Return the mappings of a list inside another mapping; empty for anything else."""
    values = saved.get(name)
    return (
        [value for value in values if isinstance(value, Mapping)]
        if isinstance(values, list)
        else []
    )
