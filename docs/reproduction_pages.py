"""The pages about reproductions, made from the records under docs/reproductions/results.

`index.md` shows all experiments, and each that has records gets a page of its own with its charts.
No figure is written by hand: ours come from records, the papers' from the configs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from docs.reproduction_adafocal import adafocal_section
from docs.reproduction_charts import CHARTS, Chart, draw_charts
from docs.reproduction_curve_charts import CURVE_CHARTS
from docs.reproduction_extra_charts import EXTRA_CHARTS
from docs.reproduction_extra_tables import EXTRA_TABLES
from docs.reproduction_findings import findings, headline, recipe_name
from docs.reproduction_group_charts import GROUP_CHARTS
from docs.reproduction_records import ExperimentRuns, read_results
from docs.reproduction_tables import (
    NONE,
    beside_the_paper,
    chance,
    every_calibrator,
    every_figure,
    how_it_was_run,
    interval,
    log_losses,
    percent,
)
from docs.tables import dense, table

if TYPE_CHECKING:
    from reproductions.experiment import Experiment

_INTRO = """# Reproductions

What the papers behind this package measured, measured again: the same data where it can be had, the
same networks, the same losses, ours beside theirs. Every run is kept in a file, and these pages are
made from the files. Whoever has the data can repeat each of them with one command.

"""

_READING = """## How to read the tables

- **Calibration error (ECE)**: rows are sorted into bins by confidence, and in each bin the mean
  confidence is compared with the share of right predictions. ECE is the mean gap. With bins of
  *equal mass* each bin has the same number of rows; with bins of *equal width* the same range of
  confidence. [Metrics](../metrics.md) has all of them.
- **Chance alone**: what a perfectly calibrated model would get on these test rows, because labels
  fall by chance: its mean, and in brackets what it stays under 95 times in 100. No model can be
  expected to do better. [Intervals and floors](../intervals-and-floors.md) explains how it is
  computed.
- **ECE_EM** and **ECE_EW** in sentences are ECE with bins of equal mass and of equal width;
  *debiased* (of squared gaps, so not always the smaller one) has the mean of chance taken off,
  *sweep* chooses the number of bins by itself, and **SE** is a standard error.
- **Interval**: where the calibration error of one run would lie on endlessly many rows, with 95 %
  confidence.
- **As trained**, **temperature**, **ETS**, **spline**, **automatic choice**: the network's own
  probabilities, three [calibrators](../calibrators.md), and the one that the package chooses by
  itself. All are fitted on calibration rows (*calib* in sentences), which no training has seen.
  Where the automatic choice takes ETS, or temperature with two classes, it fits them with one row's
  worth of doubt: its figures are not quite those of the columns of that name.
- **Error**: the share of wrong predictions.
- **Recipe**: the way of training that a [study](../study.md) would take: least log loss after
  temperature on the steer rows, then the automatic choice. The test rows have no say in it. Steer
  rows flatter a loss that follows them, such as AdaFocal: larger experiments keep half of them, the
  choice rows, for the comparison alone. Images choose on the calibration rows, cross-validated:
  cut in three, each part of the papers' validation images would be small. Elsewhere, where these
  rows would choose otherwise, a sentence says what and how that fares.
- **The automatic choice** starts from temperature with three classes or more, since 18 November
  2026. That rule was found on logits of other networks (`python -m benchmarks --only auto_choice`),
  but after the test rows of earlier runs had been seen. Where runs are older, a note says so.
- **Seed**: another beginning of the same training. Figures are means over seeds.
- **Refinement**: the log loss that is left once a temperature has been fitted, on the steer rows;
  the epoch with the best one is kept where a page says so.
- Methods are called as in the papers: CE is cross-entropy, FL-3 focal loss with gamma 3, LS label
  smoothing. *AdaFocal* follows the paper's released code, *AdaFocal, robust* is the rule that this
  package has as its default. [Losses](../losses.md) explains them.

"""

_REPEAT = """## Repeat it

