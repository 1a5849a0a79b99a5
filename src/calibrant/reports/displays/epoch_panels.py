"""What the displays of a training run share: one panel for each chosen bin, over epochs."""

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

__all__ = [
    "Panels",
    "bin_title",
    "check_epochs",
    "check_histories",
    "chosen_bins",
    "filled_bins",
    "finish",
    "grid",
    "line",
    "name_axes",
    "panels",
    "reach",
    "run_style",
    "zero_line",
]

Panels = NDArray[Any]
"""A table of matplotlib axes."""

_MANY = 150
"""Epochs beyond which lines are drawn thinner."""


def filled_bins(figures: FloatArray) -> list[int]:
    """Return the bins that hold rows in at least half of the epochs: their figures are not NaN.

    Examples
    --------
    >>> filled_bins(np.array([[0.1, np.nan, 0.3], [0.1, np.nan, np.nan]]))
    [0, 2]
    """
    share = np.isfinite(figures).mean(axis=0)
    return np.flatnonzero(share >= min(0.5, share.max())).tolist()


def chosen_bins(n_bins: int, bins: Sequence[int] | None, filled: list[int]) -> tuple[int, ...]:
    """Return the bins to draw: the lowest, middle and highest with rows unless some are asked for.

    Examples
    --------
    >>> every = list(range(15))
    >>> chosen_bins(15, None, every), chosen_bins(15, None, [0, 9]), chosen_bins(15, [3], every)
    ((0, 7, 14), (0, 9), (3,))
    """
    if bins is None:
        return tuple(sorted(_words(filled)))
    found = np.asarray(bins)
    whole = found.ndim == 1 and len(found) > 0 and found.dtype.kind in "iu"
    if not whole or found.min() < 0 or found.max() >= n_bins:
        raise InputError(
            f"bins must be a list of whole numbers in 0..{n_bins - 1} for {n_bins} bins, "
            f"got {bins!r}."
        )
    return tuple(found.tolist())


def check_histories(histories: Any) -> None:
    """Refuse what is not a mapping of names to histories with the same number of bins."""
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
    """Refuse a history in which nothing has happened yet."""
    if not len(epochs):
        raise InputError("history must hold at least one epoch to draw, got none: train first.")


def panels(ax: Any, shape: tuple[int, int], size: tuple[float, float]) -> Panels:
    """Return `ax` as a table of axes, or those of a new figure with panels of `size` inches."""
    rows, columns = shape
    if ax is not None:
        return _given(ax, rows * columns).reshape(shape)
    import matplotlib.pyplot as plt

    width = max(size[0] * columns + 0.3, 5.2)  # the words around it need as much
    _, made = plt.subplots(
        rows, columns, figsize=(width, size[1] * rows + 0.2), layout="constrained", squeeze=False
    )
    return np.asarray(made)


def grid(ax: Any, count: int, size: tuple[float, float]) -> Panels:
    """Return `count` axes: those of `ax`, or of a new figure that is wider than high."""
    if ax is not None:
        return _given(ax, count)
    columns = count if count < 4 else math.ceil(math.sqrt(count))
    made = panels(None, (math.ceil(count / columns), columns), size).ravel()
    for spare in made[count:]:
        spare.remove()
    return made[:count]


def line(ax: Axes, x: NDArray[Any], y: NDArray[Any], **style: Any) -> None:
    """Draw a figure over epochs; points beside a gap get a dot, as no line would show them."""
    if "marker" not in style and (len(x) < 5 or not np.isfinite(y).all()):
        style |= {"marker": "o", "markersize": 2.5}
    width = 1.5 if len(x) <= _MANY else 0.9  # hundreds of peaks would run together
    ax.plot(x, y, **{"linewidth": width, **style})


def name_axes(ax: Axes, *, x: str, y: str, title: str = "") -> None:
    """Name a panel and its axes, with few ticks, whole ones over epochs."""
    from matplotlib.ticker import MaxNLocator

    tidy(ax, x=x, y=y, unit_x=False, unit_y=False)
    ax.set_title(title, fontsize=9.5)
    ax.xaxis.set_major_locator(MaxNLocator(nbins=5, integer=True, min_n_ticks=1))
    ax.tick_params(labelsize=8)
    ax.xaxis.label.set_fontsize(9)
    ax.yaxis.label.set_fontsize(9)


