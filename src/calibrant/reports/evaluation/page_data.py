"""Data of the HTML page: table rows and chart data."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from calibrant.formatting import (
    describe_target,
    floor_words,
    headline,
    interval_words,
    note_of,
    number,
    percent,
    quote_name,
    rate_ends,
    rows_and_classes,
    sentence,
)
from calibrant.metrics.catalogue import better_of, title_of
from calibrant.reports.displays.problems import with_gaps
from calibrant.results import Bins, CalibrationTest, Evaluation, Figure

_MOST_CONFUSED = 30  # classes in the confusion matrix
_MOST_LISTED = 500  # classes in the table
_LONGEST = 120  # characters of a name
STATES = {
    True: ("bad", "Miscalibration found"),
    False: ("good", "No miscalibration found"),
    None: ("unknown", "Too little data to judge"),
}
"""CSS state and label of each verdict."""
_TESTS = {"ks": "KS calibration test (gives the verdict)", "spiegelhalter": "Spiegelhalter's test"}
_CARDS = {
    "ece_ew": (
        "Calibration error (ECE)",
        "How far stated probabilities are from what happened, on average.",
    ),
    "accuracy": ("Accuracy", "Share of rows whose most probable class is right."),
    "nll": ("Log loss (NLL)", "Low when the right class got a high probability. Lower is better."),
    "brier": ("Brier score", "Mean squared error of the probabilities. Lower is better."),
}


def page_data(evaluation: Evaluation) -> dict[str, Any]:
    """Return the data of the template, as plain values."""
    state, badge = STATES[evaluation.verdict.miscalibrated]
    return {
        "headline": headline(evaluation),
        "state": state,
        "badge": badge,
        "size": rows_and_classes(evaluation),
        "judged": describe_target(evaluation),
        "event": _event(evaluation),
        "level": f"{100 * evaluation.confidence:g} %",
        "weighted": evaluation.weighted,
        "cards": list(figure_cards(evaluation.figures)),
        "schemes": scheme_words(evaluation),
        "bins": list(_bin_rows(evaluation)),
        "drawn": [_truncate(entry["class"]) for entry in _drawn_classes(evaluation)],
        "n_classes": len(evaluation.classes),
        "per_class": list(_class_rows(evaluation)),
        "confusion": _confusion(evaluation),
        "metrics": [figure_row(name, f) for name, f in evaluation.figures.items()],
        "tests": [_test_row(name, test) for name, test in evaluation.tests.items()],
        "groups": [_group_row(name, group) for name, group in evaluation.groups.items()],
        "notes": [sentence(note) for note in evaluation.notes],
        "charts": script_json(_charts(evaluation)),
    }


def script_json(value: Any) -> str:
    r"""Serialise to JSON that is safe inside a script element."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for char in "<>&":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return text


def _event(evaluation: Evaluation) -> str:
    if evaluation.target == "positive":
        return f"the row is of class {quote_name(evaluation.classes[-1])}"
    return "the predicted class is right"


def figure_cards(figures: Mapping[str, Figure]) -> Iterable[dict[str, str]]:
    """Yield the cards of ECE, accuracy and one proper score."""
    nll = figures.get("nll")
    loss = "nll" if nll is not None and nll.value is not None else "brier"
    for name in ("ece_ew", "accuracy", loss):
        figure = figures.get(name)
        if figure is None:
            continue
        title, meaning = _CARDS[name]
        value = percent(figure.value) if name == "accuracy" else number(figure.value)
        yield {
            "title": title,
            "value": value,
            "interval": _card_interval(figure, in_percent=name == "accuracy"),
            "floor": "" if figure.floor is None else number(figure.floor.mean),
            "floor_most": "" if figure.floor is None else number(figure.floor.q95),
            "meaning": meaning,
            "why": "" if figure.value is not None else note_of(figure),
        }


def _card_interval(figure: Figure, *, in_percent: bool) -> str:
    if figure.interval is None or not in_percent:
        return interval_words(figure.interval)
    return f"{percent(figure.interval.low)} to {percent(figure.interval.high)}"


def scheme_words(evaluation: Evaluation) -> list[tuple[str, str]]:
    """Return each binning scheme with its description."""
    words = {"width": "equally wide", "mass": "equally filled"}
    return [(name, words.get(name, name)) for name in evaluation.bins]


def _bin_rows(evaluation: Evaluation) -> Iterable[dict[str, str]]:
    """Yield the table behind the diagram, for the first scheme of bins."""
    bins = next(iter(evaluation.bins.values()), None)
    if bins is None:
        return
    for k in range(len(bins.score)):
        band = ""
        if bins.band_low is not None and bins.band_high is not None:
            band = f"{number(bins.band_low[k], 3)} to {number(bins.band_high[k], 3)}"
        yield {
            "range": f"{number(bins.low[k], 3)} to {number(bins.high[k], 3)}",
            "rows": f"{int(bins.count[k]):,}",
            "score": number(bins.score[k], 3),
            "rate": number(bins.rate[k], 3),
            "band": band,
        }


