"""Display of the calibration error over epochs, overall and by bin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.reports.displays.bin_history import BinHistory
from calibrant.reports.displays.epoch_panels import (
    Panels,
    bin_title,
    check_histories,
    choose_bins,
    draw_line,
    filled_bins,
    finish_figure,
    make_grid,
    name_axes,
    run_style,
    zero_line,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_HOW = (
    "Confidence minus accuracy on the steer (validation) split: above 0 the model is "
    "over-confident, below 0 under-confident."
)


@dataclass
class BinErrorDisplay:
    """Calibration error of the steer split over epochs, for several runs.

    The first panel is the error of all rows, without its sign. Each further panel is one bin: mean
    confidence minus accuracy, so that above 0 the model is over-confident and below 0
    under-confident. A loss with the smallest overall error can have a large error in a single bin.

    A bin has M times fewer rows than the split, so its line is noisier. Panels have separate
    scales.

    Parameters
    ----------
    histories : history recorded by `calibrant.training.BinTrace`, by name of the run
    bins : which bins to draw; the lowest, middle and highest by default

    Attributes
    ----------
    axes_ : the axes drawn on: all rows, then one for each bin
    figure_ : the figure

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from calibrant.reports import BinHistory
    >>> sure = [0.55, 0.65, 0.75, 0.85, 0.95, 0.99]
    >>> history = BinHistory.from_rows(sure, [0, 1, 0, 1, 1, 1], n_bins=3)
    >>> display = BinErrorDisplay.from_histories({"ce": history})
    >>> [ax.get_title().split(" (")[0] for ax in display.axes_]
    ['all rows', 'least sure rows', 'middle rows', 'surest rows']

    References
    ----------
    Ghosh, Schaaf & Gormley (2022), AdaFocal, NeurIPS, Figure 1.
    """

    histories: Mapping[str, BinHistory]
    bins: Sequence[int] | None = None
    axes_: Panels = field(init=False, repr=False)
    figure_: Figure = field(init=False, repr=False)

    @classmethod
    def from_histories(
        cls,
        histories: Mapping[str, BinHistory],
        *,
        bins: Sequence[int] | None = None,
        ax: Any = None,
    ) -> BinErrorDisplay:
        """Draw the runs of a comparison.

        Parameters
        ----------
        histories : `BinTrace.history` of each run by its name, all with the same number of bins
        bins : which bins to draw; the lowest, middle and highest by default
        ax : see `plot`
        """
        return cls(histories, bins).plot(ax)

    def plot(self, ax: Any = None) -> BinErrorDisplay:
        """Draw the lines.

        Parameters
        ----------
        ax : one axes for all rows and one for each bin; a new figure by default
        """
        check_histories(self.histories)
        first = next(iter(self.histories.values()))
        filled = filled_bins(first.confidence)
        bins = choose_bins(first.n_bins, self.bins, filled)
        axes = make_grid(ax, 1 + len(bins), size=(3.3, 2.2))
        for number, (name, history) in enumerate(self.histories.items()):
            style = run_style(number, name)
            draw_line(axes[0], history.epoch, history.ece, **style)
            for panel, b in zip(axes[1:], bins, strict=True):
                draw_line(panel, history.epoch, history.error[:, b], **style)
        handles = axes[0].get_lines()
        for panel, b in zip(axes[1:], bins, strict=True):
            zero_line(panel)
            name_axes(panel, x="epoch", y="confidence − accuracy", title=bin_title(b, filled))
        self._name_all_rows(axes[0])
        self.axes_ = axes
        self.figure_ = finish_figure(axes, _HOW, own=ax is None, handles=handles)
        return self

    def _name_all_rows(self, ax: Axes) -> None:
        name_axes(ax, x="epoch", y="calibration error", title="all rows (mean over bins)")
        top = max(float(np.nanmax(history.ece, initial=0.0)) for history in self.histories.values())
        ax.set_ylim(0.0, max(1.08 * top, 0.01))
