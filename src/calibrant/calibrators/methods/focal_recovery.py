"""Focal recovery: invert the distortion of probabilities by focal loss."""

from __future__ import annotations

import numpy as np

from calibrant.calibrators.base.calibrator import SoftmaxCalibrator
from calibrant.calibrators.base.registry import register
from calibrant.calibrators.base.rows import CalibrationRows
from calibrant.convert import log_odds_from_logits
from calibrant.errors import InputError
from calibrant.inputs import FloatArray

_FAR = 30.0  # Beyond these log-odds -log q equals exp(-log-odds) in double precision


@register
class FocalRecovery(SoftmaxCalibrator):
    r"""Undo the focal loss: map the probabilities of its minimiser to the true posterior.

    .. math:: \eta_k = \frac{h(q_k)}{\sum_j h(q_j)}, \qquad
              h(q) = \frac{q}{(1-q)^\gamma - \gamma\, q\, (1-q)^{\gamma-1} \log q}

    q is the softmax of a row's logits, :math:`\gamma` the focusing parameter it was trained with,
    :math:`\eta` the posterior P(y | x). Focal loss :math:`-(1-q_y)^\gamma \log q_y` is minimised
    in expectation by a q less confident than :math:`\eta`; this is the inverse of that map. For two
    classes it is nearly a temperature below 1. 1/h falls in q for every :math:`\gamma \ge 0`, being
    :math:`(1-q)^\gamma (1/q - \gamma \log q / (1-q))`, so h rises: neither predictions nor ranks
    change. :math:`\gamma = 0` is cross-entropy and changes nothing.

    It is exact for a model that minimises the expected focal loss, which an over-fitted model does
    not: there it restores the over-confidence, and `FocalTemperatureScaling` or a temperature
    learned from labels does better. It does not apply to sample-dependent :math:`\gamma` (FLSD,
    AdaFocal). Nothing is learned from the labels.

    Parameters
    ----------
    gamma : the :math:`\gamma` of training, 0 or more

    Attributes
    ----------
    gamma_ : the same

    Examples
    --------
    gamma = 1 and q = 1/2, 1/4, 1/4: 1/h is 1 + log 2 and 3 + log 4.

    >>> logits = np.log([[0.5, 0.25, 0.25]])
    >>> FocalRecovery(gamma=1.0).fit(logits, [0]).predict_proba(logits).round(6)
    array([[0.564329, 0.217836, 0.217836]])
    >>> h = 1 / (1 + np.log(2)), 1 / (3 + np.log(4))
    >>> print(round(h[0] / (h[0] + 2 * h[1]), 6))
    0.564329

    References
    ----------
    Charoenphakdee et al., On focal loss for class-posterior probability estimation: a theoretical
    perspective, CVPR 2021: the transformation Psi that recovers the posterior.
    """

    method = "focal_recovery"
    learned = ("gamma",)
    keeps_argmax = True
    keeps_ranking = True
    needs_every_class = False
    fewest_rows = 1
    gamma_: float

    def __init__(self, gamma: float = 3.0) -> None:
        self.gamma = gamma

    def _learn(self, rows: CalibrationRows) -> None:
        self.gamma_ = check_gamma(self.gamma)

    def _remember(self, rows: CalibrationRows) -> None:
        """Do nothing: only the class names are learned from the rows."""

    def _keeps_order_of(self, position: int) -> bool:
        return self.n_classes == 2 or self.gamma_ == 0

    def _new_logits(self, log_probs: FloatArray) -> FloatArray:
        return recover_logits(log_probs, self.gamma_)


def recover_logits(logits: FloatArray, gamma: float) -> FloatArray:
    r"""Return log h of every entry of softmax(logits), for logits (n, K).

    .. math:: \log h = \log q - (\gamma - 1) \log(1-q)
              - \log\big((1-q) + \gamma\, q\, (-\log q)\big)

    It is computed from o, the log-odds of each class against the rest: log q and log(1 - q)
    are -log(1 + exp(-o)) and -log(1 + exp(o)), and log(-log q) tends to -o where q rounds to 1.
    For gamma = 0 the logits themselves are returned: log h is log q.
    """
    if gamma == 0:
        return logits
    odds = log_odds_from_logits(logits)
    if odds.ndim == 1:
        odds = np.column_stack([-odds, odds])
    small = np.log1p(np.exp(-np.abs(odds)))
    log_q, log_rest = np.minimum(odds, 0.0) - small, np.minimum(-odds, 0.0) - small
    far = odds > _FAR
    log_minus_log_q = np.where(far, -odds, np.log(np.where(far, 1.0, -log_q)))
    # (1 - q) + gamma q (-log q), as a sum of logarithms.
    apart = np.log(gamma) + log_q + log_minus_log_q - log_rest
    total = log_rest + np.maximum(apart, 0.0) + np.log1p(np.exp(-np.abs(apart)))
    return np.asarray(log_q - (gamma - 1.0) * log_rest - total)


def check_gamma(gamma: float) -> float:
    """Return gamma as a float; refuse a negative or infinite one."""
    if isinstance(gamma, bool | str) or not 0 <= gamma < np.inf:
        raise InputError(
            f"gamma must be 0 or more, got {gamma!r}: pass the focusing parameter used in training."
        )
    return float(gamma)
