"""Charts of a reproduction: each is drawn for any experiment whose records hold its data.

A chart is a function of what was `Found` that returns a figure, or None where it has nothing to
draw. All have a white ground, as every picture of the site.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from textwrap import fill
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
from docs.reproduction_records import ExperimentRuns, Run, shown_error

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from reproductions.seed_figures import MethodSummary

    from calibrant.inputs import FloatArray
    from calibrant.reports.displays.bin_history import BinHistory

WIDTH = 6.4  # inches: letters can still be read where a telephone makes the picture small
PIXELS = 140  # for each inch
FEW = ("ce", "fl3", "flsd53", "adafocal_paper", "mode-paper", "adafocal", "default")
"""Methods of charts in which all lines would be a knot."""
MANY = 9
_ALL = 4  # lines that a reader can distinguish in a small panel

_LETTERS = 100  # of a legend's line, with what stands before a label
_SOFT = {"alpha": 0.18, "linewidth": 0}
_LEAST = 1e-4  # a logarithmic axis has no 0
_STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100)
_SMALL_STEPS = (0.3, 0.4, 0.6, 0.8, 1.5, 3, 4, 6, 8, 12, 15, 25, 30, 40, 60, 80)
_WAYS = (  # the smaller drawn last: where two are the same, both are seen
    ("raw", "o", 8.0, "#D55E00", "as trained"),
    ("temperature", "D", 5.5, "#0072B2", "with temperature"),
    ("auto", "o", 3.2, "#56D6A5", "with the automatic choice"),
)


@dataclass(frozen=True)
class Chart:
    """A chart: `name` in its file, `title`, how to read it, and what draws it."""

    name: str
    title: str
    words: str
    draw: Callable[[ExperimentRuns], Figure | None]


def draw_charts(
    charts: Sequence[Chart], outcome: ExperimentRuns, folder: Path
) -> list[tuple[Chart, str]]:
    """Draw what there is data for; return each chart with its file in the folder."""
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    mpl.use("Agg")
    drawn = []
    for chart in charts:
        with mpl.rc_context({"font.size": 9.0, "axes.titlesize": 9.5}):
            figure = chart.draw(outcome)
            if figure is not None:
                folder.mkdir(parents=True, exist_ok=True)
                drawn.append((chart, f"{outcome.name}-{chart.name}.png"))
                _save(figure, folder / drawn[-1][1])
                plt.close(figure)
    return drawn


def _save(figure: Figure, path: Path) -> None:
    """Write a small picture of at most 256 colours: those that most of its dots have.

    Palettes that are made by splitting the space of colours mix up thin lines on soft grounds.
    """
    from PIL import Image

    whole = BytesIO()
    figure.savefig(whole, dpi=PIXELS, metadata={"Software": None})
    with Image.open(whole) as picture:
        rgb = picture.convert("RGB")
    dots = np.asarray(rgb).astype(np.int32)
    codes = (dots[..., 0] << 16) + (dots[..., 1] << 8) + dots[..., 2]
    outcome, which, counts = np.unique(codes, return_inverse=True, return_counts=True)
    common = _colours(outcome[np.argsort(-counts, kind="stable")[:256]])
    gaps = np.abs(_colours(outcome)[:, None] - common[None]).sum(axis=2)
    nearest = gaps.argmin(axis=1).astype(np.uint8)
    small = Image.fromarray(nearest[which].reshape(codes.shape))
    small.putpalette(common.astype(np.uint8).tobytes())
    small.save(path, optimize=True)


def _colours(codes: Any) -> Any:
    """Return (n, 3) colours of numbers that hold one byte for each."""
    return np.stack([codes >> 16, (codes >> 8) & 255, codes & 255], axis=1)


def legend_below(figure: Figure, ax: Axes, columns: int = 4) -> None:
    """Put one legend under all panels."""
    handles, labels = ax.get_legend_handles_labels()
    columns = min(columns, max(1, _LETTERS // (8 + max(map(len, labels), default=1))))
    style: dict[str, Any] = {"frameon": False, "fontsize": 8.5, "handlelength": 1.8}
    figure.legend(
        handles, labels, loc="outside lower center", ncols=min(columns, len(labels)), **style
    )


def name_rows(ax: Axes, names: Sequence[str]) -> None:
    """Name the rows of a chart from the top down; long names take two lines."""
    ax.set_yticks(range(len(names)), [fill(name, 26) for name in names])
    ax.set_ylim(len(names) - 0.5, -0.65)


def percent_scale(ax: Axes) -> None:
    """Let each doubling take the same room, with plain numbers."""
    ax.use_sticky_edges = False  # what begins a bar would stand on the axis
    ax.set_xscale("log")
    low, high = ax.get_xlim()
    ticks = [step for step in _STEPS if low <= step <= high]
    ticks += [step for step in _SMALL_STEPS if low <= step <= high] if len(ticks) < 4 else []
    ax.set_xticks(sorted(ticks))
    ax.xaxis.set_major_formatter("{x:g}")
    ax.minorticks_off()


def over_epochs(outcome: ExperimentRuns) -> Figure | None:
    """Draw error and calibration error of the test rows after each epoch."""
    few = [name for name in FEW if name in outcome.methods]
    drawn = few if len(outcome.methods) > MANY and len(few) > 2 else list(outcome.methods)
    followed: dict[str, list[Run]] = {}
    for name in drawn:
        known = [run for run in outcome.methods[name] if len(run.get("test_history") or ()) > 1]
        if known:
            followed[name] = known
    followed = _unlike(followed)
    if not followed:
        return None
    import matplotlib.pyplot as plt

    from calibrant.reports.displays.epoch_panels import name_axes, run_style

    size = (WIDTH, 5.2 + 0.1 * len(followed))  # room for the legend
    figure, axes = plt.subplots(2, 1, figsize=size, layout="constrained", sharex=True)
    panels = (("error", "Error", ""), ("ece_em", "Calibration error (ECE_EM)", "epoch"))
    for ax, (key, title, x) in zip(axes, panels, strict=True):
        later, least = [], []
        for number, (name, runs) in enumerate(followed.items()):
            epochs, lines = _lines(runs, key)
            middle, style = lines.mean(axis=0), run_style(number, outcome.labels[name])
            ax.plot(epochs, middle, linewidth=1.4, **style)
            if len(lines) > 1:
                ends = (middle + sign * lines.std(axis=0, ddof=1) for sign in (-1, 1))
                ax.fill_between(epochs, *ends, color=style["color"], **_SOFT)
            later.append(middle[len(middle) // 5 :])
            least.append(middle.min())
        name_axes(ax, x=x, y="% of test rows" if key == "error" else "%", title=title)
        visible = np.concatenate(later)
        room = 0.15 * (visible.max() - min(least)) + 0.2  # bad first epochs may leave the picture
        ax.set_ylim(max(0.0, min(least) - room), visible.max() + room)
    legend_below(figure, axes[0])
    return figure


def gammas(outcome: ExperimentRuns) -> Figure | None:
    """Draw E_val and gamma of three bins for the method that has gammas."""
    having = {name: _first(runs, "gammas", "bins") for name, runs in outcome.methods.items()}
    name = next(
        (name for name in ("adafocal_paper", "mode-paper", *having) if having.get(name)), None
    )
    if name is None:
        return None
    from calibrant.reports import GammaDynamicsDisplay

    run: Any = having[name]
    history: Any = bin_history(run)
    gamma = np.array(run["gammas"], dtype=float)
    # Gammas may be updated within epochs: the last update of each epoch is shown.
    last = np.linspace(0, len(gamma), len(history) + 1)[1:].round().astype(int) - 1
    shown = SimpleNamespace(
        step=history.epoch, edges=history.edges, count=history.count, error=history.error,
        gamma=gamma[last],
    )  # fmt: skip
    if gamma.shape[1] != history.n_bins or len(history) < 2:
        return None
    display = GammaDynamicsDisplay.from_history(shown, name=outcome.labels[name])  # type: ignore[arg-type]
    for ax, b in zip(display.axes_[0], _three(history), strict=True):
        sure = _last_known(history.confidence[:, b])
        ax.set_title(f"{ax.get_title().splitlines()[0]}\nmean confidence {sure}", fontsize=9.5)
    for ax in display.axes_[1]:
        ax.set_xlabel("epoch")
    return display.figure_


def bin_errors(outcome: ExperimentRuns) -> Figure | None:
    """Draw E_val of three bins for a few methods."""
    histories = _histories(outcome)
    if len(histories) < 2:
        return None
    from calibrant.reports import BinErrorDisplay

    return BinErrorDisplay.from_histories(histories).figure_


def confidence_match(outcome: ExperimentRuns) -> Figure | None:
    """Draw C_train against C_val in three bins for up to three methods."""
    some = {
        label: one
        for label, one in _histories(outcome).items()
        if np.isfinite(one.train_confidence).any()
    }
    if not some:
        return None
    from calibrant.reports import ConfidenceMatchDisplay

    ends = [list(some)[i] for i in sorted({0, len(some) // 2, len(some) - 1})]
    return ConfidenceMatchDisplay.from_histories({name: some[name] for name in ends}).figure_


def dumbbells(outcome: ExperimentRuns) -> Figure | None:
    """Draw the calibration error of each method: as trained, with temperature, with the choice."""
    import matplotlib.pyplot as plt

    from calibrant.reports.displays.style import BAND, GREY, tidy

    methods, metric = outcome.summary.methods, shown_error(outcome.summary)
    figure, ax = plt.subplots(figsize=(WIDTH, 1.6 + 0.34 * len(methods)), layout="constrained")
    label: str | None = "a perfect model, by chance: mean to 95 %"
    for y, each in enumerate(methods):
        one = each.figure("auto", metric)
        if one is not None and one.floor is not None and one.floor_q95 is not None:
            low, high = 100 * max(one.floor, _LEAST), 100 * one.floor_q95
            ax.barh(y, high - low, left=low, height=0.86, color=BAND, alpha=0.75, label=label)
            label = None
    for y, each in enumerate(methods):
        means = [each.mean(way, metric) for way, *_ in _WAYS]
        values = [np.nan if mean is None else 100 * max(mean, _LEAST) for mean in means]
        ax.plot(values, [y] * len(values), color=GREY, linewidth=1.0, zorder=1)
        for x, (way, marker, size, color, words) in zip(values, _WAYS, strict=True):
            face = "white" if way == "raw" else color
            style: dict[str, Any] = {"markerfacecolor": face, "markersize": size, "color": color}
            ax.plot(x, y, marker, label=words if y == 0 else None, zorder=2, **style)
    paper_marks(ax, methods, metric)
    tidy(ax, x="calibration error in %, on test rows; lower is better (logarithmic)", y="",
         unit_x=False, unit_y=False)  # fmt: skip
    percent_scale(ax)
    name_rows(ax, [each.label for each in methods])
    legend_below(figure, ax, columns=2)
    return figure


def paper_marks(ax: Axes, methods: Sequence[MethodSummary], figure: str) -> None:
    """Draw what the paper printed before and after temperature, a little above our dots."""
    for name, marker, size, words in (
        (figure, "|", 8.0, "as trained"),
        (f"{figure}_scaled", "x", 5.5, "with temperature"),
    ):
        label: str | None = f"the paper, {words}"
        for y, each in enumerate(methods):
            printed = each.published.get(name)
            if printed is None and name == "ece_ew":
                printed = each.published.get("ece")
            if printed is not None:
                style: dict[str, Any] = {"color": "#000000", "markersize": size}
                ax.plot(printed, y - 0.28, marker, markeredgewidth=1.4, label=label, **style)
                label = None


CHARTS = (
    Chart(
        "ece", "Calibration error, method by method",
        "Each line is a method, mean over seeds. The grey bar is what a perfectly calibrated model "
        "gets from this many test rows by chance, from its mean to what it stays under 95 times in "
        "100: to be further left is luck.",
        dumbbells,
    ),
    Chart(
        "epochs", "Error and calibration error, epoch by epoch",
        "On the test rows, before any calibrator; mean over seeds, with one standard deviation "
        "where there are several. Nothing was chosen by these lines. Methods that only keep "
        "another epoch share a line; where there are many, only the best known may be shown.",
        over_epochs,
    ),
    Chart(
        "bins", "Where a method is over- or under-confident",
        "The steer rows are sorted by confidence into groups of the same size, called bins: the "
        "least sure, the middle and the surest are shown. First seed.",
        bin_errors,
    ),
    Chart(
        "gammas", "How AdaFocal steers",
        "In each bin AdaFocal measures confidence minus accuracy on the steer rows (above), and "
        "moves the gamma of its loss against it (below). First seed.",
        gammas,
    ),
    Chart(
        "match", "Do new rows follow the train rows?",
        "A loss changes the confidence of train rows and hopes that new rows follow. Solid lines: "
        "train rows; stars: steer rows of the same bin. First seed.",
        confidence_match,
    ),
)  # fmt: skip


def bin_history(run: Run) -> BinHistory:
    """Rebuild the bins of a record, epochs from 1; what it does not hold is not a number."""
    from calibrant.reports import BinHistory

    saved = {name: np.array(values, dtype=float) for name, values in run["bins"].items()}
    sure, right = saved["confidence"], saved["accuracy"]
    epochs, bins = sure.shape
    count = saved.get("count", np.isfinite(sure).astype(float))
    gaps = np.nansum(count * np.abs(sure - right), axis=1) / np.maximum(count.sum(axis=1), 1)
    whole = count.astype(np.int64)
    unknown, edges = np.full(sure.shape, np.nan), np.full((epochs, bins - 1), np.nan)
    train = saved.get("train_confidence", unknown)
    return BinHistory(
        epoch=1 + saved.get("epoch", np.arange(epochs)).astype(np.int64), edges=edges, count=whole,
        confidence=sure, accuracy=right, ece=saved.get("ece", gaps), train_count=whole,
        train_confidence=train, train_top=unknown, own_edges=edges, own_count=whole,
        own_confidence=unknown, own_top=unknown, train_accuracy=np.full(epochs, np.nan),
    )  # fmt: skip


def _histories(outcome: ExperimentRuns) -> dict[str, BinHistory]:
    """Return the bins of a few methods by their labels, all with the same number of bins."""
    chosen = [name for name in FEW if name in outcome.methods]
    if len(chosen) < 2 or len(outcome.methods) <= _ALL:
        chosen = list(outcome.methods)[:_ALL]
    runs = {outcome.labels[name]: _first(outcome.methods[name], "bins") for name in chosen}
    known = {label: bin_history(run) for label, run in runs.items() if run is not None}
    sizes = [one.n_bins for one in known.values()]
    return {label: one for label, one in known.items() if one.n_bins == sizes[0] and len(one) > 1}


def _unlike(followed: dict[str, list[Run]]) -> dict[str, list[Run]]:
    """Leave out methods that were trained like one before and only keep another epoch."""
    seen: list[list[Any]] = []
    outcome = {}
    for name, runs in followed.items():
        histories = [run["test_history"] for run in runs]
        if histories not in seen:
            seen.append(histories)
            outcome[name] = runs
    return outcome


def _first(runs: Sequence[Run], *keys: str) -> Run | None:
    return next((run for run in runs if all(run.get(key) for key in keys)), None)


def _lines(runs: Sequence[Run], key: str) -> tuple[FloatArray, FloatArray]:
    """Return epochs from 1 and a figure of each run in percent; runs are cut to the shortest."""
    count = min(len(run["test_history"]) for run in runs)
    epochs = np.array([1 + each["epoch"] for each in runs[0]["test_history"][:count]], dtype=float)
    lines = [[100 * each[key] for each in run["test_history"][:count]] for run in runs]
    return epochs, np.array(lines, dtype=float)


def _three(history: BinHistory) -> tuple[int, ...]:
    from calibrant.reports.displays.epoch_panels import choose_bins, filled_bins

    return choose_bins(history.n_bins, None, filled_bins(history.error))


def _last_known(values: FloatArray) -> str:
    known = values[np.isfinite(values)]
    sure = float(known[-1]) if len(known) else float("nan")
    return f"{np.floor(1e4 * sure) / 1e4:.4f}" if 0.99 < sure < 1 else f"{sure:.2f}"
