"""Charts of figures that only some reproductions have."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from docs.reproduction_charts import WIDTH, Chart, legend_below, name_rows, paper_marks
from docs.reproduction_records import Found, data_set, extras

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from calibrant.reproductions.seed_figures import MethodSummary

BEFORE, AFTER, THIRD = "#D55E00", "#0072B2", "#009E73"

_SETTINGS = {
    "n_bins": "number of bins",
    "strength": "lambda, the strength of each step",
    "gamma_max": "largest gamma",
    "gamma_min": "smallest gamma",
    "switch": "switch to inverse focal loss at",
    "mode": "rules",
}


def out_of_scope(found: Found) -> Figure | None:
    """Draw how well each method tells other data sets apart, before and after temperature."""
    per_method = {name: extras(runs, "ood") for name, runs in found.methods.items()}
    per_method = {name: each for name, each in per_method.items() if each}
    if not per_method:
        return None
    import matplotlib.pyplot as plt

    from calibrant.reports.style import GREY, tidy

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
            for value, face, color, label in zip(
                values, ("white", AFTER), (BEFORE, AFTER), ("as trained", "with temperature"),
                strict=True,
            ):  # fmt: skip
                style = {"color": color, "markerfacecolor": face, "markersize": 6}
                ax.plot(value, y, "o", label=label if y == 0 else None, **style)
        paper_marks(ax, [found.summary[method] for method in per_method], f"auroc_{name}")
        tidy(ax, x="AUROC, %", y="", unit_x=False, unit_y=False)
        ax.set_title(data_set(name))
    name_rows(axes[0, 0], [found.labels[name] for name in per_method])
    legend_below(figure, axes[0, 0])
    return figure


def rare_class(found: Found) -> Figure | None:
    """Draw the mean probability of the rare class beside its true share, and how many are found."""
    having = {name: extras(runs, "rare_class") for name, runs in found.methods.items()}
    having = {name: each for name, each in having.items() if each}
    if not having:
        return None
    import matplotlib.pyplot as plt

    from calibrant.reports.style import GREY, tidy

    first = found.runs[0]["classes"], next(iter(having.values()))[0]["class"]
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
    name_rows(axes[0], [found.labels[name] for name in having])
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


def ablations(found: Found) -> Figure | None:
    """Draw calibration error over each setting of AdaFocal that methods change."""
    panels = settings(found)
    if not panels:
        return None
    import matplotlib.pyplot as plt

    from calibrant.reports.style import BAND, tidy

    columns = min(2, len(panels))
    rows = math.ceil(len(panels) / columns)
    size = (WIDTH, 2.0 * rows + 0.6)
    figure, axes = plt.subplots(
        rows, columns, figsize=size, layout="constrained", sharey=True, squeeze=False
    )
    for ax, (name, values) in zip(axes.flat, panels.items(), strict=False):
        tidy(ax, x="", y="", unit_x=False, unit_y=False)
        one = values[0][1].figure("auto", "ece_em")
        if one is not None and one.floor is not None and one.floor_q95 is not None:
            span = (100 * one.floor, 100 * one.floor_q95)
            ax.axhspan(
                *span, color=BAND, alpha=0.6, linewidth=0, label="a perfect model, by chance"
            )
        _setting_line(ax, values, "raw", BEFORE, "as trained")
        _setting_line(ax, values, "auto", THIRD, "with the automatic choice")
        ax.set_xticks(range(len(values)), [value for value, _ in values])
        ax.set_xlim(-0.5, len(values) - 0.5)
        ax.set_title(_SETTINGS[name])
    for ax in axes[:, 0]:
        ax.set_ylabel("ECE, %")
    legend_below(figure, axes[0, 0], columns=3)
    for ax in axes.flat[len(panels) :]:
        ax.remove()
    return figure


def settings(found: Found) -> dict[str, list[tuple[str, MethodSummary]]]:
    """Return the methods that change one setting of AdaFocal, by setting, values in their order.

    The one that they are a change of, plain AdaFocal or one of another strength, stands among them
    at its own value.
    """
    known = {
        each.name: _options(str(each.options.get("loss", ""))) for each in found.experiment.methods
    }
    there = {each.name: each for each in found.summary.methods if known.get(each.name) is not None}
    found_for: dict[str, list[tuple[str, MethodSummary]]] = {}
    for name, each in there.items():
        options = dict(known[name] or {})
        varied = [key for key in options if key in _SETTINGS and key != "strength"] or list(options)
        if len(varied) != 1 or varied[0] not in _SETTINGS:
            continue
        series = found_for.setdefault(varied[0], [])
        series.append((options.pop(varied[0]), each))
        base = next((name for name, other in known.items() if other == options), None)
        if base in there and all(one is not there[base] for _, one in series):
            series.append((_usual_value(varied[0]), there[base]))
    if sum(map(len, found_for.values())) < 3:  # one loss with an option is no series
        return {}
    return {name: sorted(each, key=lambda one: _place(one[0])) for name, each in found_for.items()}


def _options(loss: str) -> dict[str, str] | None:
    """Return the options of AdaFocal that count for a chart; None for another loss."""
    name, _, told = loss.partition(":")
    if name != "adafocal":
        return None
    pairs = (each.split("=") for each in told.split(",") if "=" in each)
    return {key: value for key, value in pairs if key != "min_count"}


def _usual_value(name: str) -> str:
    """Return what AdaFocal takes by default."""
    from calibrant.losses import AdaFocalLoss

    plain: Any = AdaFocalLoss()
    inside = {"gamma_max": "high", "gamma_min": "low"}.get(name, name)
    value = getattr(plain, name, None) or getattr(plain.rule, inside)
    return value if isinstance(value, str) else f"{value:g}"


def _place(value: str) -> tuple[float, str]:
    try:
        return float(value), ""
    except ValueError:
        return math.inf, value


def _setting_line(
    ax: Axes, values: Sequence[tuple[str, MethodSummary]], way: str, color: str, label: str
) -> None:
    """Draw means as dots, and the range over seeds as a bar."""
    for x, (_, method) in enumerate(values):
        one = method.figure(way, "ece_em")
        if one is None:
            continue
        spread = one.value
        gaps = (spread.mean - spread.least, spread.most - spread.mean)
        ends = [[100 * max(gap, 0.0)] for gap in gaps]  # a mean of equal numbers is rounded
        at = x + (-0.1 if way == "raw" else 0.1)
        style: dict[str, Any] = {"fmt": "o", "color": color, "markersize": 5, "linewidth": 1.2}
        face = "white" if way == "raw" else color
        ax.errorbar([at], [100 * spread.mean], ends, markerfacecolor=face,
                    label=label if x == 0 else None, **style)  # fmt: skip


EXTRA_CHARTS = (
    Chart(
        "settings", "What each setting of AdaFocal does",
        "One setting is changed at a time. Dots are means over seeds, bars reach from the best to "
        "the worst seed. Where bars overlap, the setting made no difference that could be seen.",
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
        "than a test row: 100 % tells all apart, 50 % is a coin. Mean over seeds.",
        out_of_scope,
    ),
)  # fmt: skip
