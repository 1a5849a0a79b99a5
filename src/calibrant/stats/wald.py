"""Intervals from a value and its standard error, on the scale where they behave."""

from __future__ import annotations

import math
from typing import Literal

from calibrant.results import Interval

__all__ = ["wald_interval"]


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
    scale :math:`g` keeps the interval inside the metric's range and makes it lopsided where the
    metric is: `logit` for figures between 0 and 1, `log` for losses, `plain` for differences.

    Parameters
    ----------
    value : the estimate :math:`v`
    error : its standard error :math:`s`
    n : rows (or the effective number of the scarcer class) behind it; gives the t quantile
    scale : the scale :math:`g`
    confidence : nominal coverage

    Examples
    --------
    >>> found = wald_interval(0.9, 0.02, n=500, scale="logit")
    >>> round(found.low, 3), round(found.high, 3)
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
        half = min(
            t * error / value, 700.0
        )  # beyond that exp overflows and the answer is "no idea"
        return Interval(value * math.exp(-half), value * math.exp(half), confidence, method)
    return Interval(value - t * error, value + t * error, confidence, method)


def _expit(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))
