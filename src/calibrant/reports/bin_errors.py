"""Calibration error over epochs, of the whole split and bin by bin, for several losses."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.reports.bin_history import BinHistory
from calibrant.reports.epoch_panels import (
    Panels,
    bin_title,
    check_histories,
    chosen_bins,
    explain,
    line,
    name_axes,
    panels,
    zero_line,
)
from calibrant.reports.style import PALETTE, label_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["BinErrorDisplay"]

_NEEDED = ("epoch", "confidence", "error", "ece")
_SOURCE = "the history of a BinTrace hook"


@dataclass
class BinErrorDisplay:
    """Calibration error of the steer split over epochs, for several runs.

    The first panel is the error of all rows, without its sign. Each further panel is one bin: mean
    confidence minus accuracy, so that above 0 the model is over-confident and below 0
    under-confident. A loss that is best on the whole may be far off in a single bin.

    A bin has M times fewer rows than the split: a part of what its line does is chance.

    Parameters
    ----------
    histories : what `calibrant.training.BinTrace` recorded, by name of the run
    bins : which bins to draw; the lowest, middle and highest by default

    Attributes
    ----------
    axes_ : the axes drawn on: calibration error, then one for each bin
    figure_ : the figure

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from calibrant.testing import bin_histories
    >>> display = BinErrorDisplay.from_histories(bin_histories())
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
