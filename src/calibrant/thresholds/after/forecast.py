"""Forecasts of an operating point under another prevalence."""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from calibrant.errors import InputError
from calibrant.results import Interval
from calibrant.stats import clopper_pearson
from calibrant.thresholds.operating_point import OperatingPoint
from calibrant.thresholds.rates import (
    RATES,
    Cost,
    Rate,
    RateValue,
    Target,
    check_between_0_and_1,
    check_confidence,
)

Span = tuple[float, float]

_ASSUMPTION = (
    "if the score distributions of positive and of other rows stay the same "
    "(only the share of positives changes)"
)


@dataclass(frozen=True)
class Forecast:
    """Rates of an operating point at another share of positives.

    Parameters
    ----------
    prevalence : the new share of positives
    was : the share of positives among the rows that chose the point; None if unknown
    rates : every rate (and the cost, where one is held) at the new share
    limits : for each target the lowest and highest share of positives at which the estimate meets
        it, or None if none does
    safe : the same with the worst ends of the intervals instead of the estimates
    confidence : that recall and false positive rate both lie in the intervals used
    assumption : what must stay the same
    """

    prevalence: float
    was: float | None
    rates: Mapping[str, RateValue]
    limits: Mapping[str, Span | None]
    safe: Mapping[str, Span | None]
    confidence: float
    assumption: str

    def __getitem__(self, name: str) -> RateValue:
        return self.rates[name]

    @property
    def text(self) -> str:
        """The forecast as one sentence."""
        before = "" if self.was is None else f" instead of {_format_percent(self.was)}"
        head = f"With {_format_percent(self.prevalence)} positives{before}"
        parts = [self._describe_target(target) for target in self.limits]
        name, rate = "precision", self.rates["precision"]
        if not parts and rate.value is not None and rate.interval is not None:
            ends = f"{rate.interval.low:.4f} to {rate.interval.high:.4f}"
            parts = [f"{name} becomes {rate.value:.4f} ({ends})"]
        return f"{head}, {self.assumption}: {'; '.join(parts)}."

    def _describe_target(self, target: str) -> str:
        name = target.split(">=")[0].split("<=")[0]
        rate, limit, safe = self.rates[name], self.limits[target], self.safe[target]
        if rate.value is None or rate.interval is None:
            return f"{name} is unknown"
        span = f"{rate.interval.low:.4f} to {rate.interval.high:.4f}"
        outcome = f"{name} becomes {rate.value:.4f} ({span})"
        if limit is None:
            return f"{outcome}, and {target} is not met at any share of positives"
        sure = f"certain {_format_span(safe)}" if safe is not None else "certain at none"
        return f"{outcome}, and {target} is met {_format_span(limit)} ({sure})"

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(self.text)}</p>"

    def to_dict(self) -> dict[str, Any]:
        """Return the stable JSON shape: keys may be added, never renamed."""
        return {
            "prevalence": self.prevalence,
            "was": self.was,
            "rates": {name: rate.to_dict() for name, rate in self.rates.items()},
            "limits": {name: _as_list(span) for name, span in self.limits.items()},
            "safe": {name: _as_list(span) for name, span in self.safe.items()},
            "confidence": self.confidence,
            "assumption": self.assumption,
            "text": self.text,
        }


def forecast(point: OperatingPoint, prevalence: float, *, confidence: float = 0.95) -> Forecast:
    r"""Forecast the rates at another share of positives, `prevalence`.

    With recall r and false positive rate f unchanged, and b the new share,

    .. math:: precision = \frac{b r}{b r + (1 - b) f}, \qquad
        npv = \frac{(1 - b)(1 - f)}{(1 - b)(1 - f) + b (1 - r)}

    .. math:: coverage = b r + (1 - b) f

    and the expected cost is :math:`b (c_{fn} (1 - r) + c_{tp} r) + (1 - b) (c_{fp} f + c_{tn}
    (1 - f))`. Each is monotone in r and in f, so the ends of their intervals, each at half of the
    allowed error, give the ends here.

    This is a forecast, not a promise: it assumes that P(score | label) does not change, which a new
    kind of positive, or another mix of the other classes, violates. The intervals are those of a
    threshold fixed beforehand.

    Parameters
    ----------
    point : from `select`, for one class
    prevalence : the new share of positives
    confidence : of the intervals; with weights it follows from the point's own intervals

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant.thresholds import precision, select
    >>> labels = [0] * 500 + [1] * 500
    >>> probs = np.append(np.linspace(0, 0.8, 500), np.linspace(0.5, 1, 500))
    >>> point = select(labels, probs, hold=precision >= 0.85)
    >>> rare = forecast(point, 0.1)
    >>> round(point["precision"].value, 2), round(rare["precision"].value, 2)
    (0.89, 0.47)
    """
    check_between_0_and_1(prevalence, "prevalence", "5 percent is 0.05")
    check_confidence(confidence)
    if point.of is None:
        raise InputError(
            "the point accepts predictions of any class, so it has no share of positives: "
            "forecast points of single classes."
        )
    r, r_span, sure = _rate_and_span(point, "recall", confidence)
    f, f_span, _ = _rate_and_span(point, "fpr", confidence)
    corners = [(a, b) for a in r_span for b in f_span]
    cost = point.cost
    all_rates: list[Rate | Cost] = [rate for rate in RATES.values() if rate.of != "top-label"]
    rates = {
        rate.name: _rate_value(
            point.n, _line(rate, r, f), [_line(rate, *c) for c in corners], prevalence, sure
        )
        for rate in (all_rates if cost is None else [*all_rates, cost])
    }
    limits = {str(t): _find_limits(t, [(r, f)]) for t in point.hold}
    safe = {str(t): _find_limits(t, corners) for t in point.hold}
    mixed = ", with the same mix of the other classes" if len(point.classes) > 2 else ""
    return Forecast(
        prevalence, _share_before(point), rates, limits, safe, sure, _ASSUMPTION + mixed
    )


