"""Display of AdaFocal's calibration errors and gammas by bin over updates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.errors import InputError
from calibrant.inputs import FloatArray, IntArray
from calibrant.reports.displays.epoch_panels import (
    Panels,
    bin_title,
    check_epochs,
    choose_bins,
    describe_range,
    draw_line,
    filled_bins,
    finish_figure,
    make_panels,
    name_axes,
    zero_line,
)
from calibrant.reports.displays.style import EVENT, GREY, OTHER, PALETTE, THIRD

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from calibrant.fitting.gamma_history import GammaHistory

_HOW = (
    "Over-confident rows get a larger gamma, which holds them back; under-confident rows get a "
    "smaller one, which pushes them on."
)
_NEAR = 0.2  # the paper's switch; gammas skip the range around 0, which is drawn linear
_TICKS = (0, 1, 20, -2, 5, 2, -1, 10, 0.5, -0.5, 50, 100, -5, 0.2, -0.2)  # in order of priority
_INVERSE = PALETTE[3]
_NEEDED = ("step", "edges", "error", "count", "gamma")


@dataclass
class GammaDynamicsDisplay:
    """Calibration error (above) and gamma (below) of a few bins over the updates of AdaFocal.

    Above 0 the model is over-confident in the bin and gamma grows; below 0 it is under-confident
    and gamma shrinks, until it jumps below 0, where the loss is the inverse focal loss: that part
    of the line has another colour, and the switches are marked. The scale of gamma is logarithmic
    on both sides of 0. The titles give the range of confidence of a bin at the last update.

    Parameters
    ----------
    history : `history` of an AdaFocal loss
    bins : which bins to draw; the lowest, middle and highest by default
    name : of the run, for the title

    Attributes
    ----------
    axes_ : the axes drawn on, (2, number of bins): errors above, gammas below
    figure_ : the figure

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from types import SimpleNamespace
    >>> history = SimpleNamespace(step=np.arange(3), edges=np.full((3, 1), 0.7),
    ...     count=np.full((3, 2), 50),
    ...     error=np.array([[0.2, -0.9], [0.1, -0.8], [0.0, -0.1]]),
    ...     gamma=np.array([[1.2, 0.4], [1.3, -0.2], [1.3, -0.3]]))
    >>> display = GammaDynamicsDisplay.from_history(history)
    >>> display.switches(1)
    array([1])

    References
    ----------
    Ghosh, Schaaf & Gormley (2022), AdaFocal, NeurIPS, section 6 and Figure 5.
    """

    history: GammaHistory
    bins: Sequence[int] | None = None
    name: str | None = None
    axes_: Panels = field(init=False, repr=False)
    figure_: Figure = field(init=False, repr=False)

    @classmethod
    def from_history(
        cls,
        history: GammaHistory,
        *,
        bins: Sequence[int] | None = None,
        name: str | None = None,
        ax: Any = None,
    ) -> GammaDynamicsDisplay:
        """Draw the history of an AdaFocal loss.

        Parameters
        ----------
        history : its `history`
        bins : which bins to draw; the lowest, middle and highest by default
        name : of the run
        ax : see `plot`
        """
        return cls(history, bins, name).plot(ax)

    def switches(self, b: int) -> IntArray:
        """Return the updates at which bin `b` changed between focal and inverse focal loss."""
        below = self.history.gamma[:, b] < 0
        return np.flatnonzero(below[1:] != below[:-1]) + 1

    def plot(self, ax: Any = None) -> GammaDynamicsDisplay:
        """Draw errors above, gammas below.

        Parameters
        ----------
        ax : two rows of axes with one column for each bin; a new figure by default
        """
        history = _check_history(self.history)
        n_bins = history.gamma.shape[1]
        filled = filled_bins(history.error)
        bins = choose_bins(n_bins, self.bins, filled)
        axes = make_panels(ax, (2, len(bins)), size=(2.6, 1.9))
        for column, b in enumerate(bins):
            self._draw_error(axes[0, column], b)
            self._draw_gamma(axes[1, column], b)
            last = describe_range(b, history.edges[-1], history.count[-1])
            title = f"{bin_title(b, filled)}\nconfidence {last}"
            name_axes(axes[0, column], x="", y="", title=title)
            name_axes(axes[1, column], x="update", y="")
        axes[0, 0].set_ylabel("confidence − accuracy")
        axes[1, 0].set_ylabel("gamma")
        _scale_errors(axes[0], history.error[:, list(bins)])
        _scale_gammas(axes[1], history.gamma[:, list(bins)])
        self.axes_ = axes
        self.figure_ = finish_figure(
            axes, _HOW, own=ax is None, handles=_handles(axes), name=self.name
        )
        return self

    def _draw_error(self, ax: Axes, b: int) -> None:
        step, error = self.history.step, self.history.error[:, b]
        zero_line(ax)
        for side, color, label in (
            (np.fmax(error, 0.0), OTHER, "over-confident"),
            (np.fmin(error, 0.0), EVENT, "under-confident"),
        ):
            ax.fill_between(step, 0.0, side, color=color, alpha=0.3, linewidth=0, label=label)
        draw_line(ax, step, error, color=GREY)

    def _draw_gamma(self, ax: Axes, b: int) -> None:
        step, gamma = self.history.step, self.history.gamma[:, b]
        zero_line(ax)
        draw_line(ax, step, gamma, color=THIRD, label="gamma above 0: focal loss")
        if (gamma < 0).any():
            inverse = np.where(gamma < 0, gamma, np.nan)
            label = "gamma below 0: inverse focal loss"
            draw_line(ax, step, inverse, color=_INVERSE, linewidth=2.0, marker="", label=label)
        jumps = self.switches(b)
        if len(jumps):
            ax.plot(
                step[jumps], gamma[jumps], "o", color=_INVERSE, markerfacecolor="white",
                markersize=5, label="switch between the two",
            )  # fmt: skip


def _check_history(history: Any) -> Any:
    """Raise `InputError` unless this is the history of an AdaFocal loss."""
    missing = [name for name in _NEEDED if not hasattr(history, name)]
    if missing:
        raise InputError(
            "history must be the history of an AdaFocal loss, which has "
            f"{', '.join(missing)}, got {type(history).__name__}."
        )
    check_epochs(history.step)
    shape = np.shape(history.gamma)
    if len(shape) != 2 or np.shape(history.error) != shape or len(history.step) != shape[0]:
        raise InputError(
            "error and gamma of a history must both have one row for each update and one column "
            f"for each bin, got {np.shape(history.error)} and {shape} for "
            f"{len(history.step)} updates."
        )
    return history


def _scale_errors(axes: Panels, error: FloatArray) -> None:
    """Set one scale for the errors of all bins."""
    known = np.append(error[np.isfinite(error)], 0.0)
    room = max(0.08 * float(np.ptp(known)), 0.005)
    for ax in axes:
        ax.set_ylim(float(known.min()) - room, float(known.max()) + room)


def _scale_gammas(axes: Panels, gamma: FloatArray) -> None:
    """Set one scale for the gammas of all bins: symlog, or linear if all are similar."""
    low, high = float(np.nanmin(gamma)), float(np.nanmax(gamma))
    same_side = low * high > 0 and max(abs(low), abs(high)) < 3 * min(abs(low), abs(high))
    for ax in axes:
        if same_side:
            room = 0.08 * (high - low) + 0.02
            ax.set_ylim(low - room, high + room)
            continue
        ax.set_yscale("symlog", linthresh=_NEAR, linscale=0.25)
        bottom = 1.3 * low if low < 0 else low / 1.3
        top = 1.3 * high if high > 0 else high / 1.3
        ax.set_ylim(bottom, top)
        ax.set_yticks(_spread_ticks(ax, bottom, top))
        ax.yaxis.set_major_formatter("{x:g}")
        ax.minorticks_off()


def _spread_ticks(ax: Axes, bottom: float, top: float) -> list[float]:
    """Return ticks at least a tenth of the axis apart."""
    scaled = ax.yaxis.get_transform().transform
    height = float(np.ptp(scaled(np.array([bottom, top]))))
    ticks: dict[float, float] = {}
    for tick in _TICKS:
        height_at = float(scaled(np.array([tick]))[0])
        near = any(abs(height_at - other) < 0.1 * height for other in ticks.values())
        if bottom <= tick <= top and not near:
            ticks[tick] = height_at
    return sorted(ticks)


def _handles(axes: Panels) -> list[Any]:
    """Return one legend handle for each distinct label in the panels."""
    by_label: dict[str, Any] = {}
    for ax in axes.flat:
        handles, labels = ax.get_legend_handles_labels()
        for handle, label in zip(handles, labels, strict=True):
            by_label.setdefault(label, handle)
    return list(by_label.values())
