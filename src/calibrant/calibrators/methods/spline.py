"""Spline calibration: the slope of accumulated error, fitted by a smooth curve."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.calibrators.base.calibrator import Calibrator
from calibrant.calibrators.base.registry import register
from calibrant.calibrators.base.rows import Rows
from calibrant.calibrators.methods.isotonic import check_points
from calibrant.convert import (
    log_odds_from_logits,
    log_odds_of,
    log_probs_from_logits,
    log_sigmoid,
    probs_from_logits,
)
from calibrant.errors import InputError
from calibrant.inputs import FloatArray

__all__ = ["SplineCalibration"]

_MOST_POINTS = 1 << 14
"""So many points of the map are kept; between them lie a few rows in a hundred thousand."""

_LEAD = 1e-12
"""By how much, in logarithms, the predicted class leads where it would tie with the next."""

_NARROW = 1e-6
"""Over shorter pieces a mean slope is taken in the middle: differences would be mostly rounding."""


@register
class SplineCalibration(Calibrator):
    r"""Correct a score by the slope of a spline through the accumulated error.

    .. math:: h(t) = \frac{1}{\sum w} \sum_{\mathrm{rank}(i) \le t} w_i (y_i - s_i), \qquad
              s' = s + \hat h'(t)

    s is the score, y is 1 where what it speaks of came true, w are the weights, t in [0, 1] is the
    share of rows with a score up to s. h accumulates what the scores promised too little; where it
    rises they are too low by its slope. :math:`\hat h` is the natural cubic spline with `n_knots`
    equidistant knots that is nearest to h in least squares. Each score of the calibration rows
    gets its new value; between them it is interpolated linearly, outside the end values hold.

    With two classes s is P(positive) and y the label. With more, s is the probability of the
    predicted class and y whether it was right; the other classes share 1 - s' as they shared 1 - s,
    but none gets more than s': what is above it goes to those below in proportion. s' itself stays
    at or above 1/K, so with more than two classes no prediction changes. Of m classes that tie at
    the top each counts as predicted, its hit as 1/m, and they get their mean. The map need not
    rise, so with two classes ranks and predictions can change, and with more the order of rows by
    confidence can.

    It calibrates the predicted class only: what it does to each single class is not controlled.

    Where the paper is silent or its code differs: equal scores count as one piece of t and get the
    mean slope over it, h being straight there, so that neither the order of rows nor a repetition
    in place of a weight matters; the squared distance is integrated over t instead of summed over
    rows, which differs by about 1/n; interpolation weighs the nearer score more (the published
    code swaps the two); s' stays within [e, 1 - e], e = 0.5 / (1 + sum of weights), which in all
    moves less than half an event. Of many distinct scores 16,384 are kept as points of the map.

    Parameters
    ----------
    n_knots : 2 or more; 2 make a straight line, one shift for all scores

    Attributes
    ----------
    scores_ : scores of the calibration rows, each once
    values_ : the calibrated value of each

    Examples
    --------
    One score only, 0.8, right in three of five rows: h is a line with the slope 0.6 - 0.8.

    >>> logits = np.log([[0.8, 0.1, 0.1]] * 5)
    >>> SplineCalibration().fit(logits, [0, 0, 0, 1, 2]).predict_proba(logits[:1]).round(6)
    array([[0.6, 0.2, 0.2]])

    References
    ----------
    Gupta et al., Calibration of neural networks using splines, ICLR 2021, section 4.
    """

    method = "spline"
    learned = ("scores", "values")
    needs_every_class = False
    fewest_rows = 1
    scores_: FloatArray
    values_: FloatArray

    def __init__(self, n_knots: int = 6) -> None:
        self.n_knots = n_knots

    def _learn(self, rows: Rows) -> None:
        if isinstance(self.n_knots, bool) or int(self.n_knots) != self.n_knots or self.n_knots < 2:
            raise InputError(f"n_knots must be a whole number from 2 on, got {self.n_knots!r}.")
        logits = rows.canonical
        scores, events = probs_from_logits(logits), rows.labels == 1
        if rows.k > 2:
            tied = _tied_at_top(logits)
            right = tied[np.arange(len(logits)), rows.labels]
            scores, events = _top_scores(logits), right / tied.sum(axis=1)
        distinct, width, residual = _pieces(scores, events, rows.mass)
        values = distinct + _mean_slopes(width, residual, int(self.n_knots))
        end = 0.5 / (1.0 + rows.total)
        kept = np.unique(np.rint(np.linspace(0, len(distinct) - 1, _MOST_POINTS)).astype(np.int64))
        self.scores_, self.values_ = distinct[kept], np.clip(values, end, 1.0 - end)[kept]

    def _check_learned(self) -> None:
        check_points(self.scores_, self.values_)

    def _log_probs(self, logits: FloatArray) -> FloatArray:
        if logits.ndim == 1:
            odds = self._new_odds(probs_from_logits(logits))
            return np.column_stack([log_sigmoid(-odds), log_sigmoid(odds)])
        rows, top = np.arange(len(logits)), logits.argmax(axis=1)
        odds = self._new_odds(_top_scores(logits))
        others = logits.copy()
        others[rows, top] = -np.inf
        others = log_probs_from_logits(others)
        odds = np.maximum(odds, _LEAD - np.log(logits.shape[1] - 1.0))  # at least 1/K
        others += log_sigmoid(-odds)[:, None]
        others = _levelled(others, log_sigmoid(odds) - _LEAD)
        others[rows, top] = log_sigmoid(odds)
        return _shared(others, _tied_at_top(logits))

    def _new_odds(self, scores: FloatArray) -> FloatArray:
        return log_odds_of(np.interp(scores, self.scores_, self.values_))


def _top_scores(logits: FloatArray) -> FloatArray:
    """Return the probability of each row's likeliest class, the same for any order of classes."""
    return np.exp(log_sigmoid(log_odds_from_logits(logits).max(axis=1)))


