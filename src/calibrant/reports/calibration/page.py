"""Self-contained HTML page of a calibration: before and after, side by side."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from calibrant.files.atomic_write import check_writable
from calibrant.formatting import (
    describe_target,
    floor_words,
    format_count,
    format_signed,
    headline,
    number,
    sentence,
    signed_interval,
)
from calibrant.metrics.catalogue import title_of
from calibrant.reports.calibration.result import (
    FIGURES,
    CalibrationResult,
    Judgement,
    change_of,
)
from calibrant.reports.evaluation.page import render_page, write_page
from calibrant.reports.evaluation.page_data import reliability_data, scheme_words, script_json
from calibrant.results import Evaluation

_BADGES = {
    "better": ("good", "Better"),
    "worse": ("bad", "Worse"),
    "unclear": ("unknown", "No clear difference"),
    "same": ("unknown", "Nothing is changed"),
    "unknown": ("unknown", "Not judged"),
}
_CARDS = {
    "nll": ("Log loss (NLL)", "Low when the right class got a high probability."),
    "brier": ("Brier score", "Mean squared error of the probabilities."),
    "ece_em": ("Calibration error (ECE)", "How far stated probabilities are from what happened."),
    "accuracy": ("Accuracy", "Share of rows whose most probable class is right."),
}


def calibration_html(
    result: CalibrationResult,
    *,
    title: str = "Calibration",
    source: str | None = None,
    out: str = "calibrator.json",
    command: str = "",
) -> str:
    """Return a calibration as one self-contained HTML page."""
    data = {**_page_data(result), "out": out, "command": command}
    return render_page("calibration", data, title=title, source=source)


def write_calibration_html(
    result: CalibrationResult,
    path: str | os.PathLike[str],
    *,
    source: str | None = None,
    out: str = "calibrator.json",
    command: str = "",
    name: str = "path",
) -> Path:
    """Write the page of `calibration_html` to `path` atomically."""
    check_writable(path, name=name)
    page = calibration_html(result, source=source, out=out, command=command)
    return write_page(page, path, name=name)


def _page_data(result: CalibrationResult) -> dict[str, Any]:
    state, badge = _BADGES[result.state]
    rows = format_count(result.n, "row")
    both = result.judgement
    return {
        "headline": sentence(result.verdict),
        "state": state,
        "badge": badge,
        "size": f"{rows}, {format_count(len(result.saved['classes']), 'class')}",
        "how": "" if both is None else sentence(f"fitted on {rows}, {both.how}"),
        "judged": "" if both is None else describe_target(both.before),
        "level": "" if both is None else f"{100 * both.before.confidence:g} %",
        "cards": [] if both is None else list(_cards(both, result)),
        "sides": [] if both is None else list(_sides(both)),
        "schemes": [] if both is None else scheme_words(both.before),
        "figures": [] if both is None else list(_figures(both)),
        "candidates": list(_candidates(result)),
        "why": "" if result.choice is None else sentence(result.choice.why),
        "score": title_of(result.score),
        "method": result.method,
        "learned": result.learned,
        "notes": [sentence(note) for note in result.notes],
        "definitions": [] if both is None else list(_definitions(both.before)),
        "charts": script_json(_charts(both)),
    }


def _cards(both: Judgement, result: CalibrationResult) -> Iterable[dict[str, str]]:
    """Yield the cards of the deciding score, ECE and accuracy."""
    decided = "nll" if result.deciding is None else result.deciding.name
    for name in (decided, "ece_em", "accuracy"):
        title, meaning = _CARDS[name]
        before, after = both.before.figures[name], both.after.figures[name]
        yield {
            "title": title,
            "before": number(before.value),
            "after": number(after.value),
            "change": change_of(both.difference.differences.get(name)),
            "floor": "" if after.floor is None else number(after.floor.mean),
            "meaning": meaning,
        }


def _sides(both: Judgement) -> Iterable[dict[str, str]]:
    for key, title, side in (("before", "Before", both.before), ("after", "After", both.after)):
        yield {"key": key, "title": title, "verdict": headline(side)}


def _figures(both: Judgement) -> Iterable[dict[str, str]]:
    for name in FIGURES:
        before, after = both.before.figures[name], both.after.figures[name]
        difference = both.difference.differences.get(name)
        notes = [
            f"{when}: {figure.why}"
            for when, figure in (("before", before), ("after", after))
            if figure.value is None
        ]
        yield {
            "title": title_of(name),
            "before": number(both.values(name)[0]),
            "after": number(both.values(name)[1]),
            "floor": floor_words(after.floor),
            "difference": "" if difference is None else format_signed(difference.value),
            "interval": "" if difference is None else signed_interval(difference.interval),
            "change": "; ".join(notes) or change_of(difference),
        }


def _candidates(result: CalibrationResult) -> Iterable[dict[str, str]]:
    if result.choice is None:
        return
    for candidate in result.choice.candidates:
        first = candidate.method == "identity"  # the baseline of the gains
        chosen = "chosen" if candidate.method == result.choice.chosen else ""
        yield {
            "method": candidate.method,
            "score": number(candidate.score),
            "gain": "" if first else format_signed(candidate.gain),
            "error": "" if first else number(candidate.gain_error),
            "nll": number(candidate.nll),
            "brier": number(candidate.brier),
            "ece_em": number(candidate.ece_em),
            "note": f"left out: {candidate.why_not}" if candidate.why_not else chosen,
        }


def _definitions(side: Evaluation) -> Iterable[tuple[str, str]]:
    for name in FIGURES:
        yield title_of(name), sentence(side.figures[name].definition)


def _charts(both: Judgement | None) -> dict[str, Any]:
    if both is None:
        return {}
    return {"before": reliability_data(both.before), "after": reliability_data(both.after)}
