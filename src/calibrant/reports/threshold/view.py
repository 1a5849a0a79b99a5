"""An operating point with its operating curve, and the chart data of a page."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from calibrant.errors import TargetUnreachable
from calibrant.reports.threshold.wording import aims_of, class_words, rate_title, threshold_words
from calibrant.thresholds.curve import OperatingCurve
from calibrant.thresholds.operating_point import OperatingPoint
from calibrant.thresholds.proof.question import ThresholdProblem, build_problem
from calibrant.thresholds.rates import RATES, Cost, RateValue

_COMPLEMENT = {
    "false_discovery": "precision",
    "precision": "false_discovery",
    "fpr": "specificity",
    "specificity": "fpr",
    "coverage": "abstention",
    "abstention": "coverage",
}
_MOST_LINES = 3
_WIDE = (-36.0, 14.0)  # log-odds beyond which probabilities need too many digits


@dataclass(frozen=True)
class PointView:
    """A result and the operating curve of its rows."""

    result: OperatingPoint | TargetUnreachable  # the operating point, or why there is none
    curve: OperatingCurve  # every rate at every threshold
    cost: Cost | None = None
    # of a band: `act` if rows above are acted on, `clear` if rows below are cleared
    side: Literal["", "act", "clear"] = ""

    @property
    def clears(self) -> bool:
        """Whether the threshold clears the rows below it."""
        return self.side == "clear"

    @property
    def point(self) -> OperatingPoint | None:
        """The operating point, or None."""
        return self.result if isinstance(self.result, OperatingPoint) else None

    @property
    def promised(self) -> bool:
        """Whether the threshold carries a promise."""
        return self.point is not None and self.point.guarantee is not None

    @property
    def threshold(self) -> float | None:
        """The threshold that is marked: the chosen one, or where the best bound was reached."""
        return self.result.threshold

    @property
    def place(self) -> int | None:
        """Index of that threshold on the curve; C if it acts on no row."""
        if self.threshold is None:
            return None
        if self.point is not None and self.curve.on == "logits":
            return self.curve.index_of(self.point.logit)
        return int(np.searchsorted(self.curve.threshold, self.threshold, side="left"))

    @property
    def title(self) -> str:
        """Title of the section."""
        if self.side:
            return self.side.capitalize()
        words = class_words(self.curve.of)
        return words[:1].upper() + words[1:]

    @property
    def words(self) -> str:
        """The marked threshold as text."""
        if self.threshold is None:
            return ""
        return threshold_words(self.threshold, None if self.point is None else self.point.logit)

    @property
    def rates(self) -> Mapping[str, RateValue]:
        """Every rate at the marked threshold."""
        if self.point is not None:
            return self.point.rates
        return {} if self.place is None else self.curve.values_at(self.place)

    @property
    def lines(self) -> list[str]:
        """The rates to draw: those that are held, then the default two."""
        usual = ["npv", "abstention"] if self.clears else ["precision", "recall"]
        if self.curve.of is None:
            usual = ["accuracy", "coverage"]
        drawn = [name for name, _, _ in aims_of(self.result) if name in self.curve.rates]
        for name in usual:
            if name not in drawn and _COMPLEMENT.get(name) not in drawn:
                drawn.append(name)
        return drawn[:_MOST_LINES]

    @property
    def tiles(self) -> list[str]:
        """Values shown by the slider: the drawn rates, the share acted on, and the cost."""
        share = "abstention" if self.clears else "coverage"
        cost = [] if self.cost is None else ["cost"]
        return list(dict.fromkeys([*self.lines, share, *cost]))

    def settles(self, name: str) -> bool:
        """Whether a measured rate is fixed by the rule itself."""
        if self.point is None or self.rates[name].interval is None:
            return False
        return self.point.settles(name)

    def title_of(self, name: str) -> str:
        """Return the title of a rate here."""
        if self.clears and name == "abstention":
            return "Share cleared"
        return rate_title(name, self.curve.of)

    @property
    def baseline(self) -> float | None:
        """Break-even threshold for calibrated probabilities."""
        return None if self.cost is None else self.cost.baseline

    @property
    def has_logits(self) -> bool:
        """Whether every threshold has finite log-odds."""
        return all_finite(self.curve)

    @property
    def wide(self) -> bool:
        """Whether log-odds exceed the range of printable probabilities."""
        return bool(self.curve.logit[0] < _WIDE[0] or self.curve.logit[-1] > _WIDE[1])

    @property
    def is_crowded(self) -> bool:
        """Whether thresholds are so close to 0 or 1 that log-odds are more readable."""
        return is_crowded(self.curve, self.threshold)


def all_finite(curve: OperatingCurve) -> bool:
    """Return whether every threshold has finite log-odds."""
    return bool(np.isfinite(curve.logit).all())


def is_crowded(curve: OperatingCurve, mark: float | None) -> bool:
    """Return whether thresholds are so close to 0 or 1 that log-odds are more readable."""
    middle = mark is None or 0.02 < mark < 0.98
    at_ends = np.abs(curve.logit) > math.log(99)
    return all_finite(curve) and (not middle or bool(at_ends.mean() > 0.5))


def build_curve_problem(
    labels: Any,
    probs: Any,
    logits: Any,
    of: Any,
    classes: tuple[Any, ...],
    weights: Any,
    **masks: Any,
) -> ThresholdProblem:
    """Rank rows for class `of`; labels may also be positions in `classes`.

    `masks` are `withheld` and `outside`, as for `build_problem`.
    """
    rates = [RATES["accuracy" if of is None else "precision"]]
    numbered = np.asarray(labels).dtype.kind in "iu" and all(isinstance(c, str) for c in classes)
    positive = classes.index(of) if numbered and of is not None else of
    problem = build_problem(
        labels, probs, logits, rates, weights=weights, classes=None if numbered else classes,
        positive=positive, needs_both=False, **masks,
    )  # fmt: skip
    return replace(problem, of=of, classes=classes)


def chart_data(view: PointView) -> dict[str, Any]:
    """Return the chart data of the page; the last entry acts on no row."""
    curve = view.curve
    names = dict.fromkeys(["coverage", *view.lines, *view.tiles])
    return {
        "n": curve.n,
        "positives": curve.positives,
        "topLabel": curve.of is None,
        "clears": view.clears,
        "threshold": curve.threshold.tolist(),
        "logit": _round_all(curve.logit) if view.has_logits else None,
        "acted": [*curve.acted.tolist(), 0],
        "hits": [*curve.hits.tolist(), 0],
        "rates": {name: _columns(view, name) for name in names if name != "cost"},
        "lines": view.lines,
        "tiles": [name for name in view.tiles if name != "cost"],
        "titles": {name: view.title_of(name) for name in names},
        "aims": [{"rate": name, "value": value} for name, _, value in aims_of(view.result)],
        "cost": None if view.cost is None else _costs(view, view.cost),
        "baseline": view.baseline,
        "chosen": _chosen_data(view),
        "crowded": view.is_crowded,
        "wide": view.wide,
    }


def _columns(view: PointView, name: str) -> dict[str, list[float | None]]:
    """Return a rate and its band at every threshold, and the rate without any action."""
    rate = view.curve[name]
    ends = {"coverage": 0.0, "recall": 0.0, "fpr": 0.0, "specificity": 1.0, "abstention": 1.0}
    end = ends.get(name)
    if name == "npv":
        end = 1.0 - float(view.curve["precision"].value[0])  # then all rows are passed over
    value = [*_round_all(rate.value), end]
    return {
        "value": value,
        "low": [*_round_all(rate.low), None],
        "high": [*_round_all(rate.high), None],
    }


def _costs(view: PointView, cost: Cost) -> list[float | None]:
    positive = float(view.curve["precision"].value[0])  # at the lowest threshold all are acted on
    nothing = positive * cost.false_negative + (1 - positive) * cost.true_negative
    return _round_all([*view.curve.cost(cost).tolist(), nothing])


def _chosen_data(view: PointView) -> dict[str, Any] | None:
    if view.place is None:
        return None
    logit = None if view.point is None else view.point.logit
    kind = "best" if view.point is None else "promise" if view.promised else "plain"
    return {
        "at": view.place,
        "threshold": view.threshold,
        "logit": logit if logit is not None and math.isfinite(logit) else None,
        "words": view.words,
        "kind": kind,
        "settled": [name for name in view.tiles if name in view.rates and view.settles(name)],
    }


def _round_all(values: Iterable[float]) -> list[float | None]:
    """Round to six digits to keep the page small; NaN becomes null."""
    return [float(f"{v:.6g}") if math.isfinite(v) else None for v in values]
