"""Charts with a panel for each method: reliability, spread of scores, thresholds."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from docs.reproduction_charts import WIDTH, Chart, legend_below
from docs.reproduction_records import ExperimentRuns, extra

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BEFORE, AFTER, THIRD = "#D55E00", "#0072B2", "#009E73"
WHEN = {"before": (BEFORE, "white", "as trained"), "after": (AFTER, AFTER, "with temperature")}

_MOST = 9  # panels
_TARGET = 0.85  # the precision that the return-reason paper tunes for

Both = Mapping[str, Any]


def reliability(outcome: ExperimentRuns) -> Figure | None:
    """Draw accuracy against confidence of each method, before and after temperature."""

    def draw(ax: Axes, both: Both) -> str:
        from calibrant.reports.displays.style import GREY

        low = min(both["before"]["confidence"] + both["after"]["confidence"])
        ends = [math.floor(10 * low) / 10, 1.0]
        ax.plot(ends, ends, color=GREY, linestyle=(0, (4, 3)), linewidth=1.1, label="perfect")
        for when, (color, face, words) in WHEN.items():
            one = both[when]
            style: dict[str, Any] = {"markerfacecolor": face, "markersize": 4.5, "linewidth": 1.2}
            ax.plot(one["confidence"], one["accuracy"], "o-", color=color, label=words, **style)
        return f"ECE {100 * both['before']['ece']:.1f} → {100 * both['after']['ece']:.1f} %"

    bins = {name: _bins_of(runs) for name, runs in outcome.methods.items()}
    return _panels(outcome, bins, draw, x="mean confidence", y="share right")


def scores(outcome: ExperimentRuns) -> Figure | None:
    """Draw how the probabilities of the second of two classes are spread."""

    def draw(ax: Axes, both: Both) -> str:
        for when, (color, _, words) in WHEN.items():
            count = np.array(both[when], dtype=float)
            edges = np.linspace(0, 1, len(count) + 1)
            ax.stairs(100 * count / count.sum(), edges, color=color, linewidth=1.3, label=words)
        return ""

    name = f"probability of {outcome.runs[0]['classes'][-1]}"
    return _panels(outcome, _curves(outcome, "scores"), draw, x=name, y="% of test rows")


def thresholds(outcome: ExperimentRuns) -> Figure | None:
    """Draw precision and recall over the threshold, of the model as trained."""

    def draw(ax: Axes, both: Both) -> str:
        from calibrant.reports.displays.style import GREY

        one = {name: _floats(values) for name, values in both["before"].items()}
        ax.axhline(_TARGET, color=GREY, linestyle=(0, (4, 3)), linewidth=1.0, label="85 %")
        ax.plot(one["threshold"], one["precision"], color=AFTER, label="precision")
        ax.plot(one["threshold"], one["recall"], color=BEFORE, label="recall")
        return ""

    return _panels(outcome, _curves(outcome, "thresholds"), draw, x="threshold", y="share")


CURVE_CHARTS = (
    Chart(
        "reliability", "Confidence against accuracy, before and after",
        "A dot on the dashed line is right: of rows with confidence 0.8, 80 % are predicted right. "
        "Below it the model is over-confident. First seed; in the titles ECE with ten bins of "
        "equal width.",
        reliability,
    ),
    Chart(
        "scores", "How probabilities are spread",
        "A model that is too sure puts its rows near 0 and 1, one that is not sure enough puts "
        "them in the middle. First seed.",
        scores,
    ),
    Chart(
        "thresholds", "Precision and recall over the threshold",
        "Of the model as trained, on all test rows. First seed.",
        thresholds,
    ),
)  # fmt: skip


def _panels(
    outcome: ExperimentRuns,
    data: Mapping[str, Both | None],
    draw: Callable[[Axes, Both], str],
    x: str,
    y: str,
) -> Figure | None:
    """Draw a panel for each method that has data; `draw` returns a second line of its title."""
    shown = [(name, each) for name, each in data.items() if each][:_MOST]
    if not shown:
        return None
    import matplotlib.pyplot as plt

    from calibrant.reports.displays.style import tidy

    columns = min(3, len(shown))
    rows = math.ceil(len(shown) / columns)
    size = (max(WIDTH * columns / 3, 3.4), 2.2 * rows + 0.5)
    figure, axes = plt.subplots(
        rows, columns, figsize=size, layout="constrained", sharex=True, sharey=True, squeeze=False
    )
    for ax, (name, each) in zip(axes.flat, shown, strict=False):
        tidy(ax, x="", y="", unit_x=False, unit_y=False)
        ax.set_title(f"{outcome.labels[name]}\n{draw(ax, each)}".strip(), fontsize=9)
    for ax in axes[:, 0]:
        ax.set_ylabel(y)
    for ax in axes.flat[max(0, len(shown) - columns) :]:
        ax.set_xlabel(x)
        ax.tick_params(labelbottom=True)
    legend_below(figure, axes[0, 0])
    for ax in axes.flat[len(shown) :]:
        ax.remove()
    return figure


def _bins_of(runs: Sequence[Mapping[str, Any]]) -> Both | None:
    """Return the reliability diagrams of the first run that has them, empty bins left out."""
    report, columns = extra(runs, "report"), extra(runs, "paper_columns")
    if report is not None and "bins" in report:
        both = report["bins"]
    elif columns is not None and "curves" in columns:
        curves = columns["curves"]
        both = {
            "before": curves["raw"]["reliability"],
            "after": curves["temperature"]["reliability"],
        }
    else:
        return None
    return {when: _filled(both[when]) for when in WHEN}


def _filled(bins: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    lines = zip(bins["rows"], bins["confidence"], bins["accuracy"], strict=True)
    rows, sure, right = (list(each) for each in zip(*(one for one in lines if one[0]), strict=True))
    gaps = np.abs(np.subtract(sure, right))
    return {"confidence": sure, "accuracy": right, "ece": float(np.average(gaps, weights=rows))}


def _curves(outcome: ExperimentRuns, name: str) -> dict[str, Both | None]:
    """Return a curve of each method's first run, before and after temperature."""
    curves = {
        method: (extra(runs, "paper_columns") or {}).get("curves", {})
        for method, runs in outcome.methods.items()
    }
    return {
        method: {"before": each["raw"][name], "after": each["temperature"][name]}
        for method, each in curves.items()
        if name in each.get("raw", {})
    }


def _floats(values: Sequence[float | None]) -> Any:
    return np.array(values, dtype=float)
