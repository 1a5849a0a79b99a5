"""Panels over epochs, one for each chosen bin, shared by the displays of a training run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import InputError
from calibrant.inputs import FloatArray, IntArray
from calibrant.reports.displays.bin_history import BinHistory
from calibrant.reports.displays.style import GREY, PALETTE, label_of, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Panels = NDArray[Any]  # Array of matplotlib axes

_MANY = 150  # Epochs beyond which lines are drawn thinner


def filled_bins(figures: FloatArray) -> list[int]:
    """Return the bins that are not empty (NaN) in at least half of the epochs."""
    share = np.isfinite(figures).mean(axis=0)
    return np.flatnonzero(share >= min(0.5, share.max())).tolist()


def choose_bins(n_bins: int, bins: Sequence[int] | None, filled: list[int]) -> tuple[int, ...]:
    """Return the bins to draw; by default the lowest, middle and highest non-empty ones."""
    if bins is None:
        return tuple(sorted(_bin_words(filled)))
    numbers = np.asarray(bins)
    whole = numbers.ndim == 1 and len(numbers) > 0 and numbers.dtype.kind in "iu"
    if not whole or numbers.min() < 0 or numbers.max() >= n_bins:
        raise InputError(
            f"bins must be a list of whole numbers in 0..{n_bins - 1} for {n_bins} bins, "
            f"got {bins!r}."
        )
    return tuple(numbers.tolist())


def check_histories(histories: Any) -> None:
    """Raise `InputError` unless this maps names to histories with the same number of bins."""
    if not isinstance(histories, Mapping) or not histories:
        raise InputError(
            "histories must map the name of each run to the history of its BinTrace, "
            f"got {histories!r:.60}."
        )
    for history in histories.values():
        if not isinstance(history, BinHistory):
            raise InputError(
                f"history must be the history of a BinTrace, got {type(history).__name__}."
            )
        check_epochs(history.epoch)
    sizes = {str(name): history.n_bins for name, history in histories.items()}
    if len(set(sizes.values())) > 1:
        raise InputError(
            f"histories must have the same number of bins to share a figure, got {sizes}: "
            "give every BinTrace the same n_bins."
        )


def check_epochs(epochs: Any) -> None:
    """Raise `InputError` for a history without epochs."""
    if not len(epochs):
        raise InputError("history must hold at least one epoch to draw, got none: train first.")


def make_panels(ax: Any, shape: tuple[int, int], size: tuple[float, float]) -> Panels:
    """Return `ax` as a table of axes, or those of a new figure with panels of `size` inches."""
    rows, columns = shape
    if ax is not None:
        return _as_axes(ax, rows * columns).reshape(shape)
    import matplotlib.pyplot as plt

    width = max(size[0] * columns + 0.3, 5.2)  # room for title and legend
    _, axes = plt.subplots(
        rows, columns, figsize=(width, size[1] * rows + 0.2), layout="constrained", squeeze=False
    )
    return np.asarray(axes)


def make_grid(ax: Any, count: int, size: tuple[float, float]) -> Panels:
    """Return `count` axes: those of `ax`, or of a new landscape figure."""
    if ax is not None:
        return _as_axes(ax, count)
    columns = count if count < 4 else math.ceil(math.sqrt(count))
    axes = make_panels(None, (math.ceil(count / columns), columns), size).ravel()
    for spare in axes[count:]:
        spare.remove()
    return axes[:count]


def draw_line(ax: Axes, x: NDArray[Any], y: NDArray[Any], **style: Any) -> None:
    """Draw values over epochs, with markers if isolated points would be invisible."""
    if "marker" not in style and (len(x) < 5 or not np.isfinite(y).all()):
        style |= {"marker": "o", "markersize": 2.5}
    width = 1.5 if len(x) <= _MANY else 0.9  # so that hundreds of peaks stay distinct
    ax.plot(x, y, **{"linewidth": width, **style})


def name_axes(ax: Axes, *, x: str, y: str, title: str = "") -> None:
    """Set the title and axis labels of a panel, with few integer ticks."""
    from matplotlib.ticker import MaxNLocator

    tidy(ax, x=x, y=y, unit_x=False, unit_y=False)
    ax.set_title(title, fontsize=9.5)
    ax.xaxis.set_major_locator(MaxNLocator(nbins=5, integer=True, min_n_ticks=1))
    ax.tick_params(labelsize=8)
    ax.xaxis.label.set_fontsize(9)
    ax.yaxis.label.set_fontsize(9)


def run_style(number: int, name: Any) -> dict[str, Any]:
    """Return colour, line style and label of a run; line styles separate repeated colours."""
    label = label_of(name)
    return {
        "color": PALETTE[number % len(PALETTE)],
        "linestyle": ("-", "--", ":")[number // len(PALETTE) % 3],
        "label": f" {label}" if label.startswith("_") else label,  # matplotlib < 3.10 would hide it
    }


def zero_line(ax: Axes) -> None:
    """Draw where confidence equals accuracy."""
    ax.axhline(0.0, color=GREY, linestyle=(0, (4, 3)), linewidth=1.1, zorder=1.5)


def bin_title(b: int, filled: list[int]) -> str:
    """Return the title of a bin."""
    words = _bin_words(filled)
    return f"{words[b]} (bin {b})" if b in words else f"bin {b}"


def describe_range(b: int, edges: FloatArray, count: IntArray) -> str:
    """Return the range of confidence of a bin, by the edges and counts of an epoch."""
    if not count[b]:
        return "without rows"
    low, high = (float(edge) for edge in np.r_[0.0, edges, 1.0][b : b + 2])
    if not high < 1:
        return f"above {_format_edge(low)}" if low > 0 else "0 to 1"
    return (
        f"{_format_edge(low)} to {_format_edge(high)}" if low > 0 else f"below {_format_edge(high)}"
    )


def finish_figure(
    axes: Panels, how: str, *, own: bool, handles: list[Any], name: str | None = None
) -> Figure:
    """Add the legend and, to a new figure, a title that explains how to read it."""
    figure: Figure = axes.flat[0].figure
    style: dict[str, Any] = {"frameon": False, "fontsize": 8.5, "handlelength": 1.8}
    if not own:
        axes.flat[0].legend(handles=handles, **style)
        return figure
    width, height = figure.get_size_inches()
    title = (
        _wrap_evenly(how, width) if not name else f"{label_of(name)}\n{_wrap_evenly(how, width)}"
    )
    figure.suptitle(title, fontsize=9.5, color="#374151")
    rows, columns = _legend_shape([str(handle.get_label()) for handle in handles], width)
    figure.legend(handles=handles, loc="outside lower center", ncols=columns, **style)
    # Add the height of the text, so that panels keep their size.
    figure.set_size_inches(width, height + 0.16 * (1 + title.count("\n")) + 0.19 * rows)
    return figure


def _wrap_evenly(text: str, width: float) -> str:
    """Break a text into lines of about the same length that fit `width` inches."""
    most = int(width * 13)
    lines = math.ceil(len(text) / most)
    for least in range(math.ceil(len(text) / lines), most + 1):
        wrapped = wrap(text, least)
        if len(wrapped) == lines:
            return "\n".join(wrapped)
    return "\n".join(wrap(text, most))


def _legend_shape(labels: list[str], width: float) -> tuple[int, int]:
    """Return the fewest rows, and their columns, in which a legend fits `width` inches."""
    lengths = [0.55 + 0.062 * len(label) for label in labels]  # at the font size of the legend
    for columns in range(len(labels), 1, -1):  # filled column by column, as in matplotlib
        parts = np.array_split(lengths, columns)
        if sum(part.max() for part in parts) < width - 0.3:
            rows = len(parts[0])
            return rows, math.ceil(len(labels) / rows)
    return len(labels), 1


def _as_axes(ax: Any, count: int) -> Panels:
    axes = np.asarray(ax, dtype=object).ravel()
    if axes.size != count:
        raise InputError(
            f"ax must hold {count} axes, one for each panel, got {axes.size}: "
            f"plt.subplots(1, {count}) makes them."
        )
    return axes


def _bin_words(filled: list[int]) -> dict[int, str]:
    """Name the lowest, the middle and the highest bin; where they are the same, one of them."""
    middle = filled[len(filled) // 2]
    return {middle: "middle rows", filled[-1]: "surest rows", filled[0]: "least sure rows"}


def _format_edge(value: float) -> str:
    """Format with two decimals; with four, truncated, if two would round the value to 1."""
    if not 0.99 < value < 1:
        return f"{value:.2f}"
    return f"{math.floor(1e4 * value) / 1e4:.4f}"
