"""Tables of one reproduction: ours beside the paper's, every calibrator, every figure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from docs.reproduction_records import ExperimentRuns, last_epoch, shown_error
from docs.tables import dense, table

if TYPE_CHECKING:
    from reproductions.paired_loss import PairedLoss
    from reproductions.seed_figures import MethodSummary, SeedFigure, Spread

NONE = "–"
BOTH = ("raw", "temperature")
WAYS = {
    "raw": "As trained",
    "temperature": "Temperature",
    "ets": "ETS",
    "spline": "Spline",
    "auto": "Automatic choice",
}
FIGURES = {
    "ece_em": "ECE, equal mass",
    "ece_ew": "ECE, equal width",
    "ece_debiased": "ECE, debiased",
    "ece_sweep_em": "ECE, sweep",
    "nll": "log loss",
    "brier": "Brier",
    "error": "error",
}
ERRORS = {"ece_em": "ECE with bins of equal mass", "ece_ew": "ECE with bins of equal width"}
_NATS = ("nll", "brier")  # no percentages
_TIED, _JOINED = "\N{NO-BREAK SPACE}", "\N{WORD JOINER}"


def percent(value: float | None, digits: int = 2) -> str:
    """Write a fraction in percent, without the sign."""
    return NONE if value is None else f"{100 * value + 0.0:.{digits}f}"


def interval(figure: SeedFigure | None) -> str:
    """Write the interval of a figure in percent."""
    if figure is None or figure.low is None or figure.high is None:
        return NONE
    return f"{percent(figure.low)}{_JOINED}–{_JOINED}{percent(figure.high)}"


def chance(figure: SeedFigure | None) -> str:
    """Write the floor in percent: its mean, and its 95 % quantile in brackets."""
    if figure is None or figure.floor is None:
        return NONE
    return f"{percent(figure.floor)} ({percent(figure.floor_q95)})"


def named(outcome: ExperimentRuns, method: MethodSummary) -> str:
    """Write a method's label, in bold where it is the recipe."""
    recipe = outcome.summary.recipe
    chosen = recipe is not None and recipe.method == method.name
    return f"**{method.label}**" if chosen else method.label


def beside_the_paper(outcome: ExperimentRuns) -> str:
    """Return ours beside what the paper printed, or nothing where it printed no ECE."""
    metric = shown_error(outcome.summary)
    if not any(_printed(each, metric, way) for each in outcome.summary.methods for way in BOTH):
        return ""
    columns: dict[str, Callable[[MethodSummary], str]] = {
        "method": lambda each: named(outcome, each),
        "paper": lambda each: _arrow([_printed(each, metric, way) or NONE for way in BOTH]),
        "ours": lambda each: _arrow([percent(each.mean(way, metric)) for way in BOTH]),
        "interval": lambda each: interval(each.figure("temperature", metric)),
        "chance alone": lambda each: chance(each.figure("temperature", metric)),
        "last epoch": lambda each: percent(last_epoch(outcome, each.name)),
        "paper's error": _published_error,
        "our error": lambda each: percent(each.mean("temperature", "error")),
    }
    if metric != "ece_em" or not _chosen_epochs(outcome):
        del columns["last epoch"]
    if all(_published_error(each) == NONE for each in outcome.summary.methods):
        del columns["paper's error"]
    rows = [[cell(each) for cell in columns.values()] for each in outcome.summary.methods]
    last = " *Last epoch* is ours as trained after the last epoch instead of the one that is kept."
    return (
        f"## Beside the paper\n\n{ERRORS[metric]}, as trained → with temperature, and error; all "
        "in %, ours are means over seeds. Interval and chance alone are those of ours with "
        f"temperature.{last if 'last epoch' in columns else ''}{_bold(outcome)}\n\n"
        f"{dense(table(columns, rows))}\n{_equal_width(outcome) if metric == 'ece_em' else ''}"
    )


def _equal_width(outcome: ExperimentRuns) -> str:
    """Return the other calibration error beside what was printed of it, where it was."""
    rows = [
        (named(outcome, each), _arrow([_printed(each, "ece_ew", way) or NONE for way in BOTH]),
         _arrow([percent(each.mean(way, "ece_ew")) for way in BOTH]),
         *(interval(each.figure(way, "ece_ew")) for way in BOTH))
        for each in outcome.summary.methods
        if any(_printed(each, "ece_ew", way) for way in BOTH)
    ]  # fmt: skip
    if not rows:
        return ""
    head = ("method", "printed", "ours", "interval as trained", "interval with temperature")
    return (
        f"{ERRORS['ece_ew']}, as trained → with temperature, of the methods of which it was "
        f"printed:\n\n{dense(table(head, rows))}\n"
    )