def run_style(number: int, name: Any) -> dict[str, Any]:
    """Return colour, dashes and label of a run: dashes tell apart what shares a colour."""
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
    """Say which rows a bin holds.

    Examples
    --------
    >>> bin_title(0, [0, 1, 2]), bin_title(2, [0, 1, 2, 3, 4]), bin_title(3, [0, 1, 2, 3, 4])
    ('least sure rows (bin 0)', 'middle rows (bin 2)', 'bin 3')
    """
    words = _words(filled)
    return f"{words[b]} (bin {b})" if b in words else f"bin {b}"


def reach(b: int, edges: FloatArray, count: IntArray) -> str:
    """Say how sure the rows of a bin are, by the edges and counts of an epoch.

    Examples
    --------
    >>> edges, count = np.array([0.4, 0.99987]), np.array([9, 9, 9])
    >>> [reach(b, edges, count) for b in range(3)]
    ['below 0.40', '0.40 to 0.9998', 'above 0.9998']
    """
    if not count[b]:
        return "without rows"
    low, high = (float(edge) for edge in np.r_[0.0, edges, 1.0][b : b + 2])
    if not high < 1:
        return f"above {_short(low)}" if low > 0 else "0 to 1"
    return f"{_short(low)} to {_short(high)}" if low > 0 else f"below {_short(high)}"


def finish(
    axes: Panels, how: str, *, own: bool, handles: list[Any], name: str | None = None
) -> Figure:
    """Put the legend and, over a figure of our own, the words that say how to read it."""
    figure: Figure = axes.flat[0].figure
    style: dict[str, Any] = {"frameon": False, "fontsize": 8.5, "handlelength": 1.8}
    if not own:
        axes.flat[0].legend(handles=handles, **style)
        return figure
    width, height = figure.get_size_inches()
    title = _balanced(how, width) if not name else f"{label_of(name)}\n{_balanced(how, width)}"
    figure.suptitle(title, fontsize=9.5, color="#374151")
    rows, columns = _legend_shape([str(handle.get_label()) for handle in handles], width)
    figure.legend(handles=handles, loc="outside lower center", ncols=columns, **style)
    # What the words take is added, so that panels keep their size however few there are.
    figure.set_size_inches(width, height + 0.16 * (1 + title.count("\n")) + 0.19 * rows)
    return figure


def _balanced(text: str, width: float) -> str:
    """Break a text into lines of about the same length that fit `width` inches."""
    most = int(width * 13)
    lines = math.ceil(len(text) / most)
    for least in range(math.ceil(len(text) / lines), most + 1):
        found = wrap(text, least)
        if len(found) == lines:
            return "\n".join(found)
    return "\n".join(wrap(text, most))


def _legend_shape(labels: list[str], width: float) -> tuple[int, int]:
    """Return the fewest rows, and their columns, in which a legend fits `width` inches."""
    lengths = [0.55 + 0.062 * len(label) for label in labels]  # at the font size of the legend
    for columns in range(len(labels), 1, -1):  # filled one after the other, as matplotlib does
        parts = np.array_split(lengths, columns)
        if sum(part.max() for part in parts) < width - 0.3:
            rows = len(parts[0])
            return rows, math.ceil(len(labels) / rows)
    return len(labels), 1


def _given(ax: Any, count: int) -> Panels:
    given = np.asarray(ax, dtype=object).ravel()
    if given.size != count:
        raise InputError(
            f"ax must hold {count} axes, one for each panel, got {given.size}: "
            f"plt.subplots(1, {count}) makes them."
        )
    return given


def _words(filled: list[int]) -> dict[int, str]:
    """Name the lowest, the middle and the highest bin; where they are the same, one of them."""
    middle = filled[len(filled) // 2]
    return {middle: "middle rows", filled[-1]: "surest rows", filled[0]: "least sure rows"}


def _short(value: float) -> str:
    """Two decimals; four, cut off, where the value is so near 1 that they would round it away."""
    if not 0.99 < value < 1:
        return f"{value:.2f}"
    return f"{math.floor(1e4 * value) / 1e4:.4f}"
