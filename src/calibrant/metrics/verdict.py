"""Verdict in words from one pre-declared calibration test."""

from __future__ import annotations

import numpy as np

from calibrant.inputs import FloatArray
from calibrant.metrics.tally import Tally
from calibrant.results import CalibrationTest, Verdict

__all__ = ["LEVEL", "make_verdict"]

LEVEL = 0.05
_FEW_ROWS, _FEW_EVENTS = 30, 5
_LEAST_VARIANCE = 1e-12
"""Variance assumed for scores of exactly 0 or 1: small, but positive."""


def make_verdict(
    tally: Tally, test: CalibrationTest, target: str, *, p_value: float | None = None
) -> Verdict:
    """Put the result of a calibration test into words; `p_value` overrides that of the test."""
    p = test.p_value if p_value is None else p_value
    assert p is not None  # the Monte Carlo test always has one
    scores, rate = tally.mean_score, tally.event_rate
    if p >= LEVEL and _too_few(tally):
        text = f"too little data to judge calibration: {_describe_data(tally, target)}"
        return Verdict(text, None, p, scores, rate)
    if p >= LEVEL:
        text = (
            f"no miscalibration detectable at n={tally.n:,} (p = {p:.2f}); a constant error of "
            f"about {_format_points(_detectable_error(tally))} would probably have been found"
        )
        return Verdict(text, False, p, scores, rate)
    bound = f"p < {0.001:g}" if p < 0.001 else f"p = {p:.3f}"
    return Verdict(f"{_describe(tally, target)} ({bound}, n={tally.n:,})", True, p, scores, rate)


def _describe(tally: Tally, target: str) -> str:
    """Describe the kind of error: a shift on average, over- or under-confidence, or local."""
    gap = tally.mean_score - tally.event_rate
    average = gap / _standard_error(tally)
    slope = _slope_z(tally)
    typical = _format_points(float(np.abs(_residual_halves(tally)).sum()))
    if target == "top-label" and abs(average) > 1.96:
        word = "over-confident" if gap > 0 else "under-confident"
        return (
            f"{word} by about {_format_points(abs(gap))}: mean confidence {tally.mean_score:.1%}, "
            f"accuracy {tally.event_rate:.1%}"
        )
    if abs(average) > 1.96 and abs(average) >= abs(slope):
        word = "too high" if gap > 0 else "too low"
        return (
            f"probabilities {word} by about {_format_points(abs(gap))} on average: mean "
            f"{tally.mean_score:.1%}, event rate {tally.event_rate:.1%}"
        )
    if slope < -1.96:
        return f"over-confident by about {typical}: high probabilities too high, low ones too low"
    if slope > 1.96:
        return f"under-confident by about {typical}: high probabilities too low, low ones too high"
    return "miscalibrated in places, though about right on average: see the reliability diagram"


def _slope_z(tally: Tally) -> float:
    """Return the slope of events against scores in standard errors: + too steep, - too flat."""
    centred = tally.score - tally.mean_score
    spread = np.sqrt((tally.spread * _variance(tally) * centred**2).sum())
    if len(tally.score) == 1 or spread == 0:
        return 0.0  # ignore rounding errors of (score - mean score)
    return float((tally.residual * tally.total) @ centred / spread)


def _too_few(tally: Tally) -> bool:
    """Return whether there are too few rows, events or non-events to detect an error.

    Scores of exactly 0 and 1 need no minimum, because a single wrong row refutes them.
    """
    certain = bool(((tally.score == 0) | (tally.score == 1)).all())
    rare = not certain and tally.count.sum(axis=0).min() < _FEW_EVENTS
    return tally.n < _FEW_ROWS or rare


def _detectable_error(tally: Tally) -> float:
    """Return the constant error that the test detects with about 90 % power.

    It is at least 3 / n, an error rate that n rows show with 95 % probability.
    """
    rows = tally.total**2 / float(tally.spread.sum())
    return max(3.1 * _standard_error(tally), 3.0 / rows)


def _residual_halves(tally: Tally) -> FloatArray:
    """Return the residuals below and above the mean score."""
    below = tally.score < tally.mean_score
    return np.array([tally.residual[below].sum(), tally.residual[~below].sum()])


def _variance(tally: Tally) -> FloatArray:
    return np.maximum(tally.score * (1.0 - tally.score), _LEAST_VARIANCE)


def _standard_error(tally: Tally) -> float:
    """Return the standard error of (mean score - event rate) under calibration."""
    spread = float((tally.spread * _variance(tally)).sum())
    return float(np.sqrt(spread)) / tally.total


def _format_points(value: float) -> str:
    shown = 100 * value
    digits = 1 if shown >= 0.95 else 2
    return f"{shown:.{digits}f} percentage points"


def _describe_data(tally: Tally, target: str) -> str:
    event = "positive" if target == "positive" else "correct"
    rows = "1 row" if tally.n == 1 else f"{tally.n:,} rows"
    return f"{rows}, {round(tally.count[:, 1].sum()):,} of them {event}"