```bash
python -m reproductions --list
python -m reproductions bigmart
python -m reproductions bigmart --size small
```

The first shows what there is: the data each needs, where to get it, how long a run takes. `--size
small` takes minutes on two processor cores, `--size toy` seconds. Data is looked for in the folders
named by `CALIBRANT_DATA`, and downloaded where it has a public address. Each page ends with the
command that made its very runs. [All options](../reproduce.md).

A run leaves the logits of its calibration and test rows beside its record, as files of scores, so
that calibrators can be tried on its network without a GPU. Those of CIFAR-10 are in the repository,
of runs since 18 November 2026: `docs/reproductions/results/cifar10-resnet50/ce-0.test.npz`.

"""

_SPLITS = """## Four parts, where the papers have three

Train rows are learned from. **Steer** rows are followed during training: they choose the epoch, the
recipe and the gammas of AdaFocal. Where a page speaks of **choice** rows, these are a random half
of the steer rows that training never sees, and they alone choose the recipe. **Calibration** rows
fit the calibrators and thresholds, and choose the recipe where a page says so. **Test** rows are
only reported on. The papers use one validation part for the middle two jobs: rows that shaped the
network then also say how far its confidence must be corrected.

"""


def write_pages(folder: Path, experiments: Iterable[Experiment], results: Path) -> list[Path]:
    """Write index, pages and charts to `folder`; return the pages. Pages of before go."""
    known = list(experiments)
    outcome = read_results(results, known)
    folder.mkdir(parents=True, exist_ok=True)
    for old in [*folder.glob("*.md"), *(folder / "images").glob("*.png")]:
        old.unlink()
    pages = {"index": index_page(known, outcome)}
    for name, one in outcome.items():
        drawn = (*CHARTS, *GROUP_CHARTS, *CURVE_CHARTS, *EXTRA_CHARTS)
        charts = draw_charts(drawn, one, folder / "images")
        pages[name] = experiment_page(one, charts)
    for name, text in pages.items():
        (folder / f"{name}.md").write_text(text, encoding="utf-8")
    return [folder / f"{name}.md" for name in pages]


def index_page(experiments: Sequence[Experiment], outcomes: Mapping[str, ExperimentRuns]) -> str:
    """Return the overview of all experiments, those without results too."""
    return "".join(
        [_INTRO, _overview(experiments, outcomes), _recipes(outcomes), adafocal_section(outcomes),
         _READING, _REPEAT, _SPLITS, _face_value(outcomes), _without(experiments, outcomes)]
    )  # fmt: skip


def experiment_page(outcome: ExperimentRuns, charts: Sequence[tuple[Chart, str]] = ()) -> str:
    """Return the page of one experiment: what was found, tables, charts, how it was run."""
    summary = outcome.summary
    head = f"# {summary.title}\n\n**{headline(outcome)}**\n\n{summary.paper}.\n\n"
    head += "".join(f"{note}\n\n" for note in summary.notes)
    if outcome.size != "full":
        head += (
            f'!!! warning "Size {outcome.size}"\n\n    These runs are smaller than the paper\'s: '
            "they show that the code runs, not what it reaches.\n\n"
        )
    head += "[How to read the tables](index.md#how-to-read-the-tables)\n\n"
    extras = (part(outcome) for part in EXTRA_TABLES)
    return "".join(
        [head, findings(outcome), beside_the_paper(outcome), every_calibrator(outcome),
         log_losses(outcome), *extras, _figures(charts), every_figure(outcome),
         how_it_was_run(outcome)]
    )  # fmt: skip


def _overview(experiments: Sequence[Experiment], outcomes: Mapping[str, ExperimentRuns]) -> str:
    """Return a table of all experiments: run or not, goals, and what was found in a sentence."""
    if not outcomes:
        return "There are no results on this copy yet: `python -m reproductions` makes them.\n\n"
    rows = [
        (f"[{one.summary.title}]({one.name}.md){_smaller(one)}", _runs(one), _verdict(one),
         headline(one))
        for one in outcomes.values()
    ]  # fmt: skip
    unrun: dict[str, list[str]] = {}
    for one in experiments:
        if one.name not in outcomes:
            why = "Not run yet" if one.run else one.why.removesuffix(".")
            why += ", nor was telling other data sets apart." if "ood" in one.extras else "."
            unrun.setdefault(why, []).append(one.title)
    never = "**not\N{NO-BREAK SPACE}run**"
    rows += [("<br>".join(titles), never, NONE, why) for why, titles in unrun.items()]
    return (
        "## At a glance\n\nThe goals: an ECE with bins of equal mass (ECE_EM) at most the paper's "
        "best, or what chance allows; an error within half a point of that of plain cross-entropy "
        "(CE); and a log loss that is not worse than that of cross-entropy with temperature, by "
        "two standard errors over test rows (only *worse* misses it). "
        "They are those of one recipe, chosen without the test rows.\n\n"
        f"{dense(table(('experiment', 'runs', 'goals', 'in one sentence'), rows))}\n"
        "A dash: no paper printed such an ECE for these rows, so there is none to reach. *Open* "
        "and *so far* mean too few seeds or too small a size to tell. Where cross-entropy has "
        "another epoch or other options than the recipe, the page of the experiment says what is "
        f"left when they are the same. {_log_losses(outcomes)}\n\n"
    )


def _log_losses(outcomes: Mapping[str, ExperimentRuns]) -> str:
    """Count how often the recipe's log loss is lower than that of cross-entropy."""
    from calibrant.formatting import format_count

    sentences = [_nll_words(one).strip("*") for one in outcomes.values()]
    known = [words for words in sentences if words != "unknown"]
    counts = [f"{words} in {n}" for words, n in Counter(known).most_common()]
    if not known:
        return ""
    return (
        f"Of {format_count(len(known), 'log loss')}, with few seeds or many: {', '.join(counts)}."
    )


