"""Terminal text of evaluations and comparisons."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from calibrant.formatting import (
    describe_target,
    format_count,
    format_signed,
    headline,
    interval_words,
    note_of,
    number,
    printable,
    rate_ends,
    rows_and_classes,
    sentence,
    signed_interval,
)
from calibrant.metrics.catalogue import better_of, title_of
from calibrant.reports.text_tables import add_row, shorten, table_of, to_text
from calibrant.results import Comparison, Difference, Evaluation, Figure

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

_MOST_CLASSES = 20
_LONGEST = 120  # characters of a name
_COMPARED = 60  # columns of a comparison besides the models' names
_FLOOR = "Calibrated model gets: what chance alone gives, on average (95 % of the time at most)."
_STYLES = {True: "bold yellow", False: "bold green", None: "bold"}


def render_text(evaluation: Evaluation, *, width: int = 100, color: bool = False) -> str:
    """Render an evaluation for the terminal: the verdict first, then the tables.

    Parameters
    ----------
    evaluation : result of `calibrant.evaluate`
    width : columns of the terminal
    color : whether to colour the text with ANSI codes

    Examples
    --------
    >>> from calibrant.metrics import evaluate
    >>> from calibrant.testing import WORLDS
    >>> draw = WORLDS["multiclass"].draw(1000, 0)
    >>> print(render_text(evaluate(draw.labels, draw.probs)))
    Over-confident by about ... percentage points: mean confidence ...
    1,000 rows, 5 classes. Judged: the probability of the predicted class.
    ...
    """
    return to_text(_evaluation_parts(evaluation), width, color)


def render_comparison(comparison: Comparison, *, width: int = 100, color: bool = False) -> str:
    """Render a comparison of two models for the terminal: the verdict first, then the table.

    Examples
    --------
    >>> from calibrant.results import Interval
    >>> gain = Difference("nll", 0.41, 0.38, -0.03, "", Interval(-0.04, -0.02), 0.001)
    >>> both = Comparison(900, ("old", "new"), "positive", {"nll": gain}, "new has the lower NLL")
    >>> print(render_comparison(both))
    New has the lower NLL.
    ...
    NLL (log loss)  0.4100  0.3800  -0.0300  -0.0400 to -0.0200  0.001  new
    """
    return to_text(_comparison_parts(comparison, width), width, color)


def _evaluation_parts(evaluation: Evaluation) -> Iterator[RenderableType]:
    from rich.text import Text

    yield Text(printable(headline(evaluation)), style=_STYLES[evaluation.verdict.miscalibrated])
    yield Text(f"{rows_and_classes(evaluation)}. Judged: {describe_target(evaluation)}.")
    yield _metrics_table(evaluation)
    if any(figure.floor is not None for figure in evaluation.figures.values()):
        yield Text(_FLOOR)
    for remark in _remarks(evaluation):
        yield Text(printable(remark))
    if evaluation.per_class and len(evaluation.classes) <= _MOST_CLASSES:
        yield _class_table(evaluation)
    elif evaluation.per_class:
        yield Text(f"The table of {len(evaluation.classes):,} classes is left out here.")
    if evaluation.groups:
        yield _group_table(evaluation)
    for note in evaluation.notes:
        yield Text(f"Note: {printable(sentence(note))}")


def _metrics_table(evaluation: Evaluation) -> Table:
    interval = f"{100 * evaluation.confidence:g} % interval"
    table = table_of("Metric", "Value", interval, "Calibrated\nmodel gets")
    for name, figure in evaluation.figures.items():
        add_row(
            table,
            title_of(name),
            number(figure.value),
            interval_words(figure.interval),
            _floor(figure),
        )
    return table


def _floor(figure: Figure | None) -> str:
    if figure is None or figure.floor is None:
        return ""
    return f"{number(figure.floor.mean)} (≤ {number(figure.floor.q95)})"


def _remarks(evaluation: Evaluation) -> list[str]:
    """Return remarks on metrics, grouped by remark."""
    titles: dict[str, list[str]] = {}
    for name, figure in evaluation.figures.items():
        if note := note_of(figure):
            titles.setdefault(note, []).append(title_of(name))
    return [f"{'; '.join(names)}: {note}." for note, names in titles.items()]


def _class_table(evaluation: Evaluation) -> Table:
    table = table_of("Class", "Rows", "Predicted", "Precision", "Recall", "F1", "ECE")
    for row in evaluation.per_class:
        add_row(
            table,
            shorten(row["class"], _LONGEST),
            f"{row['rows']:,}",
            f"{row['predicted']:,}",
            _rate(row["precision"]),
            _rate(row["recall"]),
            *(number(row.get(name), 3) for name in ("f1", "ece_ew")),
        )
    return table


def _group_table(evaluation: Evaluation) -> Table:
    table = table_of("Group", "Rows", "ECE", "Calibrated\nmodel gets", "Verdict", words=(0, 4))
    for name, group in evaluation.groups.items():
        figure = group.figures.get("ece_ew")
        error = number(None if figure is None else figure.value)
        cells = (shorten(name, _LONGEST), f"{group.n:,}", error, _floor(figure))
        add_row(table, *cells, headline(group))
    return table


def _comparison_parts(comparison: Comparison, width: int) -> Iterator[RenderableType]:
    from rich.text import Text

    columns = _column_names(comparison.names, width)
    yield Text(printable(sentence(comparison.verdict)), style="bold")
    yield Text(f"{format_count(comparison.n, 'row')}, the same for both models.")
    interval = f"{100 * comparison.confidence:g} % interval"
    if columns != comparison.names:
        yield Text(printable("; ".join(map("{} is {}".format, columns, comparison.names)) + "."))
    names = ("Metric", *columns, "Difference", interval, "p", "Better")
    table = table_of(*names, words=(0, 6))
    for name, difference in comparison.differences.items():
        add_row(
            table,
            title_of(name),
            number(difference.a),
            number(difference.b),
            format_signed(difference.value),
            signed_interval(difference.interval),
            _p_value(difference.p_value),
            _better(difference, columns),
        )
    yield table


def _column_names(names: tuple[str, str], width: int) -> tuple[str, str]:
    """Return the column names of the models: their names, or A and B if there is no room."""
    a, b = map(len, names)
    return names if max(7, a) + max(7, b) + max(6, a, b) <= width - _COMPARED else ("A", "B")


def _better(difference: Difference, names: tuple[str, str]) -> str:
    """Return the better model if the interval excludes 0, or why there is no interval."""
    if difference.value is None:
        return f"not given: {difference.why}" if difference.why else "not given"
    way, interval = better_of(difference.name), difference.interval
    if interval is None:
        return f"no interval: {difference.why}" if difference.why else ""
    if interval.low <= 0 <= interval.high or not way:
        return ""
    return names[1] if (interval.low > 0) == (way == "higher") else names[0]


def _rate(rate: dict[str, Any]) -> str:
    if rate["value"] is None:
        return "–"
    return f"{number(rate['value'], 3)} ({'–'.join(rate_ends(rate))})"


def _p_value(value: float | None) -> str:
    if value is None:
        return ""
    return "< 0.001" if value < 0.001 else f"{value:.3f}"