def _chosen_epochs(outcome: ExperimentRuns) -> bool:
    """Return whether some run kept another epoch than its last, and tells of the last."""
    return any(
        run.get("test_history") and run["best_epoch"] + 1 < run["epochs"] for run in outcome.runs
    )


def every_calibrator(outcome: ExperimentRuns) -> str:
    """Return the calibration error of each method after each calibrator."""
    metric = shown_error(outcome.summary)
    rows = []
    for each in outcome.summary.methods:
        auto = each.figure("auto", metric)
        rows.append(
            (named(outcome, each), *(percent(each.mean(way, metric)) for way in WAYS),
             interval(auto), chance(auto), percent(each.mean("auto", "error")))
        )  # fmt: skip
    words = (words if words == "ETS" else words.lower() for words in WAYS.values())
    head = ("method", *words, "its interval", "chance alone", "error")
    return (
        f"## Every calibrator\n\n{ERRORS[metric]} in %. Interval, chance alone and error are those "
        f"of the automatic choice.{_bold(outcome)}\n\n{dense(table(head, rows))}\n"
    )


def every_figure(outcome: ExperimentRuns) -> str:
    """Return all figures after each calibrator, one tab for each."""
    tabs = []
    for way, words in WAYS.items():
        rows = [
            (named(outcome, each), *(_figure(each, way, name) for name in FIGURES))
            for each in outcome.summary.methods
        ]
        shown = table(("method", *FIGURES.values()), rows)
        tabs.append(f'=== "{words}"\n\n{_indented(shown)}\n')
    two = outcome.summary.classes == 2
    brier = "that of the second class's probability" if two else "a sum over classes"
    return (
        "## All figures\n\nMeans over seeds. ECE and error in %, log loss in nats; the Brier score "
        f"is {brier}. Each run has its own file, with intervals and floors of all of "
        f"these, under `docs/reproductions/results/{outcome.name}`.\n\n"
        f"{''.join(tabs)}\n"
    )


def log_losses(outcome: ExperimentRuns) -> str:
    """Return log losses beside that of cross-entropy with temperature."""
    summary = outcome.summary
    if summary.baseline is None or not any(each.nll for each in summary.methods):
        return ""
    plain = summary[summary.baseline].label
    rows = [
        (named(outcome, each),
         *(_figure(each, way, "nll") for way in ("raw", "temperature", "auto")),
         difference(each.nll_scaled), difference(each.nll))
        for each in summary.methods
    ]  # fmt: skip
    less = f"less {plain} with temperature"
    head = ("method", "as trained", "temperature", "automatic choice", f"temperature, {less}",
            f"choice, {less}")  # fmt: skip
    return (
        f"## Log loss against {plain} with temperature\n\nThe log loss rewards being right and "
        "being honest about it; no choice of bins can flatter it. Differences are taken row by row "
        "on the same test rows, seeds averaged: below 0 is better, and within two standard errors "
        "it is called level. The standard error is over test rows: it says how far the difference "
        "of these very networks may move on other rows, not with other seeds.\n\n"
        f"{dense(table(head, rows))}\n"
    )


def how_it_was_run(outcome: ExperimentRuns) -> str:
    """Return rows, seeds, epochs, seconds, machine, versions and the command."""
    summary = outcome.summary
    rows = []
    for each in summary.methods:
        runs = outcome.methods[each.name]
        rows.append((
            each.label, _listed(each.seeds), _range(run["epochs"] for run in runs),
            _spread(each.best_epoch, 1, 0), _spread(each.temperature, 0, 2), _taken(each.chosen),
            _spread(each.seconds, 0, 0),
        ))  # fmt: skip
    head = ("method", "seeds", "epochs", "kept epoch", "temperature", "automatic choice",
            "seconds a run")  # fmt: skip
    parts = table(summary.rows, [[f"{n:,}" for n in summary.rows.values()]])
    machines = "".join(f"- {one}\n" for one in _machines(outcome.runs))
    return (
        f"## How it was run\n\nRows of each part; there are {summary.classes} classes:\n\n{parts}\n"
        f"Means over seeds; seconds are those of training{_shared(outcome)}:\n\n"
        f"{dense(table(head, rows))}\n"
        f"Measured on:\n\n{machines}\n```bash\n{commands(outcome)}```\n"
    )


