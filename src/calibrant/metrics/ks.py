"""Kolmogorov-Smirnov calibration error and the headline test built on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from calibrant.inputs import Target, as_scored
from calibrant.metrics.problem import one_tally
from calibrant.metrics.resampling import null_residuals
from calibrant.metrics.seminorms import running_size
from calibrant.metrics.tally import Tally
from calibrant.results import CalibrationTest

__all__ = ["calibration_test", "ks"]

_DEFINITION = (
    "largest absolute running sum of (event - score)/n in the order of the scores; p-value: share "
    "of {draws} redraws of the events from the scores with a statistic at least as large"
)


def ks(
    labels: Any,
    probs: Any,
    *,
    target: Target | None = None,
    weights: Any = None,
    classes: Sequence[Any] | None = None,
) -> float:
    r"""Largest gap between accumulated events and accumulated scores.

    .. math:: \max_t \Big|\frac{1}{N} \sum_{i:\, s_i \le t} (y_i - s_i)\Big|

    Without bins; tied scores enter together, so the order of rows does not matter. Errors of
    opposite sign at neighbouring scores can cancel.

    Examples
    --------
    >>> round(ks([0, 1, 1, 1], [0.3, 0.4, 0.7, 0.9]), 4)
    0.175

    References
    ----------
    Gupta et al. (2021), ICLR, section 3.
    """
    scored = as_scored(labels, probs, weights=weights, classes=classes)
    return float(running_size(one_tally(scored, target).residual))


def calibration_test(
    labels: Any,
    probs: Any,
    *,
    target: Target | None = None,
    weights: Any = None,
    classes: Sequence[Any] | None = None,
    draws: int = 1999,
    rng: int | np.random.Generator = 0,
) -> CalibrationTest:
    """Test, without bins, whether events come as often as the scores say.

    The statistic is `ks`; its distribution under perfect calibration comes from redrawing the
    events from the scores themselves, so the p-value is right at any n. A large p-value says that
    nothing was found at this n, not that the model is calibrated.

    Examples
    --------
    >>> bad = calibration_test([0, 0, 0, 0, 0, 0, 0, 0, 1, 0], 10 * [0.6])
    >>> round(bad.statistic, 4), bad.p_value < 0.01
    (0.5, True)
    """
    scored = as_scored(labels, probs, weights=weights, classes=classes)
    tally = one_tally(scored, target).compress(np.array([0.0, 1.0]))
    return tally_test(tally, draws=draws, rng=np.random.default_rng(rng))


def tally_test(tally: Tally, *, draws: int, rng: np.random.Generator) -> CalibrationTest:
    """Run the test on a tally; observed and redrawn statistics use the same cells."""
    statistic = float(running_size(tally.residual))
    redrawn = running_size(null_residuals(tally, draws, rng))
    # A hair of tolerance: ties between sums that rounding tells apart count as ties.
    as_large = int((redrawn >= statistic * (1.0 - 1e-12)).sum())
    return CalibrationTest(
        "ks", statistic, (1 + as_large) / (1 + draws), _DEFINITION.format(draws=draws)
    )
