"""Pooled isotonic calibration: one non-decreasing map shared by all classes."""

from __future__ import annotations

import numpy as np

from calibrant.calibrators.base.calibrator import Calibrator
from calibrant.calibrators.base.registry import register
from calibrant.calibrators.base.rows import CalibrationRows
from calibrant.calibrators.methods.isotonic import check_points, fit_isotonic_steps, step_ends
from calibrant.convert import log_odds_from_logits, log_odds_of, log_probs_from_logits, log_sigmoid
from calibrant.inputs import FloatArray

SLOPE = 1e-6  # Slope added to the calibrated log-odds, so that distinct scores stay distinct

_MAX_LOG_ODDS = 690.0  # Log-odds used for probabilities of exactly 0 and 1 (1e-300 from them)

_TIE_MARGIN = 1e-12  # Margin of the predicted class where rounding would create a tie


@register
class PooledIsotonic(Calibrator):
    r"""Learn one non-decreasing map from all pairs of a class's score and whether it was the label.

    .. math:: f = \arg\min_{f \uparrow} \sum_i w_i \sum_k (1[y_i = k] - f(s_{ik}))^2, \qquad
              p_k = g(s_k) / \sum_j g(s_j), \quad
              \log \frac{g(s)}{1 - g(s)} = \log \frac{f(s)}{1 - f(s)} + 10^{-6} s

    :math:`s_{ik}` are the log-odds of class k against the rest in row i, :math:`y_i` is the label,
    w are the weights. All N K pairs share one f, so it needs few rows, and a shared map
    cannot change the order of the classes. f is a step function; the last term, too small to matter
    otherwise, makes g strictly increasing. Between steps f is interpolated linearly in s, outside
    it is constant.

    With two classes the pairs are symmetric and so is f: one map for P(positive) that leaves
    0.5 where it is, and rows keep their order. Differences of log-odds below about 1e-8 are lost
    to rounding.

    Unlike `IsotonicCalibration` it has no map per class, so it cannot correct the error of a single
    class, and with two classes it does not move 0.5.

    Unlike the paper's code, rows are normalised, scores are log-odds (which resolve what rounds to
    0 or 1), and the ends are guarded: one event is added at the lowest score and one non-event at
    the highest, so that an end step of m pairs is never nearer than 1/(m + 1) to 0 or 1.

    Parameters
    ----------
    pseudo_count : weight of the two extra pairs; 0 for the textbook fit

    Attributes
    ----------
    scores_ : log-odds at which steps begin and end
    probs_ : the value f of each

    Examples
    --------
    Two classes, the model right in three of four rows at log-odds 1 and in all four at 2:

    >>> logits = [1.0, 1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 2.0]
    >>> calibrator = PooledIsotonic().fit(logits, [1, 1, 1, 0, 1, 1, 1, 1])
    >>> calibrator.predict_proba([-2.0, 0.0, 1.0, 2.0]).round(4)
    array([0.2 , 0.5 , 0.75, 0.8 ])

    References
    ----------
    Zhang, Kailkhura and Han, Mix-n-Match: ensemble and compositional methods for uncertainty
    calibration in deep learning, ICML 2020: isotonic regression for multi-class (IRM).
    """

    method = "irm"
    learned = ("scores", "probs")
    keeps_argmax = True
    keeps_ranking = True
    needs_every_class = False
    fewest_rows = 1
    scores_: FloatArray
    probs_: FloatArray

    def __init__(self, *, pseudo_count: float = 1.0) -> None:
        self.pseudo_count = pseudo_count

    def _learn(self, rows: CalibrationRows) -> None:
        scores = rows.log_odds
        if scores.ndim == 1:
            scores = np.column_stack([-scores, scores])
        events = rows.labels[:, None] == np.arange(rows.k)
        weights = None if rows.weights is None else np.repeat(rows.weights, rows.k)
        distinct, _, values = fit_isotonic_steps(
            scores.ravel(), events.ravel(), weights, self.pseudo_count
        )
        ends = step_ends(values)
        self.scores_, self.probs_ = distinct[ends], values[ends]

    def _check_learned(self) -> None:
        check_points(self.scores_, self.probs_)

    def _log_probs(self, logits: FloatArray) -> FloatArray:
        scores = log_odds_from_logits(logits)
        level = log_odds_of(np.interp(scores, self.scores_, self.probs_))
        odds = np.clip(level, -_MAX_LOG_ODDS, _MAX_LOG_ODDS) + SLOPE * scores
        if odds.ndim == 1:
            margin = _TIE_MARGIN * np.sign(scores)
            odds = np.where(scores > 0, np.maximum(odds, margin), np.minimum(odds, margin))
            return np.column_stack([log_sigmoid(-odds), log_sigmoid(odds)])
        shares = log_sigmoid(odds)
        rows, top = np.arange(len(scores)), scores.argmax(axis=1)
        shares[rows, top] += _TIE_MARGIN
        return log_probs_from_logits(shares)
