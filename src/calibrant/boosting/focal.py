"""Objectives of the focal family: cross-entropy, focal, inverse focal, sample-dependent focal."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit

from calibrant.boosting.objective import Derivatives, Objective, Reduction, class_factor
from calibrant.convert import log_sigmoid
from calibrant.fitting.class_weights import log_prior, log_weight
from calibrant.fitting.gammas import (
    MAX_CALIBRATED_GAMMA,
    check_gamma,
    check_inverse_gamma,
    check_steps,
)
from calibrant.inputs import FloatArray, IntArray

Gamma = float | FloatArray
"""One gamma, or one for each row (n,); below 0 it means inverse focal loss."""


class FocalObjective(Objective):
    r"""Focal loss $-(1 - p_y)^\gamma \log p_y$; see `calibrant.losses.focal_loss`.

    Parameters
    ----------
    gamma : focusing parameter; 0 is cross-entropy, below 0 is inverse focal loss
    weight, reduction : see `Objective`

    Examples
    --------
    >>> logits, labels = np.zeros((1, 2)), np.array([1])
    >>> FocalObjective(gamma=2).values(logits, labels).round(4)
    array([0.1733])
    """

    name: ClassVar[str] = "focal"

    def __init__(
        self, gamma: float = 2.0, *, weight: Any = None, reduction: Reduction = "mean"
    ) -> None:
        super().__init__(weight=weight, reduction=reduction)
        check_gamma(gamma)
        self.gamma = gamma

    def values(self, logits: FloatArray, labels: IntArray) -> FloatArray:
        """Return the loss (n,) of each row, without its weight."""
        odds, _ = true_odds(self._moved(logits), labels)
        return focal_values(odds, self._gamma_of(odds))

    def log_shift(self) -> FloatArray | None:
        """Return the shift of cross-entropy if gamma is 0, else None."""
        return None if self.gamma or self.weight is None else log_weight(self.weight)

    def _gamma_of(self, odds: FloatArray) -> Gamma:
        return self.gamma

    def _moved(self, logits: FloatArray) -> FloatArray:
        """Return the logits of which the loss takes the softmax."""
        return logits

    def _options(self) -> dict[str, Any]:
        return {"gamma": self.gamma}

    def _derivatives(self, logits: FloatArray, labels: IntArray) -> Derivatives:
        odds, shares = true_odds(self._moved(logits), labels)
        slope, curvature = focal_slopes(odds, self._gamma_of(odds))
        if shares is None:
            second = labels == 1
            gradient = np.where(second, slope, -slope)
            return np.column_stack([-gradient, gradient]), np.column_stack([curvature] * 2)
        rows = np.arange(len(labels))
        gradient = -slope[:, None] * shares
        gradient[rows, labels] = slope
        bent = np.abs(slope)[:, None] * shares * (1.0 - shares)
        hessian = curvature[:, None] * shares**2 + bent
        hessian[rows, labels] = curvature
        return gradient, class_factor(logits.shape[1]) * hessian


class CrossEntropyObjective(FocalObjective):
    """Cross-entropy; see `calibrant.losses.cross_entropy_loss`."""

    name: ClassVar[str] = "ce"
    is_cross_entropy = True

    def __init__(self, *, weight: Any = None, reduction: Reduction = "mean") -> None:
        super().__init__(0.0, weight=weight, reduction=reduction)

    def _options(self) -> dict[str, Any]:
        return {}

    def _derivatives(self, logits: FloatArray, labels: IntArray) -> Derivatives:
        if logits.shape[1] != 2:
            return super()._derivatives(logits, labels)
        moved = self._moved(logits)
        odds = moved[:, 1] - moved[:, 0]
        p, q = expit(odds), expit(-odds)  # both are exact where the other rounds to 1
        gradient = np.where(labels == 1, -q, p)
        return np.column_stack([-gradient, gradient]), np.column_stack([p * q] * 2)


class InverseFocalObjective(FocalObjective):
    r"""Inverse focal loss $-(1 + p_y)^\gamma \log p_y$; see `calibrant.losses.inverse_focal_loss`.

    Parameters
    ----------
    gamma : from 0 to 5; above 1.615 a warning is given
    weight, reduction : see `Objective`
    """

    name: ClassVar[str] = "inverse_focal"

    def __init__(
        self, gamma: float = 1.0, *, weight: Any = None, reduction: Reduction = "mean"
    ) -> None:
        check_inverse_gamma(gamma)
        super().__init__(-gamma, weight=weight, reduction=reduction)
        if gamma > MAX_CALIBRATED_GAMMA:
            warnings.warn(
                f"inverse focal loss with gamma {gamma:g} pushes predictions away from a true "
                f"coin flip: use at most {MAX_CALIBRATED_GAMMA:g} unless you reproduce a paper.",
                stacklevel=2,
            )

    def _options(self) -> dict[str, Any]:
        return {"gamma": -self.gamma}


class FLSDObjective(FocalObjective):
    """Focal loss whose gamma depends on the probability of the true class; see `flsd_loss`.

    Parameters
    ----------
    gammas : gamma of each step of the true class's probability, one more than `edges`
    edges : rising probabilities inside (0, 1) between the steps
    weight, reduction : see `Objective`
    """

    name: ClassVar[str] = "flsd"

    def __init__(
        self,
        gammas: Sequence[float] = (5.0, 3.0, 3.0),
        edges: Sequence[float] = (0.2, 0.5),
        *,
        weight: Any = None,
        reduction: Reduction = "mean",
    ) -> None:
        check_steps(gammas, edges)
        super().__init__(1.0, weight=weight, reduction=reduction)
        self.gammas, self.edges = tuple(gammas), tuple(edges)
        self._odds = np.array([math.log(edge / (1.0 - edge)) for edge in edges])

    def log_shift(self) -> FloatArray | None:
        """Return None: the shift is unknown."""
        return None

    def _gamma_of(self, odds: FloatArray) -> Gamma:
        steps = np.searchsorted(self._odds, odds, side="right")
        return np.asarray(np.array(self.gammas, dtype=np.float64)[steps])

    def _options(self) -> dict[str, Any]:
        return {"gammas": list(self.gammas), "edges": list(self.edges)}


class LogitAdjustmentObjective(CrossEntropyObjective):
    """Cross-entropy with the log-prior added to the logits; see `logit_adjustment_loss`.

    Parameters
    ----------
    class_counts : (K,) train rows of each class
    tau : strength of the adjustment, at least 0
    weight, reduction : see `Objective`
    """

    name: ClassVar[str] = "logit_adjustment"
    is_cross_entropy = False

    def __init__(
        self,
        class_counts: FloatArray,
        *,
        tau: float = 1.0,
        weight: Any = None,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(weight=weight, reduction=reduction)
        check_gamma(tau, low=0.0, name="tau")
        self.tau = tau
        self.added = tau * log_prior(np.asarray(class_counts, dtype=np.float64))

    def start(self, counts: FloatArray) -> FloatArray:
        """Return logits (K,) from which boosting starts."""
        return np.asarray(super().start(counts) - self.added)

    def log_shift(self) -> FloatArray:
        """Return the constant to subtract from the logits for the posterior of the train rows."""
        return -self.added if self.weight is None else log_weight(self.weight) - self.added

    def _moved(self, logits: FloatArray) -> FloatArray:
        return np.asarray(logits + self.added)

    def _options(self) -> dict[str, Any]:
        return {"tau": self.tau, "added": self.added.tolist()}


class BalancedSoftmaxObjective(LogitAdjustmentObjective):
    """Cross-entropy with class counts inside the softmax; see `balanced_softmax_loss`."""

    name: ClassVar[str] = "balanced_softmax"

    def __init__(
        self, class_counts: FloatArray, *, weight: Any = None, reduction: Reduction = "mean"
    ) -> None:
        super().__init__(class_counts, weight=weight, reduction=reduction)


def true_odds(logits: FloatArray, labels: IntArray) -> tuple[FloatArray, FloatArray | None]:
    r"""Return the log-odds (n,) of the true class, and the shares (n, K) of all others.

    $$ d_i = z_{iy} - \log \sum_{k \ne y} e^{z_{ik}}, \qquad
       s_{ik} = e^{z_{ik}} / \sum_{j \ne y} e^{z_{ij}} $$

    For two classes the shares are None: the other class has all of it.

    Examples
    --------
    >>> true_odds(np.array([[100.0, 0.0], [1.0, 3.0]]), np.array([0, 0]))
    (array([100.,  -2.]), None)
    """
    if logits.shape[1] == 2:
        odds = logits[:, 1] - logits[:, 0]
        return np.where(labels == 1, odds, -odds), None
    rows = np.arange(len(labels))
    others = logits.copy()
    others[rows, labels] = -np.inf
    largest = others.max(axis=1)
    shares = np.exp(others - largest[:, None])
    total = shares.sum(axis=1)
    shares /= total[:, None]
    return np.asarray(logits[rows, labels] - largest - np.log(total)), shares


def focal_values(odds: FloatArray, gamma: Gamma) -> FloatArray:
    """Return focal loss as a function of the true class's log-odds."""
    log_p = log_sigmoid(odds)
    if np.ndim(gamma) == 0 and gamma == 0:
        return -log_p
    log_base = np.where(np.less(gamma, 0), np.log1p(np.exp(log_p)), log_p - odds)
    return np.asarray(-np.exp(np.abs(gamma) * log_base) * log_p)