def _tied_at_top(logits: FloatArray) -> NDArray[np.bool_]:
    """Say which classes of each row are as likely as its likeliest."""
    return np.asarray(logits == logits.max(axis=1, keepdims=True))


def _shared(log_probs: FloatArray, tied: NDArray[np.bool_]) -> FloatArray:
    """Give classes that tie at the top what they have on average: none of them comes first."""
    many = tied.sum(axis=1)
    several = np.flatnonzero(many > 1)
    logs, tied = log_probs[several], tied[several]
    mean = np.where(tied, np.exp(logs), 0.0).sum(axis=1) / many[several]
    log_probs[several] = np.where(tied, np.log(mean)[:, None], logs)
    return log_probs


def _levelled(log_probs: FloatArray, most: FloatArray) -> FloatArray:
    """Lower what is above `most` to it, and scale the rest of the row up to the same sum."""
    crowded = np.flatnonzero(log_probs.max(axis=1) > most)
    logs, top = log_probs[crowded], most[crowded, None]
    total = np.exp(logs).sum(axis=1, keepdims=True)
    at_top = np.zeros(logs.shape, dtype=bool)
    new = logs
    for _ in range(logs.shape[1]):
        at_top |= new > top
        left = total - at_top.sum(axis=1, keepdims=True) * np.exp(top)
        # In logarithms: what is below may be too small to be a number, and still shares the rest.
        free = np.where(at_top, -np.inf, logs)
        free[np.isneginf(free).all(axis=1)] = 0.0  # all are level: nothing is left to share
        share = log_probs_from_logits(free) + np.log(np.maximum(left, 1e-300))
        new = np.where(at_top, top, share)
        if not (new > top).any():
            break
    log_probs[crowded] = new
    return log_probs


def _pieces(
    scores: FloatArray, events: NDArray[Any], mass: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the distinct scores, the share of rows at each, and event rate less score."""
    distinct, place = np.unique(scores, return_inverse=True)
    width = np.bincount(place, weights=mass)
    rate = np.bincount(place, weights=mass * events) / width
    return distinct, width / width.sum(), rate - distinct


def _mean_slopes(width: FloatArray, residual: FloatArray, n_knots: int) -> FloatArray:
    r"""Fit the spline to the polygon h, and return its mean slope over each of h's pieces.

    The spline is a sum of natural splines B_j that are 1 at one knot and 0 at the others. Least
    squares over t asks for the products :math:`\int B_j B_l` and :math:`\int B_j h`. h has the
    slope r_g over piece g, so integrating by parts with :math:`C_j' = B_j` and :math:`D_j' = C_j`
    gives :math:`\int B_j h = C_j(1) h(1) - \sum_g r_g (D_j(t_g) - D_j(t_{g-1}))`, exactly.
    """
    from scipy.interpolate import CubicSpline

    edges = np.concatenate([[0.0], np.minimum(np.cumsum(width), 1.0)])
    edges[-1] = 1.0
    width = np.diff(edges)
    basis = CubicSpline(np.linspace(0.0, 1.0, n_knots), np.eye(n_knots), bc_type="natural")
    once, twice = basis.antiderivative(1), basis.antiderivative(2)
    # B_j B_l has degree 6: four points of Gauss between neighbouring knots integrate it exactly.
    points, weight = np.polynomial.legendre.leggauss(4)
    at = ((np.arange(n_knots - 1)[:, None] + 0.5 * (points + 1.0)) / (n_knots - 1)).ravel()
    rows = basis(at) * np.sqrt(np.tile(weight, n_knots - 1) / (2.0 * (n_knots - 1)))[:, None]
    products = once(1.0) * (residual @ width) - residual @ np.diff(twice(edges), axis=0)
    heights = np.linalg.solve(rows.T @ rows, products)
    rise = np.diff(basis(edges) @ heights)
    middle = basis.derivative()(0.5 * (edges[1:] + edges[:-1])) @ heights
    return np.asarray(np.where(width > _NARROW, rise / np.maximum(width, _NARROW), middle))
