"""Operating curves: every rate, with its confidence band, at every threshold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.convert import log_odds_of, probs_from_logits
from calibrant.errors import InputError
from calibrant.inputs import FloatArray, IntArray
from calibrant.results import Interval
from calibrant.stats.proportions import exact_bounds, wilson_bounds
from calibrant.thresholds.measures import Measures
from calibrant.thresholds.proof.question import ThresholdProblem, build_problem
from calibrant.thresholds.proof.ranked import RankedRows
from calibrant.thresholds.rates import RATES, Cost, Rate, RateValue, coverage, precision
from calibrant.thresholds.scores import On

POINTS = 2000  # Default number of thresholds in a curve: enough for a report page

EXACT = "exact (Clopper-Pearson)"
ROUGH = "Wilson at the effective number of rows, approximate"


@dataclass(frozen=True)
class RateCurve:
    """One rate at every threshold of a curve.

    The band holds at each threshold alone, as if that one had been fixed beforehand. A threshold
    picked because the band looks good there is not covered by it: use `select` for that.

    Parameters
    ----------
    value : the estimate; NaN where no row meets the rate's condition
    low, high : the band: exact (Clopper-Pearson), or with weights Wilson's from the effective
        number of rows, which is approximate
    n : rows that meet the condition; with weights their effective number (sum w)^2 / sum w^2
    """

    value: FloatArray
    low: FloatArray
    high: FloatArray
    n: FloatArray


@dataclass(frozen=True)
class OperatingCurve:
    """Every rate when the rows whose score reaches the threshold are acted on.

    Parameters
    ----------
    threshold : (C,) rising probabilities; each acts on the rows that reach it
    logit : (C,) the same as log-odds, which stay distinct where probabilities round to 1
    rates : a curve for each rate, by name
    acted : (C,) number of rows acted on
    hits : (C,) how many of those are positive (or predicted correctly)
    n, positives : all rows, and how many of them are positive (or predicted correctly)
    on : the scores compared, `probs` or `logits`
    of : the class that is acted on; None where predictions of any class are accepted
    classes : names of all classes
    confidence : of each band, at each threshold
    weighted : whether rows had weights; rates are then of the weight, `acted` and `hits` still rows
    """

    threshold: FloatArray
    logit: FloatArray
    rates: Mapping[str, RateCurve]
    acted: IntArray
    hits: IntArray
    n: int
    positives: int
    on: On
    of: Any
    classes: tuple[Any, ...]
    confidence: float = 0.95
    weighted: bool = False

    def __getitem__(self, name: str) -> RateCurve:
        return self.rates[name]

    def index_of(self, threshold: float) -> int:
        """Return the index on the curve that decides as `threshold` does; C if it acts on no row.

        `threshold` is a probability; for a curve made from logits, it is log-odds.
        """
        scale = self.logit if self.on == "logits" else self.threshold
        return int(np.searchsorted(scale, threshold, side="left"))

    def at(self, threshold: float) -> dict[str, RateValue]:
        """Return every rate at the first threshold of the curve that is at least `threshold`.

        Examples
        --------
        >>> curve = operating_curve([0, 0, 1, 1], [0.2, 0.6, 0.6, 0.9])
        >>> rate = curve.at(0.5)["precision"]
        >>> round(rate.value, 3), round(rate.interval.low, 3), rate.n
        (0.667, 0.094, 3.0)
        """
        return self.values_at(self.index_of(threshold))

    def values_at(self, index: int) -> dict[str, RateValue]:
        """Return every rate at one index of the curve; C means acting on no row."""
        if index == len(self.threshold):
            return dict.fromkeys(self.rates, RateValue(None, None, 0.0))
        return {name: self._value(rate, index) for name, rate in self.rates.items()}

    def cost(self, cost: Cost) -> FloatArray:
        """Return the expected cost of a row at every threshold.

        Examples
        --------
        >>> curve = operating_curve([0, 1, 0, 1], [0.1, 0.4, 0.6, 0.8])
        >>> curve.cost(Cost(false_positive=1, false_negative=4))
        array([0.5 , 0.25, 1.25, 1.  ])
        """
        if self.of is None:
            raise InputError("a cost needs a class that is acted on: give positive=NAME.")
        acted = self["coverage"].value
        true_positive = acted * self["precision"].value
        positive = self._positive_share(true_positive)
        shares = (
            acted - true_positive,
            positive - true_positive,
            true_positive,
            1.0 - acted - positive + true_positive,
        )
        return np.asarray(sum(c * share for c, share in zip(cost.matrix, shares, strict=True)))

    def _positive_share(self, true_positive: FloatArray) -> float:
        """Return the share of positive rows, by weight, including withheld rows."""
        recall = self["recall"].value[:1]
        if len(recall) and recall[0] > 0:
            return float(true_positive[0] / recall[0])
        return self.positives / self.n

    def to_dict(self) -> dict[str, Any]:
        """Return plain lists; NaN and infinite values become None."""
        return {
            "n": self.n,
            "positives": self.positives,
            "class": self.of,
            "confidence": self.confidence,
            "weighted": self.weighted,
            "threshold": self.threshold.tolist(),
            "logit": _to_json_list(self.logit),
            "acted": self.acted.tolist(),
            "hits": self.hits.tolist(),
            "rates": {
                name: {part: _to_json_list(values) for part, values in vars(rate).items()}
                for name, rate in self.rates.items()
            },
        }

    def _value(self, rate: RateCurve, k: int) -> RateValue:
        if rate.n[k] == 0:
            return RateValue(None, None, 0.0)
        method = ROUGH if self.weighted else EXACT
        span = Interval(float(rate.low[k]), float(rate.high[k]), self.confidence, method)
        return RateValue(float(rate.value[k]), span, float(rate.n[k]))


def operating_curve(
    labels: Any,
    probs: Any = None,
    *,
    logits: Any = None,
    classes: Sequence[Any] | None = None,
    positive: Any = None,
    weights: Any = None,
    confidence: float = 0.95,
    points: int | None = POINTS,
) -> OperatingCurve:
    r"""Compute every rate, with an exact band, at every distinct score.

    .. math:: [B(\alpha/2;\, h,\, m-h+1),\; B(1-\alpha/2;\, h+1,\, m-h)]

    is the band of a rate with :math:`h` events among the :math:`m` rows of its condition, with
    :math:`B` the quantile of the beta distribution and :math:`1-\alpha` the confidence. With
    weights it is Wilson's, from the effective number of rows :math:`(\sum w)^2 / \sum w^2`:
    an approximation.

    The band is pointwise, not simultaneous, and promises nothing about a threshold that was
    chosen by looking at it.

    Parameters
    ----------
    labels : n labels
    probs : (n,) P(second class) or (n, K); or give `logits`
    logits : (n,) or (n, K); rows stay distinct whose probabilities round to 1
    classes : names of the columns, when labels are names
    positive : the class that is acted on; by default the second of two classes, and with more
        any predicted class that is confident enough (accuracy and coverage)
    weights : inverse inclusion probabilities
    confidence : of each band
    points : largest number of thresholds, even in rank, positives and score; None keeps all

    Examples
    --------
    >>> curve = operating_curve([0, 0, 1, 1], [0.2, 0.6, 0.6, 0.9])
    >>> curve.threshold, curve.acted, curve.hits
    (array([0.2, 0.6, 0.9]), array([4, 3, 1]), array([2, 2, 1]))
    >>> curve["precision"].value.round(3), curve["precision"].low.round(3)
    (array([0.5  , 0.667, 1.   ]), array([0.068, 0.094, 0.025]))

    References
    ----------
    Clopper & Pearson (1934), Biometrika 26.
    """
    rate = coverage if positive is None else precision  # coverage: any of several classes
    problem = build_problem(
        labels, probs, logits, [rate], weights=weights, classes=classes, positive=positive
    )
    return compute_curve(problem, confidence=confidence, points=points)


def compute_curve(
    problem: ThresholdProblem,
    *,
    confidence: float = 0.95,
    points: int | None = POINTS,
    keep: Iterable[float] = (),
) -> OperatingCurve:
    """Compute the curve of ranked rows."""
    if not 0 < confidence < 1:
        raise InputError(f"confidence must lie between 0 and 1, got {confidence}: 0.95 is usual.")
    rows = problem.rows
    positions = _thin_positions(rows, points, keep)[::-1]
    score = rows.score[positions - 1].astype(np.float64)
    logits = problem.on == "logits"
    measures = Measures(rows, positions)
    kind = "top-label" if problem.top_label else "class"
    return OperatingCurve(
        threshold=probs_from_logits(score) if logits else score,
        logit=score if logits else log_odds_of(score),
        rates={
            rate.name: _rate_curve(rate, measures, confidence)
            for rate in RATES.values()
            if rate.of in (kind, "any")
        },
        acted=positions,
        hits=rows.hits[positions - 1],
        n=rows.n,
        positives=rows.positives,
        on=problem.on,
        of=problem.of,
        classes=problem.classes,
        confidence=confidence,
        weighted=rows.weight is not None,
    )


def _thin_positions(rows: RankedRows, points: int | None, keep: Iterable[float]) -> IntArray:
    """Return the positions to keep: even in rank, in log rank, in positives and in score."""
    ends = rows.ends[rows.ends <= rows.last]
    if points is None or len(ends) <= points:
        return ends
    per_grid = max(2, points // 4)
    score = rows.score[ends - 1].astype(np.float64)
    required = np.array([_count_reaching(rows, threshold) for threshold in keep], dtype=np.int64)
    wanted = np.concatenate(
        [
            np.searchsorted(ends, np.linspace(1, rows.n, per_grid)),
            np.searchsorted(ends, np.geomspace(1, rows.n, per_grid)),
            np.searchsorted(rows.hits[ends - 1], np.linspace(0, rows.positives, per_grid)),
            np.searchsorted(-score, -np.linspace(score[-1], score[0], per_grid), side="right") - 1,
            np.searchsorted(ends, required[required > 0]),
            [0, len(ends) - 1],
        ]
    )
    # Withheld rows count as rows and positives, but no threshold reaches them.
    return np.asarray(ends[np.unique(np.minimum(wanted, len(ends) - 1))])


def _count_reaching(rows: RankedRows, threshold: float) -> int:
    """Return how many rows reach a score."""
    return int(np.searchsorted(-rows.score, -threshold, side="right"))


def _rate_curve(rate: Rate, measures: Measures, confidence: float) -> RateCurve:
    part, whole = measures.parts(rate, power=1)
    nonempty = whole > 0
    safe = np.where(nonempty, whole, 1.0)
    value = np.where(nonempty, np.clip(part / safe, 0.0, 1.0), np.nan)
    if measures.rows.weight is None:
        n = whole
        low, high = exact_bounds(part, n, confidence)
    else:
        square = measures.parts(rate, power=2)[1]
        n = np.where(nonempty, whole**2 / np.where(nonempty, square, 1.0), 0.0)
        low, high = wilson_bounds(
            np.where(nonempty, value, 0.5), np.where(nonempty, n, 1.0), confidence
        )
    low, high = (np.where(nonempty, end, np.nan) for end in (low, high))
    return RateCurve(value, low, high, np.asarray(n))


def _to_json_list(values: FloatArray) -> list[float | None]:
    return [value if np.isfinite(value) else None for value in values.tolist()]
