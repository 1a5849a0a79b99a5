"""Strict isotonic calibration: isotonic steps joined by lines, without ties."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from calibrant.calibrators.base.one_vs_rest import OneVsRestCalibrator, ScoreMap
from calibrant.calibrators.base.registry import register
from calibrant.calibrators.methods.isotonic import fit_isotonic_steps
from calibrant.convert import log_odds_of
from calibrant.errors import InputError
from calibrant.inputs import FloatArray

END_SLOPE = 1e-3  # Slope of the log-odds beyond the centre of the first and the last step


@register
class StrictIsotonic(OneVsRestCalibrator):
    r"""Isotonic calibration that keeps the ranking.

    Each step of `IsotonicCalibration` becomes one point, at the mean score of its rows; the
    log-odds are linear between points, with a slope of 0.001 beyond the outer two:

    .. math:: f(s) = \sigma(\mathrm{interp}(s;\; \bar s_b, \log\tfrac{f_b}{1 - f_b}))

    :math:`\bar s_b` is the mean score of step b, :math:`f_b` its frequency. The map rises
    everywhere, so rows keep their strict order and ranking metrics their value, which step
    functions, with their ties, do not guarantee.

    Parameters
    ----------
    pseudo_count : weight of the two extra rows, as in `IsotonicCalibration`; must be positive,
        because a frequency of 0 has no log-odds

    Attributes
    ----------
    maps_ : mean `scores` of the steps and their `odds` in logarithms

    Examples
    --------
    >>> logits, labels = [-2] * 9 + [0] * 4 + [2] * 9, [0] * 9 + [1, 1, 0, 0] + [1] * 9
    >>> calibrator = StrictIsotonic().fit(logits, labels)
    >>> calibrator.predict_proba([-3.0, -2.0, -1.0, 0.0, 2.0]).round(4)
    array([0.0999, 0.1   , 0.25  , 0.5   , 0.9   ])

    References
    ----------
    Oron and Flournoy, Centered isotonic regression, Statistics in Biopharmaceutical Research 2017
    (the points; the lines in log-odds and the ends are ours).
    """

    method = "isotonic_strict"
    keeps_ranking = True

    def __init__(self, *, pseudo_count: float = 1.0) -> None:
        self.pseudo_count = pseudo_count

    def _learn_map(
        self, scores: FloatArray, events: NDArray[np.bool_], weights: FloatArray | None
    ) -> ScoreMap:
        if not self.pseudo_count > 0:
            raise InputError(f"pseudo_count must be positive, got {self.pseudo_count!r}.")
        distinct, total, values = fit_isotonic_steps(scores, events, weights, self.pseudo_count)
        step = np.cumsum(np.diff(values, prepend=values[0]) > 0)
        mass = np.bincount(step, weights=total)
        first = np.flatnonzero(np.diff(step, prepend=-1))
        last = np.append(first[1:], len(distinct)) - 1
        # Keep means within their step and frequencies off 0 and 1 despite rounding.
        means = np.bincount(step, weights=total * distinct) / mass
        centres = np.clip(means, distinct[first], distinct[last])
        inside = np.clip(values[first], np.nextafter(0.0, 1.0), np.nextafter(1.0, 0.0))
        return {"scores": centres, "odds": log_odds_of(inside)}

    def _new_log_odds(self, learned: ScoreMap, scores: FloatArray) -> FloatArray:
        points = learned["scores"]
        inside = np.clip(scores, points[0], points[-1])
        return np.asarray(
            np.interp(inside, points, learned["odds"]) + END_SLOPE * (scores - inside)
        )
