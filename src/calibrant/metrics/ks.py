"""Kolmogorov-Smirnov calibration error and the calibration test based on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from calibrant.inputs import Target, as_scored_rows
from calibrant.metrics.problem import tally_target
from calibrant.metrics.resampling import null_residuals
from calibrant.metrics.seminorms import running_size
from calibrant.metrics.tally import Tally
from calibrant.results import CalibrationTest

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
    r"""KS calibration error: largest gap between cumulative events and cumulative scores.

    .. math:: \max_t \Big|\frac{1}{N} \sum_{i:\, s_i \le t} (y_i - s_i)\Big|

    with :math:`y_i` the events and :math:`s_i` the scores. It needs no bins; tied scores enter
    together, so the order of rows does not matter. Errors of opposite sign at neighbouring scores
    can cancel.

    Examples
    --------
    >>> round(ks([0, 1, 1, 1], [0.3, 0.4, 0.7, 0.9]), 4)
    0.175

    References
    ----------
    Gupta et al. (2021), ICLR, section 3.
    """
    scored = as_scored_rows(labels, probs, weights=weights, classes=classes)
    return float(running_size(tally_target(scored, target).residual))


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
    """Test, without bins, whether the scores are calibrated.

    The statistic is `ks`; its null distribution is simulated by drawing events from the scores, so
    the p-value is valid at any n. A large p-value means that no miscalibration was detected at this
    n, not that the model is calibrated.

    Examples
    --------
    >>> bad = calibration_test([0, 0, 0, 0, 0, 0, 0, 0, 1, 0], 10 * [0.6])
    >>> round(bad.statistic, 4), bad.p_value < 0.01
    (0.5, True)
    """
    scored = as_scored_rows(labels, probs, weights=weights, classes=classes)
    tally = tally_target(scored, target).compress(np.array([0.0, 1.0]))
    return tally_test(tally, draws=draws, rng=np.random.default_rng(rng))


def tally_test(tally: Tally, *, draws: int, rng: np.random.Generator) -> CalibrationTest:
    """Run the test on a tally; observed and simulated statistics use the same cells."""
    statistic = float(running_size(tally.residual))
    simulated = running_size(null_residuals(tally, draws, rng))
    # A small tolerance, so that sums that differ only by rounding count as ties.
    as_large = int((simulated >= statistic * (1.0 - 1e-12)).sum())
    return CalibrationTest(
        "ks", statistic, (1 + as_large) / (1 + draws), _DEFINITION.format(draws=draws)
    )
