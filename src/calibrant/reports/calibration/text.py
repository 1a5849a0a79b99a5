"""Terminal text of a calibration: before and after, side by side."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from calibrant.formatting import (
    format_count,
    format_signed,
    headline,
    number,
    printable,
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
from calibrant.reports.text_tables import add_row, table_of, to_text

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from calibrant.calibrators.choice.comparison import Choice

_STYLES = {"better": "bold green", "worse": "bold yellow"}


def render_calibration(result: CalibrationResult, *, width: int = 100, color: bool = False) -> str:
    """Render a calibration for the terminal: the verdict first, then the tables."""
    return to_text(_parts(result), width, color)


def _parts(result: CalibrationResult) -> Iterator[RenderableType]:
    from rich.text import Text

    yield Text(printable(sentence(result.verdict)), style=_STYLES.get(result.state, "bold"))
    rows, classes = (
        format_count(result.n, "row"),
        format_count(len(result.saved["classes"]), "class"),
    )
    yield Text(f"Fitted on {rows}, {classes}.{_how(result.judgement)}")
    if result.judgement is not None:
        yield _figures(result.judgement)
        for remark in _remarks(result.judgement):
            yield Text(printable(remark))
    if result.choice is not None:
        yield _candidates(result.choice)
        yield Text(printable(sentence(result.choice.why)))
    for note in result.notes:
        yield Text(f"Note: {printable(sentence(note))}")


def _how(judgement: Judgement | None) -> str:
    return "" if judgement is None else f" {sentence(judgement.how)}"


def _figures(judgement: Judgement) -> Table:
    interval = f"{100 * judgement.before.confidence:g} % interval"
    names = ("Metric", "Before", "After", "Difference", interval, "Change")
    table = table_of(*names, words=(0, 5))
    for name in FIGURES:
        before, after = judgement.values(name)
        difference = judgement.difference.differences.get(name)
        add_row(
            table,
            title_of(name),
            number(before),
            number(after),
            "" if difference is None else format_signed(difference.value),
            "" if difference is None else signed_interval(difference.interval),
            change_of(difference),
        )
    return table


def _remarks(judgement: Judgement) -> Iterator[str]:
    """Yield remarks on missing metrics, and both verdicts."""
    for when, side in (("before", judgement.before), ("after", judgement.after)):
        for name in FIGURES:
            if side.figures[name].value is None:
                why = side.figures[name].why
                yield f"{title_of(name)} {when}: not given: {why}."
    yield f"Before: {headline(judgement.before)}"
    yield f"After: {headline(judgement.after)}"


def _candidates(choice: Choice) -> Table:
    table = table_of(
        "Method", title_of(choice.score), "Gain", "± s.e.", "ECE, equal mass", "", words=(0, 5)
    )
    for candidate in choice.candidates:
        chosen = "chosen" if candidate.method == choice.chosen else ""
        counts = candidate.method != "identity"  # the baseline of the gains
        add_row(
            table,
            candidate.method,
            number(candidate.score),
            format_signed(candidate.gain) if counts else "",
            number(candidate.gain_error) if counts else "",
            number(candidate.ece_em),
            f"left out: {candidate.why_not}" if candidate.why_not else chosen,
        )
    return table
