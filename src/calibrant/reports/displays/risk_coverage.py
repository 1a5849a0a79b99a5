"""Display of risk-coverage curves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from calibrant.formatting import percent
from calibrant.reports.displays.style import EVENT, GREY, OTHER, label_of, marker_of, new_axes, tidy
from calibrant.thresholds.risk_coverage import RiskCoverage, risk_coverage

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass
class RiskCoverageDisplay:
    """Share of wrong predictions among the accepted ones, against the share that is accepted.

    Predictions are accepted in order of decreasing confidence. At the right end all are accepted,
    and the risk is the error rate of the model. The band is pointwise.

    Parameters
    ----------
    curve : result of `calibrant.thresholds.risk_coverage`
    name : of the model, for the title

    Attributes
    ----------
    ax_, figure_ : the axes drawn on and their figure

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> display = RiskCoverageDisplay.from_predictions([0, 1, 1, 0], [0.1, 0.9, 0.8, 0.6])
    >>> display.curve.risk
    array([0.  , 0.  , 0.25])
    """

    curve: RiskCoverage
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
        weights: Any = None,
        confidence: float = 0.95,
        name: str | None = None,
        ax: Axes | None = None,
        **options: Any,
    ) -> RiskCoverageDisplay:
        """Compute the curve and draw it; `options` go to `plot`.

        Parameters
        ----------
        labels, probs, logits, classes, weights, confidence : as for
            `calibrant.thresholds.risk_coverage`
        name : of the model
        ax : axes to draw on; a new figure by default
        **options : see `plot`
        """
        curve = risk_coverage(
            labels, probs, logits=logits, classes=classes, weights=weights, confidence=confidence
        )
        return cls(curve, name).plot(ax, **options)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        target: float | None = None,
        mark: float | None = None,
    ) -> RiskCoverageDisplay:
        """Draw the curve and its band.

        Parameters
        ----------
        ax : axes to draw on; a new figure by default
        target : a risk to draw as a line, such as 0.05
        mark : a coverage to mark with a vertical line
        """
        ax = new_axes(ax, (5.4, 4.2))
        curve, level = self.curve, f"{100 * self.curve.confidence:g} %"
        ax.fill_between(
            curve.coverage, curve.low, curve.high, color=EVENT, alpha=0.2, linewidth=0,
            label=f"{level} band",
        )  # fmt: skip
        ax.plot(
            curve.coverage, curve.risk, color=EVENT, linewidth=1.8,
            marker=marker_of(len(curve.coverage)), label=f"risk (AURC {curve.aurc:.4f})",
        )  # fmt: skip
        if target is not None:
            label = f"target {percent(target)}"
            ax.axhline(target, color=OTHER, linestyle="--", linewidth=1.2, label=label)
        if mark is not None:
            ax.axvline(mark, color=GREY, linewidth=1.2)
        tidy(
            ax,
            x="coverage: share of predictions that is accepted",
            y="risk: share of those that is wrong",
            unit_y=False,
        )
        ax.set_ylim(*self._room(target))
        if self.name is not None:
            ax.set_title(label_of(self.name), fontsize=11)
        anchor = (0.5, -0.16)
        ax.legend(frameon=False, fontsize=9, ncols=2, loc="upper center", bbox_to_anchor=anchor)
        self.ax_ = ax
        self.figure_ = ax.figure  # type: ignore[assignment]
        return self

    def _room(self, target: float | None) -> tuple[float, float]:
        """Return the limits of the risk: the band of the first few rows may leave the picture."""
        curve = self.curve
        settled = curve.coverage >= 0.05
        most = max(float(curve.high[settled].max()), float(curve.risk[settled].max()), target or 0)
        top = min(1.0, 1.15 * most)
        return -0.02 * top, max(top, 0.01)
