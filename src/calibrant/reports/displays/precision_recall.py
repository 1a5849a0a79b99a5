"""Display of precision-recall curves, one for each class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from calibrant.inputs import Target
from calibrant.metrics.curves import ThresholdCurve
from calibrant.reports.displays.problems import evaluation_curves, prediction_curves
from calibrant.reports.displays.style import GREY, PALETTE, label_of, marker_of, new_axes, tidy
from calibrant.results import Evaluation

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass
class PrecisionRecallDisplay:
    """Precision-recall curves; the dashed line is the precision of flagging at random.

    With two classes the positive one is drawn, with more the largest ones (at most eight).

    Parameters
    ----------
    curves : a threshold curve for each title, such as "class cat"
    name : of the model, for the title

    Attributes
    ----------
    ax_, figure_ : the axes drawn on and their figure

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> display = PrecisionRecallDisplay.from_predictions([0, 1, 1], [0.7, 0.6, 0.9])
    >>> curve = display.curves["class 1"]
    >>> curve.precision.round(2), curve.recall
    (array([0.67, 0.5 , 1.  ]), array([1. , 0.5, 0.5]))
    """

    curves: Mapping[str, ThresholdCurve]
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
    ) -> PrecisionRecallDisplay:
        """Compute the curves and draw them; `options` go to `plot`.

        Parameters
        ----------
        labels : (n,) labels
        probs : (n,) P(positive) or (n, K)
        classes : names of the columns, when labels are names
        target : "top-label" to flag rows by the probability of their predicted class; by default
            there is a curve for each class to draw
        weights : inverse inclusion probabilities
        of : the only class to draw
        name : of the model
        ax : axes to draw on; a new figure by default
        **options : see `plot`
        """
        curves = prediction_curves(
            labels, probs, classes=classes, target=target, weights=weights, of=of,
            most=len(PALETTE),
        )  # fmt: skip
        return cls(curves, name).plot(ax, **options)

    @classmethod
    def from_evaluation(
        cls,
        evaluation: Evaluation,
        *,
        of: Any = None,
        name: str | None = None,
        ax: Axes | None = None,
        **options: Any,
    ) -> PrecisionRecallDisplay:
        """Draw the curves that `calibrant.evaluate` kept; `options` go to `plot`."""
        curves = evaluation_curves(evaluation, of, most=len(PALETTE))
        return cls(curves, name).plot(ax, **options)

    def plot(self, ax: Axes | None = None, *, chance: bool = True) -> PrecisionRecallDisplay:
        """Draw the curves; `chance` adds the share of events as a line to a single curve."""
        ax = new_axes(ax, (5.4, 4.6))
        for i, (title, curve) in enumerate(self.curves.items()):
            color = PALETTE[i % len(PALETTE)]
            ax.plot(
                curve.recall, curve.precision, color=color, linewidth=1.8, label=label_of(title),
                marker=marker_of(len(curve.recall)),
            )  # fmt: skip
        if chance and len(self.curves) == 1 and len(curve.precision):
            # At the lowest threshold every row is flagged, so precision is the event rate.
            rate = float(curve.precision[0])
            ax.axhline(rate, color=GREY, linestyle="--", linewidth=1.2, label="flagging blindly")
        tidy(ax, x="recall: share of events found", y="precision: share of flagged that are right")
        if self.name is not None:
            ax.set_title(label_of(self.name), fontsize=11)
        ax.legend(frameon=False, fontsize=9)
        self.ax_ = ax
        self.figure_ = ax.figure  # type: ignore[assignment]
        return self