def _class_rows(evaluation: Evaluation) -> Iterable[dict[str, Any]]:
    """Yield the per-class table; only the largest if there are very many classes."""
    rows = evaluation.per_class
    if len(rows) > _MOST_LISTED:
        rows = tuple(sorted(rows, key=lambda row: -row["rows"])[:_MOST_LISTED])
    for row in rows:
        yield {
            "name": _truncate(row["class"]),
            "rows": f"{row['rows']:,}",
            "predicted": f"{row['predicted']:,}",
            "precision": _rate(row["precision"]),
            "recall": _rate(row["recall"]),
            **{k: number(row.get(k), 3) for k in ("f1", "auroc", "auprc", "ece_ew")},
            **{k: percent(row.get(k)) for k in ("mean_score", "event_rate")},
        }


def _rate(rate: Mapping[str, Any]) -> tuple[str, str]:
    if rate["value"] is None:
        return "–", "no rows"
    return number(rate["value"], 3), " to ".join(rate_ends(rate))


def _confusion(evaluation: Evaluation) -> dict[str, Any] | None:
    """Return counts with each cell's share of its row, or None when there are too many classes."""
    matrix = np.asarray(evaluation.confusion, dtype=np.float64)
    if not 0 < len(matrix) <= _MOST_CONFUSED:
        return None
    totals = matrix.sum(axis=1, keepdims=True)
    shares = np.divide(matrix, totals, out=np.zeros_like(matrix), where=totals > 0)
    names = [_truncate(name) for name in evaluation.classes]
    rows = [
        (
            name,
            [(f"{count:,.0f}", round(float(share), 3)) for count, share in zip(c, s, strict=True)],
        )
        for name, c, s in zip(names, matrix, shares, strict=True)
    ]
    return {"names": names, "rows": rows}


def figure_row(name: str, figure: Figure) -> dict[str, str]:
    """Return a metric as a table row of text."""
    return {
        "title": title_of(name),
        "value": number(figure.value),
        "interval": interval_words(figure.interval),
        "floor": floor_words(figure.floor),
        "better": better_of(name),
        "note": note_of(figure),
        "definition": sentence(figure.definition) if figure.definition else "",
    }


def _test_row(name: str, test: CalibrationTest) -> dict[str, str]:
    small = test.p_value is not None and test.p_value < 0.001
    return {
        "title": _TESTS.get(name, name),
        "statistic": number(test.statistic),
        "p_value": "< 0.001" if small else number(test.p_value, 3),
        "definition": sentence(test.definition) if test.definition else "",
        "why": test.why or "",
    }


def _group_row(name: str, group: Evaluation) -> dict[str, str]:
    figure = group.figures.get("ece_ew")
    return {
        "name": _truncate(name),
        "rows": f"{group.n:,}",
        "ece": number(None if figure is None else figure.value),
        "interval": interval_words(None if figure is None else figure.interval),
        "floor": floor_words(None if figure is None else figure.floor),
        "verdict": headline(group),
    }


def _charts(evaluation: Evaluation) -> dict[str, Any]:
    """Return the chart data of the page."""
    return {
        "n": evaluation.n,
        "weighted": evaluation.weighted,
        **reliability_data(evaluation),
        "classes": [
            {
                "name": _truncate(entry["class"]),
                **{k: _round_all((entry.get("curve") or {}).get(k) or ()) for k in _CURVE},
                **{k: _round_all(entry.get(k) or ()) for k in _HISTOGRAM},
            }
            for entry in _drawn_classes(evaluation)
        ],
    }


_CURVE = ("threshold", "precision", "recall", "flagged")
_HISTOGRAM = ("edges", "with_event", "without_event")


def reliability_data(evaluation: Evaluation) -> dict[str, Any]:
    """Return the data of a reliability diagram."""
    right = evaluation.target == "top-label"
    score, rate = with_gaps(evaluation.curves.get("smooth"))
    return {
        "axes": {
            "x": "mean predicted probability",
            "y": "share predicted right" if right else "share of events",
        },
        "bins": {name: _bin_columns(bins) for name, bins in evaluation.bins.items()},
        "smooth": {"score": _round_all(score), "rate": _round_all(rate)},
    }


def _drawn_classes(evaluation: Evaluation) -> list[Mapping[str, Any]]:
    """Return the classes with curves; of two, the positive one first."""
    entries = list(evaluation.curves.get("classes") or ())
    return entries[::-1] if len(evaluation.classes) == 2 else entries


def _bin_columns(bins: Bins) -> dict[str, list[float | None]]:
    columns = bins.to_dict()
    names = ("low", "high", "count", "score", "rate", "band_low", "band_high")
    return {name: _round_all(columns.get(name) or ()) for name in names}


def _round_all(values: Iterable[float]) -> list[float | None]:
    """Round to six digits to keep the page small; NaN becomes null."""
    return [float(f"{v:.6g}") if math.isfinite(v) else None for v in values]


def _truncate(name: Any) -> str:
    """Truncate a very long name."""
    text = str(name)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
