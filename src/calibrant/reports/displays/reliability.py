"""Reliability diagrams: observed frequencies against predicted probabilities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import InputError
from calibrant.inputs import Target, as_scored_rows, resolve_target
from calibrant.metrics.binning import Scheme, check_bins
from calibrant.metrics.calibration_figures import BootstrapTally, Options
from calibrant.metrics.curves import reliability_bins, smooth_curve
from calibrant.metrics.problem import tally_target
from calibrant.reports.displays.problems import with_gaps
from calibrant.reports.displays.style import BAND, EVENT, GREY, label_of, new_axes, tidy
from calibrant.results import Bins, Evaluation

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_IDEAL = "perfectly calibrated"
_STRIP = "rows per bin"


@dataclass
class ReliabilityDisplay:
    """Reliability diagram with consistency bands, bin counts and a smooth curve.

    Each dot is a bin: its mean predicted probability against the share of events in it. The grey
    bar behind a dot is the 95 % consistency band: the range for a perfectly calibrated model with
    the same probabilities. A filled dot lies outside, so chance does not explain it.

    Parameters
    ----------
    bins : the reliability table
    smooth : `score` and `rate` of the smooth curve, or None
    name : of the model, for the legend

    Attributes
    ----------
    ax_ : the axes drawn on
    counts_ax_ : the strip of bin counts under it, or None
    figure_ : the figure

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from calibrant.testing import WORLDS
    >>> draw = WORLDS["binary"].draw(2000, 0)
    >>> display = ReliabilityDisplay.from_predictions(draw.labels, draw.probs, n_bins=10)
    >>> len(display.bins.score), display.ax_.get_ylabel()
    (10, 'share of events')
    >>> bool(display.outside.any())
    True
    """

    bins: Bins
    smooth: Mapping[str, Sequence[float]] | None = None
    name: str | None = None
    ax_: Axes = field(init=False, repr=False)
    counts_ax_: Axes | None = field(init=False, repr=False, default=None)
    figure_: Figure = field(init=False, repr=False)

    @classmethod
    def from_predictions(
        cls,
        labels: Any,
        probs: Any,
        *,
        classes: Sequence[Any] | None = None,
        target: Target | None = None,
        weights: Any = None,
        name: str | None = None,
        n_bins: int = 15,
        scheme: Scheme = "width",
        ax: Axes | None = None,
        **options: Any,
    ) -> ReliabilityDisplay:
        """Tabulate the bins and draw them; `options` go to `plot`.

        The bands come from redrawing the events with a fixed seed, so the figure is the same
        each time.

        Parameters
        ----------
        labels : (n,) labels
        probs : (n,) P(positive) or (n, K)
        classes : names of the columns, when labels are names
        target : "positive" (default for two classes) or "top-label" (default for more)
        weights : inverse inclusion probabilities
        name : of the model
        n_bins : number of bins
        scheme : "width" for equally wide bins, "mass" for equally filled ones
        ax : axes to draw on; a new figure by default
        **options : see `plot`
        """
        check_bins(n_bins, scheme, 1)
        scored = as_scored_rows(labels, probs, weights=weights, classes=classes)
        tally = tally_target(scored, target)
        sample = BootstrapTally(tally, Options(n_bins=n_bins), np.random.default_rng(0))
        what = resolve_target(target, len(scored.classes))
        bins = reliability_bins(sample, scheme, what)
        return cls(bins, smooth_curve(sample), name).plot(ax, **options)

    @classmethod
    def from_evaluation(
        cls,
        evaluation: Evaluation,
        *,
        scheme: Scheme = "width",
        name: str | None = None,
        ax: Axes | None = None,
        **options: Any,
    ) -> ReliabilityDisplay:
        """Draw the bins of an evaluation; `options` go to `plot`."""
        if scheme not in evaluation.bins:
            raise InputError(
                f"scheme must be one of {sorted(evaluation.bins)} for this evaluation, "
                f"got {scheme!r}."
            )
        display = cls(evaluation.bins[scheme], evaluation.curves.get("smooth") or None, name)
        return display.plot(ax, **options)

    @property
    def outside(self) -> NDArray[np.bool_]:
        """Which bins lie outside the band of a calibrated model."""
        bins = self.bins
        if bins.band_low is None or bins.band_high is None:
            return np.ones(len(bins.score), dtype=bool)
        tolerance = 1e-9  # bands that end at 0 or 1 do so up to rounding
        return np.asarray(
            (bins.rate < bins.band_low - tolerance) | (bins.rate > bins.band_high + tolerance)
        )

    def plot(
        self,
        ax: Axes | None = None,
        *,
        band: bool = True,
        counts: bool = True,
        smooth: bool = True,
        color: str = EVENT,
    ) -> ReliabilityDisplay:
        """Draw the diagram.

        Parameters
        ----------
        ax : axes to draw on; a new figure by default. A second model may share the axes of the
            first, whose strip of counts then stays.
        band : whether to draw the grey bars of a calibrated model
        counts : whether to draw the strip of bin counts below
        smooth : whether to draw the smooth curve
        color : of this model
        """
        ax = new_axes(ax, (5.4, 6.4) if counts else (5.4, 5.4), fixed=True)
        first = not any(line.get_label() == _IDEAL for line in ax.get_lines())
        right = self.bins.target == "top-label"
        x = "mean predicted probability"
        tidy(
            ax,
            x=x if first else ax.get_xlabel(),
            y="share predicted right" if right else "share of events",
        )
        ax.set_aspect("equal")
        if first:
            ax.plot([0, 1], [0, 1], color=GREY, linestyle=(0, (4, 3)), linewidth=1.2, label=_IDEAL)
        if band:
            self._draw_band(ax)
        if smooth and self.smooth:
            curve = with_gaps(self.smooth)
            ax.plot(*curve, color=color, alpha=0.55, label=self._label("smooth curve"))
        self._draw_dots(ax, color)
        ax.legend(loc="upper left", frameon=False, fontsize=8.5, handlelength=1.6)
        self.counts_ax_ = self._draw_counts(ax, x, color) if counts and first else None
        self.ax_ = ax
        self.figure_ = ax.figure  # type: ignore[assignment]
        return self

    def _label(self, what: str) -> str:
        return what if self.name is None else f"{label_of(self.name)}: {what}"

    def _draw_band(self, ax: Axes) -> None:
        bins = self.bins
        if bins.band_low is None or bins.band_high is None:
            return
        ax.vlines(
            bins.score,
            bins.band_low,
            bins.band_high,
            color=BAND,
            linewidth=8,
            label="95 % of calibrated models",
        )

    def _draw_dots(self, ax: Axes, color: str) -> None:
        for chosen, face, what in (
            (self.outside, color, "bin outside its band"),
            (~self.outside, "white", "bin inside its band"),
        ):
            if chosen.any():
                ax.plot(
                    self.bins.score[chosen],
                    self.bins.rate[chosen],
                    "o",
                    color=color,
                    markerfacecolor=face,
                    markersize=6,
                    clip_on=False,
                    label=self._label(what),
                )

    def _draw_counts(self, ax: Axes, x: str, color: str) -> Axes:
        from mpl_toolkits.axes_grid1 import make_axes_locatable  # type: ignore[import-untyped]

        strip: Axes = make_axes_locatable(ax).append_axes("bottom", size="17%", pad=0.15, sharex=ax)
        bins = self.bins
        strip.bar(
            bins.low, bins.count, bins.high - bins.low, align="edge", color=color, alpha=0.45,
            edgecolor="white", linewidth=0.6,
        )  # fmt: skip
        tidy(strip, x=x, y=f"{_STRIP}\n(log scale)", unit_y=False)
        strip.set_yscale("log")
        strip.set_ylim(bottom=0.7)
        strip.yaxis.set_major_formatter("{x:,.0f}")
        strip.yaxis.label.set_fontsize(8)
        strip.tick_params(labelsize=8)
        ax.set_xlabel("")
        ax.tick_params(labelbottom=False)
        return strip
