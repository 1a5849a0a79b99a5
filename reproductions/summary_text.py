"""Summaries of reproductions as text for the terminal, and the list of experiments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from calibrant.formatting import format_count, number, printable, sentence
from calibrant.reports.text_tables import add_row, table_of, to_text
from calibrant.study.report.wording import join_words
from reproductions.experiment import Experiment
from reproductions.paired_loss import PairedLoss
from reproductions.seed_figures import MethodSummary, SeedFigure, paper_error
from reproductions.summary import Summary
from reproductions.summary_words import MISSING, figure_name, points

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

__all__ = ["list_text", "summary_text"]

_WIDE = 96  # columns in which the first table has room for log losses
_STYLES = {"reached": "green", "missed": "yellow", "open": ""}


def summary_text(summary: Summary, *, width: int = 100, color: bool = False) -> str:
    """Write a reproduction for the terminal: the table, then what it says in words.

    Parameters
    ----------
    summary : from `summarise`
    width : columns of the terminal
    color : whether to colour the text with ANSI codes
    """
    return to_text(_parts(summary, width), width, color)


def list_text(
    experiments: Iterable[Experiment],
    have: Mapping[str, bool],
    *,
    where: Mapping[str, str] | None = None,
    width: int = 100,
    color: bool = False,
) -> str:
    """Write the table of `python -m reproductions --list`.

    Parameters
    ----------
    experiments : in the order to show them
    have : whether a data set is here, by name
    where : how to get a data set, by name; see `DataSet.remedy`
    width : columns of the terminal
    color : whether to colour the text with ANSI codes
    """
    return to_text(_list_parts(list(experiments), have, where or {}), width, color)


def _parts(summary: Summary, width: int) -> Iterator[RenderableType]:
    from rich.text import Text

    yield Text(printable(summary.title), style="bold")
    yield Text(printable(_rows_words(summary)))
    for note in summary.notes:
        yield Text(printable(note))
    figure = paper_error(summary.methods)
    yield _table(summary, figure, with_nll=width >= _WIDE)
    yield _loss_table(summary)
    yield Text(printable(_legend(summary, figure)))
    yield Text()
    states = {each.sentence: each.state for each in summary.goals}
    for line in summary.sentences:
        yield Text(printable(line), style=_STYLES[states.get(line, "open")])


def _rows_words(summary: Summary) -> str:
    parts = ", ".join(f"{name} {n:,}" for name, n in summary.rows.items())
    words = f"{summary.paper}. Rows: {parts}; {format_count(summary.classes, 'class')}."
    if summary.size != "full":
        words += f" Size {summary.size}, not the paper's."
    if summary.dates is not None:
        first, last = summary.dates
        words += f" Run {first}" if first == last else f" Run {first} to {last}"
        words += f" on {', '.join(summary.hardware)}." if summary.hardware else "."
    return words


def _table(summary: Summary, figure: str, *, with_nll: bool) -> Table:
    known = any(_paper(each, figure) for each in summary.methods)
    names = ["Method", *(["Paper\nraw → T"] if known else [])]
    names += ["Ours raw\n[interval]", "\nT", "\nauto", "Floor\n(q95)"]
    table = table_of(*names, *(["NLL\nauto"] if with_nll else []), "Error\nauto")
    for each in summary.methods:
        cells = [_called(summary, each), *([_paper(each, figure)] if known else [])]
        cells += [_with_interval(each.figure("raw", figure))]
        cells += [points(each.mean(way, figure)) for way in ("temperature", "auto")]
        cells += [_floor(each.figure("auto", figure))]
        cells += [number(each.mean("auto", "nll"))] if with_nll else []
        add_row(table, *cells, points(each.mean("auto", "error")))
    return table


def _loss_table(summary: Summary) -> Table:
    label = _baseline_label(summary)
    names = ["NLL\nraw", "\nT", "\nauto"]
    table = table_of("Method", *names, f"auto less\n{label} + T", "± SE", "Brier\nauto")
    for each in summary.methods:
        nll = [number(each.mean(way, "nll")) for way in ("raw", "temperature", "auto")]
        brier = number(each.mean("auto", "brier"))
        add_row(table, _called(summary, each), *nll, *_difference(each.nll), brier)
    return table


def _legend(summary: Summary, figure: str) -> str:
    counts = sorted({len(each.seeds) for each in summary.methods})
    seeds = " to ".join(map(str, dict.fromkeys((counts[0], counts[-1]))))
    words = (
        f"Means over {seeds} seed{'' if counts == [1] else 's'}. Paper, ours, T, auto and floor: "
        f"{figure_name(figure)} in %, before calibrating (raw), after temperature scaling (T) and "
        "after the automatic choice of a calibrator (auto). [interval]: of one run, not of the "
        "mean. Floor: what a calibrated model with the scores of auto gets on average (95 times in "
        "100 at most). NLL: log loss in nats. Less "
        f"{_baseline_label(summary)} + T: the same rows, paired; below 0 is better. SE: of that "
        "difference over test rows, not over seeds. Error in %."
    )
    if summary.recipe is not None:
        words += f" *: the recipe, chosen on the {summary.recipe.rows} rows."
    return words


def _baseline_label(summary: Summary) -> str:
    return "CE" if summary.baseline is None else summary[summary.baseline].label


def _called(summary: Summary, method: MethodSummary) -> str:
    chosen = summary.recipe is not None and method.name == summary.recipe.method
    return f"{method.label}{' *' if chosen else ''}"


def _paper(method: MethodSummary, figure: str) -> str:
    """Write the paper's figure before and after temperature scaling; empty if it has neither."""
    known = method.published
    raw, scaled = known.get(figure), known.get(f"{figure}_scaled")
    if figure == "ece_ew" and raw is None:
        raw = known.get("ece")
    if raw is None and scaled is None:
        return ""
    return " → ".join(MISSING if each is None else f"{each:.2f}" for each in (raw, scaled))


