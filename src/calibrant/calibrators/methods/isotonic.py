"""Isotonic calibration: the best non-decreasing map."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from calibrant.calibrators.base.one_vs_rest import OneVsRestCalibrator, ScoreMap
from calibrant.calibrators.base.registry import register
from calibrant.calibrators.methods.histogram import check_pseudo_count
from calibrant.convert import log_odds_of
from calibrant.inputs import FloatArray
from calibrant.metrics.tally import tally_with_index

Steps = tuple[FloatArray, FloatArray, FloatArray]
"""Distinct scores, their weights, and the isotonic value of each."""


@register
class IsotonicCalibration(OneVsRestCalibrator):
    r"""Fit the non-decreasing step function with the smallest squared error.

    .. math:: f = \arg\min_{f \uparrow} \sum_i w_i (y_i - f(s_i))^2

    s are the log-odds of a class against the rest, y is 1 where the class is the label. Between
    the steps the map is interpolated linearly in s; outside the fitted range it is constant. It
    creates ties, so the ranking is kept only weakly; `StrictIsotonic` keeps it strictly. With more
    than two classes each has its own map and the results are normalised.

    The textbook fit has probabilities of exactly 0 and 1, with which one mistake costs an infinite
    NLL. Here one event is added at the lowest score and one non-event at the highest: an end step
    of m rows is never closer than 1/(m + 1) to 0 or 1.

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
        distinct, _, values = fit_isotonic_steps(scores, events, weights, self.pseudo_count)
        ends = step_ends(values)
        return {"scores": distinct[ends], "probs": values[ends]}

    def _check_learned(self) -> None:
        for learned in self.maps_:
            check_points(learned["scores"], learned["probs"])

    def _new_log_odds(self, learned: ScoreMap, scores: FloatArray) -> FloatArray:
        return log_odds_of(np.interp(scores, learned["scores"], learned["probs"]))


def fit_isotonic_steps(
    scores: FloatArray,
    events: NDArray[np.bool_],
    weights: FloatArray | None,
    pseudo_count: float,
) -> Steps:
    """Fit isotonic values to the distinct scores, with one extra row at either end."""
    from scipy.optimize import isotonic_regression

    c = check_pseudo_count(pseudo_count)
    tally, _ = tally_with_index(scores, events, weights)
    total, hits = tally.mass.copy(), tally.hits.copy()
    hits[0] += c
    total[0] += c
    total[-1] += c
    values = isotonic_regression(hits / total, weights=total).x
    return tally.score, total, np.clip(values, 0.0, 1.0)


def step_ends(values: FloatArray) -> NDArray[np.bool_]:
    """Return a mask of the points that begin or end a step; interpolation needs no others."""
    return np.asarray((np.diff(values, prepend=-1.0) != 0) | (np.diff(values, append=2.0) != 0))


def check_points(scores: FloatArray, probs: FloatArray) -> None:
    """Raise ValueError unless the points are probabilities at increasing scores."""
    rising = scores.shape == probs.shape and (np.diff(scores) > 0).all()
    if not rising or probs.min() < 0 or probs.max() > 1:
        raise ValueError("its points are not probabilities at increasing scores")
