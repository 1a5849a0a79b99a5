"""Display of rates against the threshold, with confidence bands and the chosen point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from calibrant.reports.displays.problems import PREDICTED, class_title
from calibrant.reports.displays.style import GREY, PALETTE, label_of, marker_of, new_axes, tidy
from calibrant.reports.threshold.view import PointView, build_curve_problem, is_crowded
from calibrant.reports.threshold.wording import aims_of, rate_title, threshold_words
from calibrant.thresholds.curve import OperatingCurve, compute_curve, operating_curve
from calibrant.thresholds.operating_point import OperatingPoint

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass
class OperatingCurveDisplay:
    """Precision and recall against the threshold, with confidence bands and the chosen point.

    The bands are pointwise, valid for a threshold fixed beforehand. Only the chosen point can carry
    a promise.

    Parameters
    ----------
    curve : every rate at every threshold
    point : the operating point to mark, or None
    name : of the model, for the title

    Attributes
    ----------
    ax_, figure_ : the axes drawn on and their figure

    Examples
    --------
    >>> import matplotlib
    >>> import numpy as np
    >>> matplotlib.use("Agg")
    >>> from calibrant.thresholds import precision, select
    >>> labels, probs = [0] * 50 + [1] * 50, np.linspace(0, 1, 100)
    >>> point = select(labels, probs, hold=precision >= 0.8)
    >>> display = OperatingCurveDisplay.from_point(point, labels, probs)
    >>> display.ax_.get_xlabel()
    'threshold on the probability of class 1'
    """

    curve: OperatingCurve
    point: OperatingPoint | None = None
    name: str | None = None
    ax_: Axes = field(init=False, repr=False)
    figure_: Figure = field(init=False, repr=False)

    @classmethod
    def from_predictions(
        cls,
        labels: Any,
        probs: Any = None,
        *,
        logits: Any = None,
        classes: Sequence[Any] | None = None,
        positive: Any = None,
        weights: Any = None,
        confidence: float = 0.95,
        name: str | None = None,
        ax: Axes | None = None,
        **options: Any,
    ) -> OperatingCurveDisplay:
        """Compute the curve and draw it; `options` go to `plot`.

        Parameters
        ----------
        labels, probs, logits, classes, positive, weights, confidence : as for
            `calibrant.thresholds.operating_curve`
        name : of the model
        ax : axes to draw on; a new figure by default
        **options : see `plot`
        """
        curve = operating_curve(
            labels, probs, logits=logits, classes=classes, positive=positive, weights=weights,
            confidence=confidence,
        )  # fmt: skip
        return cls(curve, None, name).plot(ax, **options)

    @classmethod
    def from_point(
        cls,
        point: OperatingPoint,
        labels: Any,
        probs: Any = None,
        *,
        logits: Any = None,
        weights: Any = None,
        name: str | None = None,
        ax: Axes | None = None,
        **options: Any,
    ) -> OperatingCurveDisplay:
        """Draw the curve of labelled rows with an operating point on it.

        Parameters
        ----------
        point : result of `calibrant.thresholds.select`
        labels, probs, logits, weights : labelled rows; those the point was chosen on, or later ones
        name : of the model
        ax : axes to draw on; a new figure by default
        **options : see `plot`
        """
        problem = build_curve_problem(labels, probs, logits, point.of, point.classes, weights)
        threshold = point.logit if problem.on == "logits" else point.threshold
        level = point.confidence or 0.95
        curve = compute_curve(problem, confidence=level, keep=[threshold])
        return cls(curve, point, name).plot(ax, **options)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        rates: Sequence[str] | None = None,
        log_odds: bool | None = None,
    ) -> OperatingCurveDisplay:
        """Draw the lines and their bands.

        Parameters
        ----------
        ax : axes to draw on; a new figure by default
        rates : names of the rates to draw; by default those that are held, precision and recall
        log_odds : whether the threshold is drawn as log-odds; by default if most thresholds lie
            near 0 or 1
        """
        ax = new_axes(ax, (6.4, 4.6))
        mark = None if self.point is None else self.point.threshold
        if log_odds is None:
            log_odds = is_crowded(self.curve, mark)
        across = self.curve.logit if log_odds else self.curve.threshold
        for i, name in enumerate(rates or self._default_rates()):
            self._line(ax, across, name, PALETTE[i % len(PALETTE)], ("-", "--", "-.", ":")[i % 4])
        if self.point is not None:
            self._mark(ax, self.point, rates or self._default_rates(), log_odds=log_odds)
        unit = "log-odds" if log_odds else "probability"
        of = PREDICTED if self.curve.of is None else class_title(self.curve.of)
        tidy(ax, x=f"threshold on the {unit} of {label_of(of)}", y="share", unit_x=not log_odds)
        if self.name is not None:
            ax.set_title(label_of(self.name), fontsize=11)
        anchor = (0.5, -0.15)
        ax.legend(frameon=False, fontsize=9, ncols=2, loc="upper center", bbox_to_anchor=anchor)
        self.ax_ = ax
        self.figure_ = ax.figure  # type: ignore[assignment]
        return self

    def _default_rates(self) -> list[str]:
        if self.point is not None:
            return PointView(self.point, self.curve).lines
        return ["accuracy", "coverage"] if self.curve.of is None else ["precision", "recall"]

    def _line(self, ax: Axes, across: Any, name: str, color: str, style: str) -> None:
        rate = self.curve[name]
        level = f"{100 * self.curve.confidence:g} %"
        ax.fill_between(
            across, rate.low, rate.high, step="pre", color=color, alpha=0.2, linewidth=0
        )
        ax.plot(
            across, rate.value, style, color=color, linewidth=1.8, drawstyle="steps-pre",
            marker=marker_of(len(across)),
            label=f"{rate_title(name, self.curve.of).lower()}, with its {level} band",
        )  # fmt: skip

    def _mark(
        self, ax: Axes, point: OperatingPoint, rates: Sequence[str], *, log_odds: bool
    ) -> None:
        """Mark the chosen threshold, and the targets of the rates that are drawn."""
        x = point.logit if log_odds else point.threshold
        ax.axvline(x, color="black", linewidth=1)
        held = [value for name, _, value in aims_of(point) if name in rates]
        for i, value in enumerate(held):
            label = "target" if i == 0 else None
            ax.axhline(value, color=GREY, linestyle=(0, (4, 3)), linewidth=1.2, label=label)
        index = PointView(point, self.curve).place
        if index is not None and index < len(self.curve.threshold):
            values = [float(self.curve[name].value[index]) for name in rates]
            ax.plot(
                [x] * len(values), values, "D", color="black", markersize=6, zorder=5,
                label=f"chosen threshold {threshold_words(point.threshold, point.logit)}",
            )  # fmt: skip
