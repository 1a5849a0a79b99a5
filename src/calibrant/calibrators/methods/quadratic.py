"""Quadratic scaling: a quadratic map of the log-odds."""

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


@register
class QuadraticScaling(OneVsRestCalibrator):
    r"""Fit a quadratic in the log-odds.

    .. math:: p = \sigma(a s^2 + b s + c)

    s are the log-odds of a class against the rest; a, b and c minimise the NLL. A parabola is
    not monotone and extrapolates badly: outside the fitted scores it is continued by a straight
    line with the slope of its tangent, clipped to [0, 1] so that unseen scores are not sharpened.
    With more than two classes each has its own map and the results are normalised.

    Parameters
    ----------
    shrink : regularisation, as in `PlattScaling`

    Attributes
    ----------
    maps_ : a (`bend`), b (`slope`), c (`intercept`) and the fitted range (`low`, `high`) of each

    Examples
    --------
    Three scores and three frequencies: the parabola goes through all of them.

    >>> logits = [-1.0] * 4 + [0.0] * 4 + [1.0] * 4
    >>> labels = [1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 1, 0]
    >>> calibrator = QuadraticScaling(shrink=None).fit(logits, labels)
    >>> calibrator.predict_proba([-1.0, 0.0, 1.0]).round(4)
    array([0.25, 0.25, 0.75])

    References
    ----------
    Berta, Holzmüller, Jordan and Bach, Structured matrix scaling for multi-class calibration,
    AISTATS 2026 (the binary method).
    """

    method = "quadratic"

    def __init__(self, *, shrink: Shrink = "identity") -> None:
        self.shrink = shrink

    def _learn_map(
        self, scores: FloatArray, events: NDArray[np.bool_], weights: FloatArray | None
    ) -> ScoreMap:
        bend, slope, intercept = fit_logistic(
            np.column_stack([scores * scores, scores, np.ones(len(scores))]),
            regression_targets(events, weights, self.shrink),
            weights,
            start=np.array([0.0, 1.0, 0.0]),
            lowest=np.full(3, -np.inf),
            strength=penalty_strength(self.shrink),
        )
        return {
            "bend": float(bend),
            "slope": float(slope),
            "intercept": float(intercept),
            "low": float(scores.min()),
            "high": float(scores.max()),
        }

    def _keeps_order_of(self, position: int) -> bool:
        learned = self.maps_[0]
        ends = np.array([learned["low"], learned["high"]])
        return self.n_classes == 2 and bool((_slope_at(learned, ends) > 0).all())

    def _new_log_odds(self, learned: ScoreMap, scores: FloatArray) -> FloatArray:
        inside = np.clip(scores, learned["low"], learned["high"])
        curve = (learned["bend"] * inside + learned["slope"]) * inside + learned["intercept"]
        tangent = np.clip(_slope_at(learned, inside), 0.0, 1.0)
        return np.asarray(curve + tangent * (scores - inside))


def _slope_at(learned: ScoreMap, scores: FloatArray) -> FloatArray:
    return np.asarray(2.0 * learned["bend"] * scores + learned["slope"])
