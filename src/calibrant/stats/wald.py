"""Wald intervals from a value and its standard error, on a transformed scale."""

from __future__ import annotations

import math
from typing import Literal

from calibrant.results import Interval


def wald_interval(
    value: float,
    error: float,
    *,
    n: float,
    scale: Literal["plain", "log", "logit"] = "plain",
    confidence: float = 0.95,
) -> Interval:
    r"""Interval :math:`g^{-1}(g(v) \pm t\, s\, g'(v))` from a value and its standard error.

    The standard error comes from the influence of each row (the infinitesimal jackknife). The
    scale :math:`g` keeps the interval within the range of the metric and makes it asymmetric where
    the metric is: `logit` for metrics between 0 and 1, `log` for losses, `plain` for differences.
    It is approximate: for a proportion with few rows use `clopper_pearson`.

    Parameters
    ----------
    value : the estimate :math:`v`
    error : its standard error :math:`s`
    n : number of rows (or the effective number of the rarer class), for the t quantile
    scale : the scale :math:`g`
    confidence : nominal coverage

    Examples
    --------
    >>> interval = wald_interval(0.9, 0.02, n=500, scale="logit")
    >>> round(interval.low, 3), round(interval.high, 3)
    (0.853, 0.933)
    """
    from scipy.special import stdtrit

    t = float(stdtrit(max(1.0, n - 1.0), 0.5 + confidence / 2))
    method = "influence of each row, t quantile" + ("" if scale == "plain" else f", {scale} scale")
    if not math.isfinite(value) or not math.isfinite(error):
        return Interval(math.nan, math.nan, confidence, method)
    if scale == "logit" and 0.0 < value < 1.0:
        centre = math.log(value / (1 - value))
        half = t * error / (value * (1 - value))
        return Interval(_expit(centre - half), _expit(centre + half), confidence, method)
    if scale == "log" and value > 0.0:
        half = min(t * error / value, 700.0)  # exp would overflow
        return Interval(value * math.exp(-half), value * math.exp(half), confidence, method)
    return Interval(value - t * error, value + t * error, confidence, method)


def _expit(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))
