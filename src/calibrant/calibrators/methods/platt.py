"""Platt scaling: a linear map of the log-odds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from calibrant.calibrators.base.one_vs_rest import OneVsRestCalibrator, ScoreMap
from calibrant.calibrators.base.registry import register
from calibrant.calibrators.fits.logistic import (
    Shrink,
    fit_logistic,
    penalty_strength,
    regression_targets,
)
from calibrant.inputs import FloatArray

MIN_SLOPE = 1e-6
"""Lower bound of slopes, so that the ranking is kept even if the labels contradict it."""


@register
class PlattScaling(OneVsRestCalibrator):
    r"""Scale and shift the log-odds.

    .. math:: p = \sigma(a s + b), \qquad a > 0

    s are the model's log-odds of a class against the rest; a and b minimise the NLL. It is fitted
    on log-odds and not on probabilities, where a sigmoid has the wrong shape. The slope a is kept
    positive: scores with the wrong sign are not inverted silently. With two classes a is 1/T of
    `TemperatureScaling`, and b shifts the base rate. With more, each class has its own a and b and
    the results are normalised, which can change predictions.

    Parameters
    ----------
    shrink : regularisation for few rows or separated labels.
        'identity' adds :math:`((a - 1)^2 + b^2) / N` to the NLL, N the number of rows (the sum of
        the weights), which is negligible with many rows. 'platt' uses Platt's targets
        :math:`(N_+ + 1)/(N_+ + 2)` and :math:`1/(N_- + 2)` instead of 1 and 0; with rare
        events it does more harm than good. None disables it.

    Attributes
    ----------
    maps_ : slope a and intercept b of each map

    Examples
    --------
    Of the rows at log-odds -1 one in four is positive, of those at 1 two in four. The line through
    (-1, -log 3) and (1, 0) has slope and intercept of log(3)/2 = 0.549:

    >>> logits, labels = [-1.0] * 4 + [1.0] * 4, [1, 0, 0, 0, 1, 1, 0, 0]
    >>> calibrator = PlattScaling(shrink=None).fit(logits, labels)
    >>> calibrator.predict_proba([-1.0, 1.0]).round(4)
    array([0.25, 0.5 ])
    >>> round(calibrator.maps_[0]["slope"], 3), round(calibrator.maps_[0]["intercept"], 3)
    (0.549, -0.549)

    References
    ----------
    Platt, Probabilistic outputs for support vector machines, 1999.
    """

    method = "platt"
    keeps_ranking = True

    def __init__(self, *, shrink: Shrink = "identity") -> None:
        self.shrink = shrink

    def _learn_map(
        self, scores: FloatArray, events: NDArray[np.bool_], weights: FloatArray | None
    ) -> ScoreMap:
        slope, intercept = fit_logistic(
            np.column_stack([scores, np.ones(len(scores))]),
            regression_targets(events, weights, self.shrink),
            weights,
            start=np.array([1.0, 0.0]),
            lowest=np.array([MIN_SLOPE, -np.inf]),
            strength=penalty_strength(self.shrink),
        )
        return {"slope": float(slope), "intercept": float(intercept)}

    def _new_log_odds(self, learned: ScoreMap, scores: FloatArray) -> FloatArray:
        return np.asarray(learned["slope"] * scores + learned["intercept"])