def _smaller(outcome: ExperimentRuns) -> str:
    return "" if outcome.size == "full" else f" (size {outcome.size})"


def _runs(outcome: ExperimentRuns) -> str:
    seeds = {run["seed"] for run in outcome.runs}
    return (
        f"{len(outcome.runs)}<br>{len(seeds)}\N{NO-BREAK SPACE}seed{'' if len(seeds) == 1 else 's'}"
    )


def _recipes(outcomes: Mapping[str, ExperimentRuns]) -> str:
    if not outcomes:
        return ""
    head = ("experiment, and our recipe", "the paper's best ECE", "our ECE", "chance alone",
            "error (CE's)")  # fmt: skip
    return (
        "## Our recipes in figures\n\nThe paper's best is the smallest of its figures, whichever "
        "method had it. ECE with bins of equal mass; all in %, means over seeds, below our ECE its "
        f"interval.\n\n{dense(table(head, [_recipe_row(one) for one in outcomes.values()]))}\n"
    )


def _recipe_row(outcome: ExperimentRuns) -> tuple[str, ...]:
    from reproductions.goals import best_published

    summary, best = outcome.summary, best_published(outcome.experiment)
    title = f"[{summary.title}]({outcome.name}.md){_smaller(outcome)}"
    plain = None if summary.baseline is None else summary[summary.baseline].mean("raw", "error")
    if summary.recipe is None:
        return (title, percent(best), NONE, NONE, f"{NONE} ({percent(plain)})")
    ours = summary[summary.recipe.method]
    figure = ours.figure("auto", "ece_em")
    return (
        f"{title}<br>{recipe_name(summary.recipe)}", percent(best),
        f"{percent(ours.mean('auto', 'ece_em'))}<br>{interval(figure)}", chance(figure),
        f"{percent(ours.mean('auto', 'error'))} ({percent(plain)})",
    )  # fmt: skip


