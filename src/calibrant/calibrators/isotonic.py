"""Isotonic calibration: the best map that never falls."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from calibrant.calibrators.one_vs_rest import OneVsRestCalibrator, ScoreMap, log_odds_of
from calibrant.calibrators.registry import register
from calibrant.errors import InputError
from calibrant.inputs import FloatArray

__all__ = ["IsotonicCalibration", "Steps", "isotonic_steps"]

Steps = tuple[FloatArray, FloatArray, FloatArray]
"""Distinct scores, their weights, and the isotonic value of each."""


@register
class IsotonicCalibration(OneVsRestCalibrator):
    r"""Fit the non-decreasing step function with the smallest squared error.

    .. math:: f = \arg\min_{f \uparrow} \sum_i w_i (y_i - f(s_i))^2

    s are the log-odds of a class against the rest, y is 1 where the class is the label. Between
    the steps the map is interpolated linearly in s, outside it stays level. It makes ties, so the
    ranking is kept only weakly; `StrictIsotonic` keeps it. With more than two classes each has its
    own map and the answers are normalised.

    The textbook fit gives probabilities of exactly 0 and 1, and one surprise then costs an
    infinite NLL. Here one more event at the lowest score and one more non-event at the highest
    count along: an end step of m rows is never below 1/(m + 1).

    Parameters
    ----------
    pseudo_count : weight of the two extra rows; 0 for the textbook fit

    Attributes
    ----------
    maps_ : `scores` at which steps begin and end, and their `probs`

    Examples
    --------
    >>> calibrator = IsotonicCalibration(pseudo_count=0).fit([-2, -1, 0, 1], [0, 1, 0, 1])
    >>> calibrator.predict_proba([-2.0, -1.0, -0.5, 0.0, 1.0])
    array([0. , 0.5, 0.5, 0.5, 1. ])

    References
    ----------
    Zadrozny and Elkan, Transforming classifier scores into accurate multiclass probability
    estimates, KDD 2002, sections 3 and 4.
    """

    method = "isotonic"

    def __init__(self, *, pseudo_count: float = 1.0) -> None:
        self.pseudo_count = pseudo_count

    def _learn_map(
        self, scores: FloatArray, events: NDArray[np.bool_], weights: FloatArray | None
    ) -> ScoreMap:
        distinct, _, values = isotonic_steps(scores, events, weights, self.pseudo_count)
        # Within a step only its two ends matter.
        left, right = np.diff(values, prepend=-1.0) != 0, np.diff(values, append=2.0) != 0
        ends = left | right
        return {"scores": distinct[ends], "probs": values[ends]}

    def _check_learned(self) -> None:
        for learned in self.maps_:
            probs, scores = learned["probs"], learned["scores"]
            if probs.min() < 0 or probs.max() > 1 or (np.diff(scores) <= 0).any():
                raise ValueError("the steps are not probabilities at rising scores")

    def _new_log_odds(self, learned: ScoreMap, scores: FloatArray) -> FloatArray:
        return log_odds_of(np.interp(scores, learned["scores"], learned["probs"]))


def isotonic_steps(
    scores: FloatArray,
    events: NDArray[np.bool_],
    weights: FloatArray | None,
    pseudo_count: float,
) -> Steps:
    """Fit isotonic values to the distinct scores, with the two extra rows at the ends."""
    from scipy.optimize import isotonic_regression

    if not 0 <= pseudo_count < np.inf:
        raise InputError(f"pseudo_count must not be negative, got {pseudo_count!r}.")
    distinct, place = np.unique(scores, return_inverse=True)
    each = np.ones(len(scores)) if weights is None else weights
    total: FloatArray = np.bincount(place, weights=each).astype(np.float64)
    up = np.bincount(place, weights=each * events)
    up[0] += pseudo_count
    total[0] += pseudo_count
    total[-1] += pseudo_count
    values = isotonic_regression(up / total, weights=total).x
    return distinct, total, np.clip(values, 0.0, 1.0)
