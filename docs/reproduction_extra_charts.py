"""Charts of figures that only some reproductions have."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from docs.reproduction_charts import WIDTH, Chart, legend_below, name_rows, paper_marks
from docs.reproduction_records import ExperimentRuns, data_set, extras

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from reproductions.seed_figures import MethodSummary, Spread

BEFORE, AFTER, THIRD = "#D55E00", "#0072B2", "#009E73"


def out_of_scope(outcome: ExperimentRuns) -> Figure | None:
    """Draw how well each method tells other data sets apart, before and after temperature."""
    per_method = {name: extras(runs, "ood") for name, runs in outcome.methods.items()}
    per_method = {name: each for name, each in per_method.items() if each}
    if not per_method:
        return None
    import matplotlib.pyplot as plt

    from calibrant.reports.displays.style import GREY, tidy

    sets = list(next(iter(per_method.values()))[0])
    size = (WIDTH, 1.3 + 0.27 * len(per_method))
    figure, axes = plt.subplots(
        1, len(sets), figsize=size, layout="constrained", sharey=True, squeeze=False
    )
    for ax, name in zip(axes[0], sets, strict=True):
        for y, runs in enumerate(per_method.values()):
            values = [
                100 * np.mean([run[name]["entropy"][way] for run in runs])
                for way in ("raw", "temperature")
            ]
            ax.plot(values, [y, y], color=GREY, linewidth=1.0, zorder=1)
            for value, way, face, color, label in zip(
                values, ("raw", "temperature"), ("white", AFTER), (BEFORE, AFTER),
                ("as trained", "with temperature"), strict=True,
            ):  # fmt: skip
                style = {"color": color, "markerfacecolor": face, "markersize": 6}
                ax.plot(value, y, "o", label=label if y == 0 else None, **style)
                seeds = [100 * run[name]["entropy"][way] for run in runs]
                aside = [y + (-0.18 if way == "raw" else 0.18)] * len(seeds)
                ax.plot(seeds, aside, "|", color=color, markersize=4)
        paper_marks(ax, [outcome.summary[method] for method in per_method], f"auroc_{name}")
        tidy(ax, x="AUROC, %", y="", unit_x=False, unit_y=False)
        ax.set_title(data_set(name))
    name_rows(axes[0, 0], [outcome.labels[name] for name in per_method])
    legend_below(figure, axes[0, 0])
    return figure


def rare_class(outcome: ExperimentRuns) -> Figure | None:
    """Draw the mean probability of the rare class beside its true share, and how many are found."""
    having = {name: extras(runs, "rare_class") for name, runs in outcome.methods.items()}
    having = {name: each for name, each in having.items() if each}
    if not having:
        return None
    import matplotlib.pyplot as plt

    from calibrant.reports.displays.style import GREY, tidy

    first = outcome.runs[0]["classes"], next(iter(having.values()))[0]["class"]
    place = first[0].index(first[1])
    size = (WIDTH, 1.4 + 0.27 * len(having))
    figure, axes = plt.subplots(1, 2, figsize=size, layout="constrained", sharey=True)
    rate = 100 * float(np.mean([run["raw"]["event_rate"] for run in next(iter(having.values()))]))
    for y, runs in enumerate(having.values()):
        color = GREY if runs[0]["log_shift"] is None else (BEFORE, AFTER)[runs[0]["corrected"]]
        recalls = [100 * run["raw"]["recall"][place] for run in runs]
        for ax, values in zip(axes, (_mean_scores(runs), recalls), strict=True):
            ax.barh(y, np.mean(values), height=0.62, color=color, alpha=0.85)
            ax.plot(values, [y] * len(values), ".", color="#111827", markersize=3)
    axes[0].axvline(rate, color="#000000", linestyle=(0, (4, 3)), linewidth=1.3)
    name_rows(axes[0], [outcome.labels[name] for name in having])
    tidy(axes[0], x="%", y="", unit_x=False, unit_y=False)
    tidy(axes[1], x="%", y="", unit_x=False, unit_y=False)
    axes[0].set_title("mean predicted probability\nof the rare class")
    axes[1].set_title("share of the rare class\nthat is predicted so")
    axes[0].plot([], [], "k--", label=f"its true share, {rate:.1f} %")
    for color, label in (
        (GREY, "class frequencies as they are"),
        (BEFORE, "moved in training"),
        (AFTER, "moved, and put right again"),
    ):
        axes[0].barh([0], [0], color=color, label=label)
    legend_below(figure, axes[0], columns=2)
    return figure


def _mean_scores(runs: Sequence[Mapping[str, Any]]) -> list[float]:
    return [100 * run["raw"]["mean_score"] for run in runs]


def ablations(outcome: ExperimentRuns) -> Figure | None:
    """Draw calibration error over each setting of AdaFocal that methods change."""
    from reproductions.adafocal_settings import SETTINGS, settings_of

    panels = settings_of(outcome.experiment, outcome.summary.methods)
    if not panels:
        return None
    import matplotlib.pyplot as plt

    from calibrant.reports.displays.style import BAND, tidy

    columns = min(2, len(panels))
    rows = math.ceil(len(panels) / columns)
    size = (WIDTH, 2.0 * rows + 0.6)
    figure, axes = plt.subplots(
        rows, columns, figsize=size, layout="constrained", sharey=True, squeeze=False
    )
    for ax, (name, values) in zip(axes.flat, panels.items(), strict=False):
        tidy(ax, x="", y="", unit_x=False, unit_y=False)
        one = values[0].method.figure("auto", "ece_em")
        if one is not None and one.floor is not None and one.floor_q95 is not None:
            span = (100 * one.floor, 100 * one.floor_q95)
            ax.axhspan(
                *span, color=BAND, alpha=0.6, linewidth=0, label="a perfect model, by chance"
            )
        for place, (words, (color, spread_of)) in enumerate(_spreads(outcome).items()):
            spreads = [spread_of(each.method) for each in values]
            _setting_line(ax, spreads, 0.16 * (place - 1), color, words)
        ax.set_xticks(range(len(values)), [each.text for each in values])
        ax.set_xlim(-0.5, len(values) - 0.5)
        ax.set_title(SETTINGS[name])
    for ax in axes[:, 0]:
        ax.set_ylabel("ECE, %")
    legend_below(figure, axes[0, 0], columns=2)
    for ax in axes.flat[len(panels) :]:
        ax.remove()
    return figure


def _spreads(
    outcome: ExperimentRuns,
) -> dict[str, tuple[str, Callable[[MethodSummary], Spread | None]]]:
    """Return what is drawn of each method: words, a colour, and the figure over seeds."""
    from reproductions.adafocal_settings import later_error

    def of(way: str) -> Callable[[MethodSummary], Spread | None]:
        return lambda each: one.value if (one := each.figure(way, "ece_em")) else None

    return {
        "as trained, the kept epoch": (BEFORE, of("raw")),
        "as trained, mean of the later epochs": (
            AFTER, lambda each: later_error(outcome.methods[each.name])
        ),
        "with the automatic choice": (THIRD, of("auto")),
    }  # fmt: skip


def _setting_line(
    ax: Axes, spreads: Sequence[Spread | None], aside: float, color: str, label: str
) -> None:
    """Draw means as dots, and the range over seeds as a bar."""
    face = "white" if color == BEFORE else color
    for x, spread in enumerate(spreads):
        if spread is None:
            continue
        gaps = (spread.mean - spread.least, spread.most - spread.mean)
        ends = [[100 * max(gap, 0.0)] for gap in gaps]  # a mean of equal numbers is rounded
        style: dict[str, Any] = {"fmt": "o", "color": color, "markersize": 4.5, "linewidth": 1.2}
        ax.errorbar([x + aside], [100 * spread.mean], ends, markerfacecolor=face,
                    label=label if x == 0 else None, **style)  # fmt: skip


EXTRA_CHARTS = (
    Chart(
        "settings", "What each setting of AdaFocal does",
        "One setting is changed at a time. Dots are means over seeds, bars reach from the best to "
        "the worst seed. Where bars overlap, the setting made no difference that could be seen. "
        "The later epochs are the second half; they do not hang on the epoch that is kept. The "
        "last three settings are changed at lambda 5.",
        ablations,
    ),
    Chart(
        "rare", "What is said of the rare class, and how much of it is found",
        "A bar that ends at the dashed line has the right mean probability. Small dots are seeds.",
        rare_class,
    ),
    Chart(
        "ood", "Telling other data sets apart",
        "AUROC is how often a row of another data set gets a less certain answer (by its entropy) "
        "than a test row: 100 % tells all apart, 50 % is a coin. Dots are means, strokes the "
        "seeds.",
        out_of_scope,
    ),
)  # fmt: skip
