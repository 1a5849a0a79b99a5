"""Colour-blind safe palette and axes helpers of the matplotlib displays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from calibrant.formatting import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# Okabe & Ito's palette, without yellow, which is faint on white.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000", "#8C6D31")
EVENT, OTHER, THIRD = PALETTE[:3]
GREY = "#6B7280"
BAND = "#C9CED6"


def new_axes(ax: Axes | None, size: tuple[float, float], *, fixed: bool = False) -> Axes:
    """Return `ax`, or the axes of a new figure of `size` inches, its margins fixed or fitted."""
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=size, layout=None if fixed else "constrained")
    if fixed:
        figure.subplots_adjust(left=0.13, right=0.97, bottom=0.09, top=0.98)
    return ax


def tidy(ax: Axes, *, x: str, y: str, unit_x: bool = True, unit_y: bool = True) -> None:
    """Label the axes, limit probabilities to [0, 1], and remove clutter."""
    ax.set(xlabel=x, ylabel=y)
    if unit_x:
        ax.set_xlim(-0.02, 1.02)
    if unit_y:
        ax.set_ylim(-0.02, 1.02)
    ax.grid(visible=True, color="#E5E7EB", linewidth=0.8)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)


def marker_of(points: int) -> str:
    """Return the marker of a curve: dots if it has too few points for a line."""
    return "o" if points < 5 else ""


def label_of(name: Any) -> str:
    """Escape a name for matplotlib, where a dollar sign starts a formula."""
    return printable(name).replace("$", r"\$")
