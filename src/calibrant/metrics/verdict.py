"""The headline in words, from one test that is declared beforehand."""

from __future__ import annotations

import numpy as np

from calibrant.inputs import FloatArray
from calibrant.metrics.tally import Tally
from calibrant.results import CalibrationTest, Verdict

__all__ = ["LEVEL", "verdict"]

LEVEL = 0.05
_FEW_ROWS, _FEW_EVENTS = 30, 5
_LEAST_VARIANCE = 1e-12
"""Of a score of exactly 0 or 1: small against any other, yet errors can be measured by it."""


def verdict(
    tally: Tally, test: CalibrationTest, target: str, *, p_value: float | None = None
) -> Verdict:
    """Say what the calibration test found; `p_value` replaces the test's own (Holm-adjusted)."""
    p = test.p_value if p_value is None else p_value
    assert p is not None  # the Monte-Carlo test always gives one
    scores, rate = tally.mean_score, tally.event_rate
    if p >= LEVEL and _too_few(tally):
        text = f"too little data to judge calibration: {_data(tally, target)}"
        return Verdict(text, None, p, scores, rate)
    if p >= LEVEL:
        text = (
            f"no miscalibration detectable at n={tally.n:,} (p = {p:.2f}); a constant error of "
            f"about {_points(_findable(tally))} would probably have been found"
        )
        return Verdict(text, False, p, scores, rate)
    bound = f"p < {0.001:g}" if p < 0.001 else f"p = {p:.3f}"
    return Verdict(f"{_describe(tally, target)} ({bound}, n={tally.n:,})", True, p, scores, rate)


def _describe(tally: Tally, target: str) -> str:
    """Tell the kind of error: shifted on average, too extreme, too timid, or only in places."""
    gap = tally.mean_score - tally.event_rate
    average = gap / _chance_of_mean(tally)
    tilt = _tilt(tally)
    typical = _points(float(np.abs(_halves(tally)).sum()))
    if target == "top-label" and abs(average) > 1.96:
        word = "over-confident" if gap > 0 else "under-confident"
        return (
            f"{word} by about {_points(abs(gap))}: mean confidence {tally.mean_score:.1%}, "
            f"accuracy {tally.event_rate:.1%}"
        )
    if abs(average) > 1.96 and abs(average) >= abs(tilt):
        word = "too high" if gap > 0 else "too low"
        return (
            f"probabilities {word} by about {_points(abs(gap))} on average: mean "
            f"{tally.mean_score:.1%}, event rate {tally.event_rate:.1%}"
        )
    if tilt < -1.96:
        return f"over-confident by about {typical}: high probabilities too high, low ones too low"
    if tilt > 1.96:
        return f"under-confident by about {typical}: high probabilities too low, low ones too high"
    return "miscalibrated in places, though about right on average: see the reliability diagram"


def _tilt(tally: Tally) -> float:
    """Return how far events follow the scores too steeply (+) or not enough (-), in errors."""
    centred = tally.score - tally.mean_score
    spread = np.sqrt((tally.spread * _variance(tally) * centred**2).sum())
    if len(tally.score) == 1 or spread == 0:
        return 0.0  # what rounding leaves of (score - mean score) must not count
    return float((tally.residual * tally.total) @ centred / spread)


def _too_few(tally: Tally) -> bool:
    """Whether an error could hide because few rows, or few of one kind, were seen.

    Scores of exactly 0 and 1 leave it no place: a single wrong row refutes them.
    """
    certain = bool(((tally.score == 0) | (tally.score == 1)).all())
    rare = not certain and tally.count.sum(axis=0).min() < _FEW_EVENTS
    return tally.n < _FEW_ROWS or rare


def _findable(tally: Tally) -> float:
    """Return the constant error that the test would find about nine times in ten.

    It is never below the share of wrong rows of which n rows would probably show none.
    """
    rows = tally.total**2 / float(tally.spread.sum())
    return max(3.1 * _chance_of_mean(tally), 3.0 / rows)


def _halves(tally: Tally) -> FloatArray:
    """Residual below and above the mean score."""
    below = tally.score < tally.mean_score
    return np.array([tally.residual[below].sum(), tally.residual[~below].sum()])


def _variance(tally: Tally) -> FloatArray:
    return np.maximum(tally.score * (1.0 - tally.score), _LEAST_VARIANCE)


def _chance_of_mean(tally: Tally) -> float:
    """Return the standard error of (mean score - event rate) if the scores were right."""
    spread = float((tally.spread * _variance(tally)).sum())
    return float(np.sqrt(spread)) / tally.total


def _points(value: float) -> str:
    shown = 100 * value
    digits = 1 if shown >= 0.95 else 2
    return f"{shown:.{digits}f} percentage points"


def _data(tally: Tally, target: str) -> str:
    event = "positive" if target == "positive" else "correct"
    rows = "1 row" if tally.n == 1 else f"{tally.n:,} rows"
    return f"{rows}, {round(tally.count[:, 1].sum()):,} of them {event}"
