"""First screen of a study's page: two charts and the key figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from calibrant.formatting import number, percent, quote_name
from calibrant.reports.threshold.wording import aims_of
from calibrant.study.report.wording import figure_of, shown_name, value_of
from calibrant.study.result import PointResult, StudyResult
from calibrant.thresholds import OperatingPoint

__all__ = ["lead_data"]

_N_POINT_CARDS = 2
_DIGITS = 3
_NO_LEVEL = {"proved": "", "proved_words": ""}


def lead_data(
    result: StudyResult, numbers: dict[str, Any], points: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    """Return the charts and cards under the headline.

    `numbers` are the data of all charts and `points` those of the sections of the promises. A
    chart without data is None.
    """
    k = _first_point(points)
    rates = (
        _focus_chart(result, numbers) if k is None else _point_chart(points[k], result.points[k])
    )
    return {
        "reliability": _reliability_chart(result, numbers["bundle"]["reliability"]),
        "rates": rates,
        "cards": [*_calibration_cards(result), *_decision_cards(result, points, k)],
    }


def _first_point(points: Sequence[dict[str, Any]]) -> int | None:
    """Return the index of the first promise: a deciding one that can be made, if there is any."""
    ranked = sorted(
        range(len(points)),
        key=lambda k: (not points[k]["promise"]["decides"], not points[k]["reached"], k),
    )
    return ranked[0] if ranked else None


def _reliability_chart(result: StudyResult, after: dict[str, Any]) -> dict[str, Any] | None:
    """Return the title of the reliability diagram; without a calibrator it shows one model."""
    if not any(bins["score"] for bins in after["bins"].values()):
        return None
    before = result.method != "identity" and bool(result.best.test and result.best.test.bins)
    return {"title": "Reliability, before and after" if before else "Reliability", "before": before}


def _point_chart(part: dict[str, Any], point: PointResult) -> dict[str, Any]:
    """Return title and legend of the operating curve of a promise."""
    names = [name for name, _ in part["lines"]]
    mark = "chosen threshold" if part["reached"] else "at threshold"
    return {
        "point": part["key"],
        "title": part["promise"]["title"],
        "lines": [words for _, words in part["lines"]],
        "target": any(name in names for name in part["aims"]),
        "mark": f"{mark} {part['chosen']}" if part["chosen"] else "",
        **_proved_level(point, names),
    }


def _proved_level(point: PointResult, drawn: Sequence[str]) -> dict[str, Any]:
    """Return the best value of an unreachable target, if its rate is drawn."""
    error = point.result
    if isinstance(error, OperatingPoint) or error.best is None:
        return _NO_LEVEL
    rates = [error.best_of] if error.best_of else [name for name, _, _ in aims_of(error)]
    if len(rates) != 1 or rates[0] not in drawn:
        return _NO_LEVEL
    kind = "best value" if error.confidence is None else "best proved"
    return {"proved": error.best, "proved_words": f"{kind} {percent(error.best)}"}


def _focus_chart(result: StudyResult, numbers: dict[str, Any]) -> dict[str, Any] | None:
    """Return title and legend of precision and recall of the class in focus, if stored."""
    focus = numbers["bundle"]["focus"]
    if focus is None or not focus["threshold"]:
        return None
    return {
        "point": "",
        "title": f"Class {quote_name(shown_name(result.focus))} at every threshold",
        "lines": ["Precision", "Recall"],
        "target": False,
        "mark": "",
        **_NO_LEVEL,
    }


def _calibration_cards(result: StudyResult) -> Iterator[dict[str, str]]:
    """Yield log loss and calibration error, before and after."""
    yield _change_card(result, "nll", "Log loss", "lower is better")
    error = figure_of(result.calibrated, "ece_ew")
    floor = None if error is None else error.floor
    chance = (
        "lower is better" if floor is None else f"chance alone gives {number(floor.mean, _DIGITS)}"
    )
    yield _change_card(result, "ece_ew", "Calibration error (ECE)", chance)


def _decision_cards(
    result: StudyResult, points: Sequence[dict[str, Any]], k: int | None
) -> Iterator[dict[str, str]]:
    """Yield the rates of a promise; without one, accuracy and F1."""
    if k is None:
        yield _change_card(result, "accuracy", "Accuracy", "share of right predictions")
        yield _change_card(result, "f1_macro", "Macro F1", "mean over the classes")
        return
    for card in points[k]["cards"][:_N_POINT_CARDS]:
        note = card["lines"][0] if card["lines"] else ""
        yield {"title": card["title"], "before": "", "value": card["value"], "note": note}


def _change_card(result: StudyResult, name: str, title: str, note: str) -> dict[str, str]:
    """Return a figure of the chosen candidate before and after calibration."""
    values = [value_of(part, name) for part in (result.best.test, result.calibrated)]
    before, after = (percent(v) if name == "accuracy" else number(v, _DIGITS) for v in values)
    changed = result.method != "identity" and before != after
    return {"title": title, "before": before if changed else "", "value": after, "note": note}
