"""Display of the histogram of predicted probabilities, for rows with and without the event."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.errors import InputError
from calibrant.inputs import FloatArray, Target, as_scored_rows
from calibrant.metrics.binning import check_bins, width_edges
from calibrant.reports.displays.problems import PREDICTED, class_title, target_tally
from calibrant.reports.displays.style import EVENT, OTHER, label_of, new_axes, tidy
from calibrant.results import Bins, Evaluation

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass
class ConfidenceHistogramDisplay:
    """Histogram of the predicted probabilities: events filled, the other rows as an outline.

    Parameters
    ----------
    edges : (M + 1,) edges of the bins
    with_event : rows (or weight) with the event in each bin
    without_event : rows (or weight) without it
    of : the class that the probability belongs to
    name : of the model, for the title

    Attributes
    ----------
    ax_, figure_ : the axes drawn on and their figure

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> display = ConfidenceHistogramDisplay.from_predictions([0, 1, 1], [0.2, 0.6, 0.9], n_bins=2)
    >>> display.with_event, display.without_event, display.of
    (array([0., 2.]), array([1., 0.]), 'class 1')
    """

    edges: FloatArray
    with_event: FloatArray
    without_event: FloatArray
    of: str = PREDICTED
    name: str | None = None
    ax_: Axes = field(init=False, repr=False)
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
        of: Any = None,
        name: str | None = None,
        n_bins: int = 20,
        ax: Axes | None = None,
        **options: Any,
    ) -> ConfidenceHistogramDisplay:
        """Count the rows in each bin and draw them; `options` go to `plot`.

        Parameters
        ----------
        labels : (n,) labels
        probs : (n,) P(positive) or (n, K)
        classes : names of the columns, when labels are names
        target : "positive" (default for two classes) or "top-label" (default for more)
        weights : inverse inclusion probabilities
        of : a class, to draw its probability instead
        name : of the model
        n_bins : number of equally wide bins
        ax : axes to draw on; a new figure by default
        **options : see `plot`
        """
        check_bins(n_bins, "width", 1)
        scored = as_scored_rows(labels, probs, weights=weights, classes=classes)
        title, tally = target_tally(scored, target, of)
        edges = width_edges(n_bins)
        without, having = tally.per_bin(edges, tally.weight.T)
        return cls(edges, having, without, title, name).plot(ax, **options)

    @classmethod
    def from_evaluation(
        cls,
        evaluation: Evaluation,
        *,
        of: Any = None,
        name: str | None = None,
        ax: Axes | None = None,
        **options: Any,
    ) -> ConfidenceHistogramDisplay:
        """Draw the counts that `calibrant.evaluate` kept; `options` go to `plot`."""
        if of is None and evaluation.target == "top-label":
            display = cls(*_right_and_wrong(evaluation.bins["width"]), PREDICTED, name)
            return display.plot(ax, **options)
        wanted = evaluation.classes[-1] if of is None else of
        for entry in evaluation.curves.get("classes") or ():
            if entry["class"] == wanted:
                edges = np.asarray(entry["edges"], dtype=np.float64)
                having, without = (
                    np.asarray(entry["with_event"]),
                    np.asarray(entry["without_event"]),
                )
                display = cls(edges, having, without, class_title(wanted), name)
                return display.plot(ax, **options)
        raise InputError(
            f"the evaluation has no histogram of class {wanted!r}: use from_predictions with the "
            "rows instead."
        )

    def plot(self, ax: Axes | None = None, *, log: bool = False) -> ConfidenceHistogramDisplay:
        """Draw the histogram; `log` gives the counts a log scale, for rare events."""
        ax = new_axes(ax, (6.0, 4.0))
        predicted = self.of == PREDICTED
        names = (
            ("predicted right", "predicted wrong")
            if predicted
            else (f"rows of {label_of(self.of)}", "other rows")
        )
        ax.stairs(self.with_event, self.edges, fill=True, color=EVENT, alpha=0.5, label=names[0])
        ax.stairs(self.without_event, self.edges, color=OTHER, linewidth=1.8, label=names[1])
        what = PREDICTED if predicted else label_of(self.of)
        tidy(ax, x=f"predicted probability of {what}", y="rows per bin", unit_y=False)
        if log:
            ax.set_yscale("log")
            ax.set(ylim=(0.7, None), ylabel="rows per bin (log scale)")
        if self.name is not None:
            ax.set_title(label_of(self.name), fontsize=11)
        ax.legend(frameon=False, fontsize=9)
        self.ax_ = ax
        self.figure_ = ax.figure  # type: ignore[assignment]
        return self


def _right_and_wrong(bins: Bins) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Expand the table of non-empty equal-width bins to all bins."""
    edges = width_edges(round(1.0 / float(bins.high[0] - bins.low[0])))
    index = np.searchsorted(edges, 0.5 * (bins.low + bins.high)) - 1
    right, wrong = np.zeros(len(edges) - 1), np.zeros(len(edges) - 1)
    right[index] = bins.weight * bins.rate
    wrong[index] = bins.weight * (1.0 - bins.rate)
    return edges, right, wrong
