"""A threshold beside what every other one would do, and the numbers that a page draws of it."""

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
from calibrant.thresholds.proof.question import Question, put_question
from calibrant.thresholds.rate_value import RateValue
from calibrant.thresholds.rates import RATES, Cost

__all__ = ["PointView", "all_finite", "chart_data", "crowded", "question_of"]

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
    """A result, and what every threshold would do on the rows behind it.

    Parameters
    ----------
    result : the operating point, or why there is none
    curve : every rate at every threshold
    cost : what decisions cost, where that is known
    side : of a band: `act` where rows above are acted on, `clear` where rows below are cleared
    """

    result: OperatingPoint | TargetUnreachable
    curve: OperatingCurve
    cost: Cost | None = None
    side: Literal["", "act", "clear"] = ""

    @property
    def clears(self) -> bool:
        """Whether the threshold is there for the rows below it."""
        return self.side == "clear"

    @property
    def point(self) -> OperatingPoint | None:
        """The operating point, where there is one."""
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
        """Where the curve tells what that threshold does; C where it acts on no row."""
        if self.threshold is None:
            return None
        if self.point is not None and self.curve.on == "logits":
            return self.curve.place(self.point.logit)
        return int(np.searchsorted(self.curve.threshold, self.threshold, side="left"))

    @property
    def title(self) -> str:
        """What the section is called where there are several."""
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
        """The rates to draw: those that are held, then the usual two."""
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
        """What the slider tells: the drawn rates, the share acted on, and the cost."""
        share = "abstention" if self.clears else "coverage"
        cost = [] if self.cost is None else ["cost"]
        return list(dict.fromkeys([*self.lines, share, *cost]))

    def settles(self, name: str) -> bool:
        """Whether the rule alone settles a rate that was measured."""
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
        """Where acting begins to pay if the probabilities are calibrated."""
        return None if self.cost is None else self.cost.baseline

    @property
    def has_logits(self) -> bool:
        """Whether every threshold has log-odds that are numbers."""
        return all_finite(self.curve)

    @property
    def wide(self) -> bool:
        """Whether log-odds go beyond what probabilities can be written for."""
        return bool(self.curve.logit[0] < _WIDE[0] or self.curve.logit[-1] > _WIDE[1])

    @property
    def crowded(self) -> bool:
        """Whether thresholds lie so close to 0 or 1 that log-odds show them better."""
        return crowded(self.curve, self.threshold)


def all_finite(curve: OperatingCurve) -> bool:
    """Say whether every threshold has log-odds that are numbers."""
    return bool(np.isfinite(curve.logit).all())


def crowded(curve: OperatingCurve, mark: float | None) -> bool:
    """Say whether thresholds lie so close to 0 or 1 that log-odds show them better."""
    middle = mark is None or 0.02 < mark < 0.98
    at_ends = np.abs(curve.logit) > math.log(99)
    return all_finite(curve) and (not middle or bool(at_ends.mean() > 0.5))


def question_of(
    labels: Any,
    probs: Any,
    logits: Any,
    of: Any,
    classes: tuple[Any, ...],
    weights: Any,
    **masks: Any,
) -> Question:
    """Put rows in order for class `of`; labels may also be positions in `classes`.

    `masks` are `withheld` and `outside`, as for `put_question`.
    """
    asked = [RATES["accuracy" if of is None else "precision"]]
    numbered = np.asarray(labels).dtype.kind in "iu" and all(isinstance(c, str) for c in classes)
    place = classes.index(of) if numbered and of is not None else of
    found = put_question(
        labels, probs, logits, asked, weights=weights, classes=None if numbered else classes,
        positive=place, needs_both=False, **masks,
    )  # fmt: skip
    return replace(found, of=of, classes=classes)


def chart_data(view: PointView) -> dict[str, Any]:
    """Return the numbers that the page's script draws; the last entry acts on no row at all."""
    curve = view.curve
    names = dict.fromkeys(["coverage", *view.lines, *view.tiles])
    return {
        "n": curve.n,
        "positives": curve.positives,
        "topLabel": curve.of is None,
        "clears": view.clears,
        "threshold": curve.threshold.tolist(),
        "logit": _short(curve.logit) if view.has_logits else None,
        "acted": [*curve.acted.tolist(), 0],
        "hits": [*curve.hits.tolist(), 0],
        "rates": {name: _columns(view, name) for name in names if name != "cost"},
        "lines": view.lines,
        "tiles": [name for name in view.tiles if name != "cost"],
        "titles": {name: view.title_of(name) for name in names},
        "aims": [{"rate": name, "value": value} for name, _, value in aims_of(view.result)],
        "cost": None if view.cost is None else _costs(view, view.cost),
        "baseline": view.baseline,
        "chosen": _chosen(view),
        "crowded": view.crowded,
        "wide": view.wide,
    }


def _columns(view: PointView, name: str) -> dict[str, list[float | None]]:
    """Return a rate and its band at every threshold, and the rate where no row is acted on."""
    rate = view.curve[name]
    ends = {"coverage": 0.0, "recall": 0.0, "fpr": 0.0, "specificity": 1.0, "abstention": 1.0}
    end = ends.get(name)
    if name == "npv":
        end = 1.0 - float(view.curve["precision"].value[0])  # then all rows are passed over
    value = [*_short(rate.value), end]
    return {"value": value, "low": [*_short(rate.low), None], "high": [*_short(rate.high), None]}


def _costs(view: PointView, cost: Cost) -> list[float | None]:
    positive = float(view.curve["precision"].value[0])  # at the lowest threshold all are acted on
    nothing = positive * cost.false_negative + (1 - positive) * cost.true_negative
    return _short([*view.curve.cost(cost).tolist(), nothing])


def _chosen(view: PointView) -> dict[str, Any] | None:
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


def _short(values: Iterable[float]) -> list[float | None]:
    """Round to six digits, to keep the page small; JSON has no NaN, so it becomes null."""
    return [float(f"{v:.6g}") if math.isfinite(v) else None for v in values]