@dataclass(frozen=True)
class _Line:
    """A rate as a function of the share b of positives: (a b + c (1-b)) / (d b + e (1-b))."""

    a: float
    c: float
    d: float = 1.0
    e: float = 1.0

    def at(self, b: float) -> float | None:
        whole = self.d * b + self.e * (1 - b)
        return None if whole <= 0 else (self.a * b + self.c * (1 - b)) / whole


def _line(rate: Rate | Cost, r: float, f: float) -> _Line:
    """Return a rate as a function of the share of positives, given recall and fpr."""
    act = {"positive": (r, 0.0), "negative": (0.0, f)}
    skip = {"positive": (1 - r, 0.0), "negative": (0.0, 1 - f)}
    if isinstance(rate, Cost):
        fp, fn, tp, tn = rate.matrix
        return _Line(fn * (1 - r) + tp * r, fp * f + tn * (1 - f))
    if rate.condition in ("act", "pass"):
        part = (act if rate.condition == "act" else skip)[rate.event]
        return _Line(*part, *((r, f) if rate.condition == "act" else (1 - r, 1 - f)))
    share = (r, f) if rate.event == "act" else (1 - r, 1 - f)
    if rate.condition == "all":
        return _Line(*share)
    constant = share[0] if rate.condition == "positive" else share[1]
    return _Line(constant, constant)


def _rate_value(
    n: int, line: _Line, corners: list[_Line], b: float, confidence: float
) -> RateValue:
    ends = [value for value in (corner.at(b) for corner in corners) if value is not None]
    value = line.at(b)
    if value is None or not ends:
        return RateValue(None, None, 0)
    method = "from exact intervals of recall and false positive rate"
    return RateValue(value, Interval(min(ends), max(ends), confidence, method), n)


def _find_limits(target: Target, corners: list[tuple[float, float]]) -> Span | None:
    """Return the lowest and highest share of positives at which all corners meet the target."""
    low, high = 0.0, 1.0
    sign = 1 if target.sense == ">=" else -1
    for r, f in corners:
        line = _line(target.rate, r, f)
        # The margin times the denominator is linear in the share.
        rare = sign * (line.c - target.value * line.e)
        common = sign * (line.a - target.value * line.d)
        if rare < 0 and common < 0:
            return None
        if rare < 0:
            low = max(low, rare / (rare - common))
        elif common < 0:
            high = min(high, rare / (rare - common))
    return (low, high) if low <= high else None


def _rate_and_span(
    point: OperatingPoint, name: str, confidence: float
) -> tuple[float, Span, float]:
    """Return a rate, its interval at half of the allowed error, and the joint confidence."""
    rate = point.rates.get(name)
    if rate is None or rate.value is None or rate.interval is None:
        raise InputError(f"the point has no {name}, which a forecast needs.")
    if point.weighted:  # counts cannot be recovered from weighted rates
        span = rate.interval
        return rate.value, (span.low, span.high), 2 * span.confidence - 1
    span = clopper_pearson(round(rate.value * rate.n), rate.n, confidence=(1 + confidence) / 2)
    return rate.value, (span.low, span.high), confidence


def _share_before(point: OperatingPoint) -> float | None:
    if not point.weighted:
        return point.positives / point.n
    r, f, act = (point.rates[name].value for name in ("recall", "fpr", "coverage"))
    if r is None or f is None or act is None or r == f:
        return None
    return (act - f) / (r - f)


def _format_percent(value: float) -> str:
    return f"{value * 100:.3g} %"


def _format_span(span: Span) -> str:
    low, high = span
    if low > 0 and high < 1:
        return f"from {_format_percent(low)} to {_format_percent(high)}"
    if low > 0:
        return f"from {_format_percent(low)} upwards"
    return f"up to {_format_percent(high)}" if high < 1 else "at any share"


def _as_list(span: Span | None) -> list[float] | None:
    return None if span is None else list(span)