def _shared(outcome: ExperimentRuns) -> str:
    """Say where runs were timed side by side."""
    shared = [each for each in outcome.experiment.minutes if "side by side" in each]
    if not shared or outcome.size != "full":
        return ""
    return f", on one {shared[0]} (a run alone takes less time)"


def commands(outcome: ExperimentRuns) -> str:
    """Return the commands that make these very runs, as lines."""
    groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for run in outcome.runs:
        options = dict(run.get("given") or {})
        groups.setdefault(tuple(sorted(options.items())), []).append(run)
    lines = [_command(outcome, dict(options), runs) for options, runs in groups.items()]
    return "".join(f"{line}\n" for line in lines)


def _command(
    outcome: ExperimentRuns, options: Mapping[str, Any], runs: Sequence[Mapping[str, Any]]
) -> str:
    experiment = outcome.experiment
    methods = list(dict.fromkeys(run["method"] for run in runs))
    seeds = sorted({run["seed"] for run in runs})
    words = ["python -m reproductions", outcome.name]
    words += [] if outcome.size == "full" else [f"--size {outcome.size}"]
    if methods != [method.name for method in experiment.methods]:
        words.append(f"--methods {','.join(methods)}")
    if seeds != list(experiment.seeds):
        words.append(f"--seeds {','.join(map(str, seeds))}")
    words += [f"--{name.replace('_', '-')} {value}" for name, value in options.items()]
    return " ".join([*words, "--out docs/reproductions/results"])


def _printed(method: MethodSummary, metric: str, way: str) -> str:
    """Return what the paper printed, or nothing."""
    name = metric if way == "raw" else f"{metric}_scaled" if way == "temperature" else ""
    value = method.published.get(name)
    if value is None and name == "ece_ew":
        value = method.published.get("ece")
    return "" if value is None else f"{value:.2f}"


def _published_error(method: MethodSummary) -> str:
    known = method.published
    error = known.get("error", 100 - known["accuracy"] if "accuracy" in known else None)
    return NONE if error is None else f"{error:.2f}"


def _figure(method: MethodSummary, way: str, name: str) -> str:
    value = method.mean(way, name)
    return percent(value) if name not in _NATS else NONE if value is None else f"{value:.4f}"


def difference(outcome: PairedLoss | None) -> str:
    """Write how much lower or higher a log loss is, with its standard error and a verdict."""
    if outcome is None:
        return NONE
    if outcome.same:
        return "the same"
    gap = f"{outcome.difference:+.4f} ± {outcome.error:.4f}".replace("-0.0000", "0.0000")
    gap = gap.replace("-", "−")
    return f"{gap.replace(' ', _TIED)}, {outcome.word}"


def _arrow(pair: Sequence[str]) -> str:
    return pair[0] if pair[1] == NONE else f"{pair[0]}{_TIED}→{_TIED}{pair[1]}"


def _taken(chosen: Mapping[int, str]) -> str:
    from calibrant.study.report.wording import method_name

    counts = Counter(chosen.values())
    if len(counts) == 1:
        return method_name(next(iter(counts)))
    return ", ".join(
        f"{method_name(name)} ({n} of {len(chosen)})" for name, n in sorted(counts.items())
    )


def _bold(outcome: ExperimentRuns) -> str:
    if outcome.summary.recipe is None:
        return ""
    return f" In bold: the recipe, chosen on the {outcome.summary.recipe.rows} rows."


def _machines(runs: Iterable[Mapping[str, Any]]) -> list[str]:
    dates_of: dict[str, list[str]] = {}
    for run in runs:
        dates_of.setdefault(_machine(run["machine"]), []).append(str(run["date"]))
    return [f"{_range(dates)}: {machine}" for machine, dates in dates_of.items()]


def _machine(machine: Mapping[str, Any]) -> str:
    gpu = f"one {machine['gpu']}, " if machine.get("gpu") else ""
    packages = ", ".join(f"{k} {v}" for k, v in machine["packages"].items() if v)
    return (
        f"{gpu}{machine['cpu']}, {machine['cores']} cores, {machine['system']}; "
        f"Python {machine['python']}, {packages}"
    )


def _range(values: Iterable[Any]) -> str:
    known = sorted(set(values))
    return str(known[0]) if len(known) == 1 else f"{known[0]} to {known[-1]}"


def _spread(spread: Spread | None, more: int, digits: int) -> str:
    return NONE if spread is None else f"{spread.mean + more:,.{digits}f}"


def _listed(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, numbers))


def _indented(text: str) -> str:
    return "".join(f"    {line}\n" for line in text.splitlines())
