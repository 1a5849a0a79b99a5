"""Spline calibration: the derivative of a spline fitted to the cumulative error."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.calibrators.base.calibrator import Calibrator
from calibrant.calibrators.base.registry import register
from calibrant.calibrators.base.rows import CalibrationRows
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

_MAX_POINTS = 1 << 14  # Maximum number of points of the map

_TIE_MARGIN = 1e-12
"""Margin, in logarithms, of the predicted class where it would tie with the next."""

_NARROW = 1e-6
"""Over narrower pieces the slope is taken at the midpoint: differences would be mostly rounding."""


@register
class SplineCalibration(Calibrator):
    r"""Correct a score by the slope of a spline fitted to the cumulative error.

    .. math:: h(t) = \frac{1}{\sum w} \sum_{\mathrm{rank}(i) \le t} w_i (y_i - s_i), \qquad
              s' = s + \hat h'(t)

    s is the score, y is 1 if the event occurred, w are the weights, t in [0, 1] is the share of
    rows with a score up to s. h accumulates the under-estimate of the scores; where it rises they
    are too low by its slope. :math:`\hat h` is the natural cubic spline with `n_knots` equidistant
    knots that is the least-squares fit to h. Each score of the calibration rows gets its new value;
    between them it is interpolated linearly, outside it is constant.

    With two classes s is P(positive) and y the label. With more, s is the probability of the
    predicted class and y whether it was right; the other classes share 1 - s' as they shared 1 - s,
    but none gets more than s': the excess goes to the others in proportion. s' itself stays
    at or above 1/K, so with more than two classes no prediction changes. Of m classes that tie at
    the top each counts as predicted, its hit as 1/m, and they get their mean. The map need not
    rise, so with two classes ranks and predictions can change, and with more the order of rows by
    confidence can.

    It calibrates the predicted class only, not every single class.

    Differences from the paper and its code: equal scores count as one piece of t and get the
    mean slope over it, h being straight there, so that neither the order of rows nor a repetition
    in place of a weight matters; the squared distance is integrated over t instead of summed over
    rows, which differs by about 1/n; interpolation weighs the nearer score more (the published
    code swaps the two); s' stays within [e, 1 - e], e = 0.5 / (1 + sum of weights), which in all
    moves less than half an event. At most 16,384 distinct scores become points of the map.

    Parameters
    ----------
    n_knots : 2 or more; with 2 the spline is a straight line, one shift for all scores

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

    def _learn(self, rows: CalibrationRows) -> None:
        if isinstance(self.n_knots, bool) or int(self.n_knots) != self.n_knots or self.n_knots < 2:
            raise InputError(f"n_knots must be a whole number of at least 2, got {self.n_knots!r}.")
        logits = rows.canonical
        scores, events = probs_from_logits(logits), rows.labels == 1
        if rows.k > 2:
            tied = _tied_at_top(logits)
            right = tied[np.arange(len(logits)), rows.labels]
            scores, events = _top_scores(logits), right / tied.sum(axis=1)
        distinct, width, residual = _group_by_score(scores, events, rows.mass)
        values = distinct + _mean_slopes(width, residual, int(self.n_knots))
        end = 0.5 / (1.0 + rows.total)
        points = np.unique(np.rint(np.linspace(0, len(distinct) - 1, _MAX_POINTS)).astype(np.int64))
        self.scores_, self.values_ = distinct[points], np.clip(values, end, 1.0 - end)[points]

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
        odds = np.maximum(odds, _TIE_MARGIN - np.log(logits.shape[1] - 1.0))  # at least 1/K
        others += log_sigmoid(-odds)[:, None]
        others = _cap_log_probs(others, log_sigmoid(odds) - _TIE_MARGIN)
        others[rows, top] = log_sigmoid(odds)
        return _average_tied(others, _tied_at_top(logits))

    def _new_odds(self, scores: FloatArray) -> FloatArray:
        return log_odds_of(np.interp(scores, self.scores_, self.values_))


def _top_scores(logits: FloatArray) -> FloatArray:
    """Return the top probability of each row, invariant to the order of classes."""
    return np.exp(log_sigmoid(log_odds_from_logits(logits).max(axis=1)))


def _tied_at_top(logits: FloatArray) -> NDArray[np.bool_]:
    """Return a mask of the classes that tie for the top probability of each row."""
    return np.asarray(logits == logits.max(axis=1, keepdims=True))


def _average_tied(log_probs: FloatArray, tied: NDArray[np.bool_]) -> FloatArray:
    """Give classes that tie at the top their mean probability."""
    n_tied = tied.sum(axis=1)
    multiple = np.flatnonzero(n_tied > 1)
    logs, tied = log_probs[multiple], tied[multiple]
    mean = np.where(tied, np.exp(logs), 0.0).sum(axis=1) / n_tied[multiple]
    log_probs[multiple] = np.where(tied, np.log(mean)[:, None], logs)
    return log_probs


def _cap_log_probs(log_probs: FloatArray, cap: FloatArray) -> FloatArray:
    """Cap log-probabilities, and scale the rest of the row up to the same sum."""
    above = np.flatnonzero(log_probs.max(axis=1) > cap)
    logs, top = log_probs[above], cap[above, None]
    total = np.exp(logs).sum(axis=1, keepdims=True)
    at_top = np.zeros(logs.shape, dtype=bool)
    new = logs
    for _ in range(logs.shape[1]):
        at_top |= new > top
        remaining = total - at_top.sum(axis=1, keepdims=True) * np.exp(top)
        # In logarithms: probabilities that underflow still get their share of the rest.
        free = np.where(at_top, -np.inf, logs)
        free[np.isneginf(free).all(axis=1)] = 0.0  # all are capped: nothing remains to share
        share = log_probs_from_logits(free) + np.log(np.maximum(remaining, 1e-300))
        new = np.where(at_top, top, share)
        if not (new > top).any():
            break
    log_probs[above] = new
    return log_probs


def _group_by_score(
    scores: FloatArray, events: NDArray[Any], mass: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the distinct scores, the share of rows at each, and event rate minus score."""
    distinct, index = np.unique(scores, return_inverse=True)
    width = np.bincount(index, weights=mass)
    rate = np.bincount(index, weights=mass * events) / width
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
    nodes = ((np.arange(n_knots - 1)[:, None] + 0.5 * (points + 1.0)) / (n_knots - 1)).ravel()
    design = basis(nodes) * np.sqrt(np.tile(weight, n_knots - 1) / (2.0 * (n_knots - 1)))[:, None]
    products = once(1.0) * (residual @ width) - residual @ np.diff(twice(edges), axis=0)
    heights = np.linalg.solve(design.T @ design, products)
    rise = np.diff(basis(edges) @ heights)
    middle = basis.derivative()(0.5 * (edges[1:] + edges[:-1])) @ heights
    return np.asarray(np.where(width > _NARROW, rise / np.maximum(width, _NARROW), middle))
