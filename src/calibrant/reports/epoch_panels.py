"""What the displays of a training run share: one panel for each chosen bin, over epochs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import InputError
from calibrant.inputs import FloatArray
from calibrant.reports.style import GREY, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "Panels",
    "bin_title",
    "check_histories",
    "check_history",
    "chosen_bins",
    "explain",
    "line",
    "name_axes",
    "panels",
    "zero_line",
]

Panels = NDArray[Any]
"""A table of matplotlib axes."""


def chosen_bins(n_bins: int, bins: Sequence[int] | None) -> tuple[int, ...]:
    """Return the bins to draw: the lowest, the middle and the highest unless some are asked for.

    Examples
    --------
    >>> chosen_bins(15, None), chosen_bins(2, None), chosen_bins(15, [3])
    ((0, 7, 14), (0, 1), (3,))
    """
    if bins is None:
        return tuple(sorted({0, n_bins // 2, n_bins - 1}))
    chosen = tuple(bins) if isinstance(bins, Sequence | np.ndarray) else (bins,)
    whole = all(isinstance(b, int | np.integer) and not isinstance(b, bool) for b in chosen)
    if not chosen or not whole or not all(0 <= b < n_bins for b in chosen):
        raise InputError(
            f"bins must be one or more whole numbers in 0..{n_bins - 1} for {n_bins} bins, "
            f"got {bins!r}."
        )
    return tuple(int(b) for b in chosen)


def check_history(history: Any, needed: Sequence[str], source: str) -> None:
    """Refuse what is not a history with these figures, or one without an epoch."""
    missing = [name for name in needed if not hasattr(history, name)]
    if missing:
        raise InputError(
            f"history must be {source} and hold {', '.join(missing)}, "
            f"got {type(history).__name__}."
        )
    if not len(getattr(history, needed[0])):
        raise InputError("history must hold at least one epoch, got none: train first.")


def check_histories(histories: Any, needed: Sequence[str], source: str) -> None:
    """Refuse what is not a mapping of names to histories with the same number of bins."""
    if not isinstance(histories, Mapping) or not histories:
        raise InputError(
            f"histories must map the name of each run to {source}, got {histories!r:.60}."
        )
    for history in histories.values():
        check_history(history, needed, source)
    sizes = {str(name): history.confidence.shape[1] for name, history in histories.items()}
    if len(set(sizes.values())) > 1:
        raise InputError(
            f"histories must have the same number of bins to share a figure, got {sizes}: "
            "give every hook the same n_bins."
        )


def panels(
    ax: Any, shape: tuple[int, int], size: tuple[float, float], share_y: bool | str = False
) -> Panels:
    """Return `ax` as a table of axes, or the axes of a new figure with panels of `size` inches."""
    rows, columns = shape
    if ax is not None:
        given = np.asarray(ax, dtype=object)
        if given.size != rows * columns:
            raise InputError(
                f"ax must hold {rows} x {columns} axes, one for each panel, got {given.size}: "
                f"plt.subplots({rows}, {columns}) makes them."
            )
        return given.reshape(shape)
    import matplotlib.pyplot as plt

    _, made = plt.subplots(
        rows, columns, figsize=(size[0] * columns + 0.5, size[1] * rows + 0.8),
        layout="constrained", squeeze=False, sharex=True, sharey=share_y,
    )  # fmt: skip
    return np.asarray(made)


def line(ax: Axes, x: NDArray[Any], y: NDArray[Any], **style: Any) -> None:
    """Draw a figure over epochs; points beside a gap get a dot, as no line would show them."""
    if "marker" not in style and (len(x) < 5 or not np.isfinite(y).all()):
        style |= {"marker": "o", "markersize": 2.5}
    ax.plot(x, y, **{"linewidth": 1.5, **style})


def name_axes(ax: Axes, *, x: str, y: str) -> None:
    """Name the axes and keep the ticks few and, over epochs, whole."""
    from matplotlib.ticker import MaxNLocator

    tidy(ax, x=x, y=y, unit_x=False, unit_y=False)
    ax.xaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))
    ax.tick_params(labelsize=8)
    ax.xaxis.label.set_fontsize(9)
    ax.yaxis.label.set_fontsize(9)


def zero_line(ax: Axes) -> None:
    """Draw where confidence equals accuracy."""
    ax.axhline(0.0, color=GREY, linestyle=(0, (4, 3)), linewidth=1.1, zorder=1.5)


def bin_title(b: int, n_bins: int, edges: FloatArray | None = None) -> str:
    """Say which rows a bin holds, and with the edges of the last epoch how sure those are.

    Examples
    --------
    >>> bin_title(0, 3), bin_title(2, 3, np.array([0.4, 0.99987]))
    ('least sure rows (bin 0)', 'surest rows (bin 2)\\nat the end above 0.9999')
    """
    words = {n_bins - 1: "surest rows", n_bins // 2: "middle rows", 0: "least sure rows"}
    title = f"{words[b]} (bin {b})" if b in words and n_bins > 1 else f"bin {b}"
    if edges is None or n_bins < 2:
        return title
    low, high = (float(edge) for edge in np.r_[-np.inf, edges, np.inf][b : b + 2])
    high = high if math.isfinite(high) else math.inf
    if math.isnan(low) or low == high:
        return f"{title}\nat the end without rows"
    if b == 0:
        return f"{title}\nat the end below {_short(high)}"
    if math.isinf(high):
        return f"{title}\nat the end above {_short(low)}"
    return f"{title}\nat the end {_short(low)} to {_short(high)}"


def explain(axes: Panels, text: str) -> None:
    """Write over a figure of our own how to read it, in lines that fit."""
    figure = axes.flat[0].figure
    width = int(figure.get_size_inches()[0] * 13)
    figure.suptitle("\n".join(wrap(text, width)), fontsize=10, color="#374151")


def _short(value: float) -> str:
    """Two decimals, more where the value is so near 1 that they would round it away."""
    if not 0.99 < value < 1:
        return f"{value:.2f}"
    return f"{value:.{min(6, math.ceil(-math.log10(1 - value)))}f}"