def _verdict(outcome: ExperimentRuns) -> str:
    names = {"ece_em": "ECE", "error": "error", "nll": "log loss"}
    parts = [] if any(goal.name == "ece_em" for goal in outcome.summary.goals) else [f"ECE {NONE}"]
    for goal in outcome.summary.goals:
        state = "**missed**" if goal.state == "missed" else goal.state
        if goal.name == "nll":
            state = _nll_words(outcome) + (" so far" if goal.state == "open" else "")
        parts.append(f"{names[goal.name]} {state}")
    return "<br>".join(parts).replace(" ", "\N{NO-BREAK SPACE}")


def _nll_words(outcome: ExperimentRuns) -> str:
    recipe = outcome.summary.recipe
    loss = None if recipe is None else outcome.summary[recipe.method].nll
    if loss is None:
        return "unknown"
    words = "the same" if loss.same else loss.word
    return f"**{words}**" if words == "worse" else words


def _face_value(outcome: Mapping[str, ExperimentRuns]) -> str:
    """Explain why the papers' figures are not a measure by themselves, with examples."""
    text = (
        "## Why the papers' figures cannot be taken at face value\n\nA calibration error is never "
        "0 on a finite sample, even for a perfect model. The papers print single numbers without "
        "that floor. Where their best figure lies at or below what chance alone gives, smaller is "
        "luck, not skill, and methods cannot be ranked by it.\n\n"
    )
    lines = [line for one in outcome.values() if (line := _floor_line(one))]
    text += f"{''.join(lines)}\n" if lines else ""
    return text + (
        "Besides, the rows that steered AdaFocal also fitted the temperature and chose the epoch, "
        "and temperatures were picked by the very error that is then reported. So our goal is the "
        "paper's best figure, or what chance allows, whichever is larger.\n\n"
    )


def _floor_line(outcome: ExperimentRuns) -> str:
    from reproductions.goals import best_published

    best, recipe = best_published(outcome.experiment), outcome.summary.recipe
    figure = None if recipe is None else outcome.summary[recipe.method].figure("auto", "ece_em")
    if best is None or figure is None or figure.floor is None or figure.floor_q95 is None:
        return ""
    side = "not above" if best <= figure.floor_q95 else "above"
    return (
        f"- {outcome.summary.title}: the paper's best is {percent(best)} %. A perfect model with "
        f"the scores of our recipe gets {percent(figure.floor)} % on average on "
        f"{outcome.summary.rows['test']:,} test rows, and stays under "
        f"{percent(figure.floor_q95)} % 95 times in 100: the paper's best is {side} that.\n"
    )


def _without(experiments: Sequence[Experiment], outcome: Mapping[str, ExperimentRuns]) -> str:
    """List what has no results: why, and where its data is."""
    from reproductions.data_sets import DATA_SETS

    rest = [one for one in experiments if one.name not in outcome]
    if not rest:
        return ""
    needs = dict.fromkeys(name for one in rest for name in one.needs)
    alike: dict[tuple[str, str], list[str]] = {}
    for one in rest:
        data = "<br>".join(DATA_SETS[name].title for name in one.needs) or "made by the package"
        why = "not run yet" if one.run else f"Not run. {one.why}"
        alike.setdefault((why, data), []).append(f"{one.title}<br>`{one.name}`")
    rows = [("<br>".join(names), *facts) for facts, names in alike.items()]
    sets = [(DATA_SETS[n].title, DATA_SETS[n].where, DATA_SETS[n].licence) for n in needs]
    return (
        "## Not run\n\nCode and settings of these are there. Where it says *not run yet*, the data "
        "is at hand and the time on a GPU was not; the others run as soon as their data is there."
        "\n\n"
        f"{table(('experiment', 'why', 'data'), rows)}\n"
        f"Where their data is:\n\n{table(('data', 'get it from', 'licence'), sets)}\n"
    )


def _figures(charts: Sequence[tuple[Chart, str]]) -> str:
    shown = (
        f"### {chart.title}\n\n[![{chart.title}](images/{file})](images/{file})\n\n"
        f"{chart.words}\n\n"
        for chart, file in charts
    )
    return f"## Figures\n\n{''.join(shown)}" if charts else ""
