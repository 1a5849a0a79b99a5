"""Display of precision, recall and share of flagged rows against the threshold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.inputs import Target
from calibrant.metrics.curves import ThresholdCurve
from calibrant.reports.displays.problems import evaluation_curves, prediction_curves
from calibrant.reports.displays.style import (
    EVENT,
    GREY,
    OTHER,
    THIRD,
    label_of,
    marker_of,
    new_axes,
    tidy,
)
from calibrant.results import Evaluation

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass
class ThresholdDisplay:
    """Precision, recall and share of flagged rows against the threshold of one class.

    A row is flagged when its probability is at least the threshold. The lines show these rows;
    they are not a promise for others.

    Parameters
    ----------
    curve : the threshold curve
    of : the flagged class, such as "class cat"
    name : of the model, for the title

    Attributes
    ----------
    ax_, figure_ : the axes drawn on and their figure

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> display = ThresholdDisplay.from_predictions([0, 1, 1], [0.2, 0.6, 0.9])
    >>> display.at(0.5)
    {'threshold': 0.5, 'precision': 1.0, 'recall': 1.0, 'flagged': 0.666...}
    """

    curve: ThresholdCurve
    of: str
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
        ax: Axes | None = None,
        **options: Any,
    ) -> ThresholdDisplay:
        """Compute the curve and draw it; `options` go to `plot`.

        Parameters
        ----------
        labels : (n,) labels
        probs : (n,) P(positive) or (n, K)
        classes : names of the columns, when labels are names
        target : "top-label" to flag rows by the probability of their predicted class
        weights : inverse inclusion probabilities
        of : the class to flag; by default the positive one, of more than two the largest
        name : of the model
        ax : axes to draw on; a new figure by default
        **options : see `plot`
        """
        curves = prediction_curves(
            labels, probs, classes=classes, target=target, weights=weights, of=of
        )
        title, curve = next(iter(curves.items()))
        return cls(curve, title, name).plot(ax, **options)

    @classmethod
    def from_evaluation(
        cls,
        evaluation: Evaluation,
        *,
        of: Any = None,
        name: str | None = None,
        ax: Axes | None = None,
        **options: Any,
    ) -> ThresholdDisplay:
        """Draw the curve that `calibrant.evaluate` kept; `options` go to `plot`."""
        title, curve = next(iter(evaluation_curves(evaluation, of).items()))
        return cls(curve, title, name).plot(ax, **options)

    def at(self, threshold: float) -> dict[str, float | None]:
        """Return the curve at a threshold; precision is None if nothing is flagged."""
        k = int(np.searchsorted(self.curve.threshold, threshold, side="left"))
        if k == len(self.curve.threshold):
            return {"threshold": threshold, "precision": None, "recall": 0.0, "flagged": 0.0}
        return {
            "threshold": threshold,
            "precision": float(self.curve.precision[k]),
            "recall": float(self.curve.recall[k]),
            "flagged": float(self.curve.flagged[k]),
        }

    def plot(self, ax: Axes | None = None, *, mark: float | None = None) -> ThresholdDisplay:
        """Draw the lines; `mark` is a threshold to mark with a vertical line."""
        ax = new_axes(ax, (6.0, 4.2))
        for values, color, style, label in (
            (self.curve.precision, EVENT, "-", "precision: flagged rows that are right"),
            (self.curve.recall, OTHER, "--", "recall: events that are found"),
            (self.curve.flagged, THIRD, "-.", "rows that are flagged"),
        ):
            ax.plot(
                self.curve.threshold, values, style, color=color, linewidth=1.8, label=label,
                drawstyle="steps-pre", marker=marker_of(len(self.curve.threshold)),
            )  # fmt: skip
        if mark is not None:
            ax.axvline(mark, color=GREY, linewidth=1.2)
        tidy(ax, x=f"threshold on the probability of {label_of(self.of)}", y="share")
        if self.name is not None:
            ax.set_title(label_of(self.name), fontsize=11)
        anchor = (0.5, -0.15)
        ax.legend(frameon=False, fontsize=9, ncols=2, loc="upper center", bbox_to_anchor=anchor)
        self.ax_ = ax
        self.figure_ = ax.figure  # type: ignore[assignment]
        return self