def _with_interval(figure: SeedFigure | None) -> str:
    if figure is None:
        return MISSING
    if figure.low is None or figure.high is None:
        return points(figure.value.mean)
    return f"{points(figure.value.mean)} [{points(figure.low, 1)}, {points(figure.high, 1)}]"


def _floor(figure: SeedFigure | None) -> str:
    if figure is None or figure.floor is None:
        return MISSING
    return f"{points(figure.floor)} ({points(figure.floor_q95)})"


def _difference(loss: PairedLoss | None) -> tuple[str, str]:
    if loss is None:
        return MISSING, MISSING
    if loss.same:
        return "same", ""
    return f"{loss.difference + 0.0:+.4f}", f"{loss.error:.4f}"


def _list_parts(
    experiments: list[Experiment], have: Mapping[str, bool], where: Mapping[str, str]
) -> Iterator[RenderableType]:
    from rich.text import Text

    yield Text(
        "python -m reproductions NAME trains one of these and shows ours beside the paper's."
    )
    table = table_of("Name", "What", "Data", "Runs", "Minutes a run", words=(0, 1, 2, 4))
    table.columns[0].no_wrap = True  # names are to be copied
    for each in experiments:
        add_row(table, each.name, each.title, _data(each, have), _runs(each), _minutes(each))
    yield table
    yield Text("Runs: methods x seeds. Minutes: of training; side by side, a run alone takes less.")
    yield Text(_sizes(experiments))
    unrun: dict[str, list[str]] = {}
    for each in experiments:
        if not each.run:
            why = sentence(each.why or "its data cannot be had here")
            unrun.setdefault(why, []).append(each.name)
    for why, names in unrun.items():
        yield Text(printable(f"Not run: {join_words(names)}. {why}"))
    needed = dict.fromkeys(
        name for each in experiments for name in each.needs if not have.get(name)
    )
    for name in needed:
        if name in where:
            yield Text(printable(sentence(f"Missing: {name}; {where[name]}")))


def _sizes(experiments: list[Experiment]) -> str:
    """Say what runs without a GPU."""
    large = [each.name for each in experiments if "small" not in each.sizes]
    but = f" (not {join_words(large)})" if large else ""
    return (
        f"--size small takes minutes on two processor cores{but}; --size toy takes seconds, on "
        "made-up rows without any file."
    )


def _data(experiment: Experiment, have: Mapping[str, bool]) -> str:
    if not experiment.needs:
        return "made here"
    return ", ".join(
        f"{name} ({'here' if have.get(name) else 'missing'})" for name in experiment.needs
    )


def _runs(experiment: Experiment) -> str:
    return f"{len(experiment.methods)} x {len(experiment.seeds)}"


def _minutes(experiment: Experiment) -> str:
    if not experiment.run:
        return "not run"
    parts = [f"{minutes:g} ({hardware})" for hardware, minutes in experiment.minutes.items()]
    return ", ".join(parts) or "not run yet"