def focal_slopes(odds: FloatArray, gamma: Gamma) -> Derivatives:
    r"""Return the first derivative (n,) of focal loss by the log-odds, and a positive second one.

    With p the probability of the true class and q = 1 - p, the derivatives are

    $$ L' = -q^\gamma (q - \gamma p \log p), \qquad
       L'' = p q^\gamma \big(q (1 + 2 \gamma) + \gamma (q - \gamma p) \log p\big) $$

    and those of inverse focal loss with b = 1 + p

    $$ L' = -b^{\gamma - 1} q (b + \gamma p \log p), \quad
       L'' = p q b^{\gamma - 2} \big(b (b - 2 \gamma q) - \gamma (b (q - p) + (\gamma - 1) p q)
       \log p\big) $$

    L'' is negative for a row that is far on the wrong side. Instead of it, at least $p |L'|$ is
    returned, the second derivative of cross-entropy weighted such that its first is L'.

    Examples
    --------
    >>> slope, curvature = focal_slopes(np.array([0.0, -6.0]), 2.0)
    >>> slope.round(4).tolist(), curvature.round(4).tolist()
    ([-0.2983, -1.0221], [0.3991, 0.0025])
    """
    log_p = log_sigmoid(odds)
    log_q = log_p - odds  # exact also where p rounds to 1
    p, q = np.exp(log_p), np.exp(log_q)
    inverse = np.less(gamma, 0)
    if not inverse.any():
        slope, curvature = _focal(log_p, p, q, np.exp(gamma * log_q), gamma)
    elif inverse.all():
        slope, curvature = _inverse(log_p, p, q, -gamma)
    else:
        focal = np.maximum(gamma, 0.0)
        ways = (
            _inverse(log_p, p, q, np.maximum(-gamma, 0.0)),
            _focal(log_p, p, q, np.exp(focal * log_q), focal),
        )
        slope, curvature = (np.where(inverse, *pair) for pair in zip(*ways, strict=True))
    return slope, np.maximum(curvature, p * np.abs(slope))


def _focal(
    log_p: FloatArray, p: FloatArray, q: FloatArray, power: FloatArray, gamma: Gamma
) -> Derivatives:
    eased = q - gamma * p * log_p
    curvature = p * power * (q * (1.0 + 2.0 * gamma) + gamma * (q - gamma * p) * log_p)
    return -power * eased, curvature


def _inverse(log_p: FloatArray, p: FloatArray, q: FloatArray, gamma: Gamma) -> Derivatives:
    base = 1.0 + p
    power = base ** (gamma - 2.0)
    slope = -base * power * q * (base + gamma * p * log_p)
    bent = gamma * (base * (q - p) + (gamma - 1.0) * p * q) * log_p
    return slope, p * q * power * (base * (base - 2.0 * gamma * q) - bent)
