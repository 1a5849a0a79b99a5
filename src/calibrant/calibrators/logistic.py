"""The fit shared by Platt, beta and quadratic scaling: logistic regression on a few features."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from calibrant.inputs import FloatArray

__all__ = ["fit_logistic", "platt_targets"]

_RIDGE = 1e-10
"""Decides between maps that fit equally well, as on constant scores, without being felt."""

_MOST_STEPS = 200
_GAIN = 1e-15


def platt_targets(
    events: NDArray[np.bool_], weights: FloatArray | None, *, smooth: bool
) -> FloatArray:
    r"""Return Platt's targets instead of 1 and 0.

    .. math:: t_+ = (N_+ + 1) / (N_+ + 2), \qquad t_- = 1 / (N_- + 2)

    :math:`N_\pm` count the events and the others. It is Laplace's rule of succession: separated
    labels no longer pull the map to infinity. Without `smooth` the targets are 1 and 0.
    """
    if not smooth:
        return events.astype(np.float64)
    each = np.ones(len(events)) if weights is None else weights
    up = float(each[events].sum())
    down = float(each.sum()) - up
    return np.where(events, (up + 1.0) / (up + 2.0), 1.0 / (down + 2.0))


def fit_logistic(
    features: FloatArray,
    targets: FloatArray,
    weights: FloatArray | None,
    *,
    start: FloatArray,
    lowest: FloatArray,
) -> FloatArray:
    r"""Minimise the NLL of :math:`\sigma(\Phi \theta)` subject to :math:`\theta \geq` `lowest`.

    Newton's method on the free coefficients. The problem is convex with few coefficients, so the
    constrained optimum is found by fixing those that end below their bound, one after the other,
    and setting one free again when the slope says so.

    Parameters
    ----------
    features : (n, d)
    targets : (n,) between 0 and 1
    weights : (n,) or None
    start : (d,) the coefficients of the identity map, which a tiny ridge prefers
    lowest : (d,) lower bounds, -inf where there is none
    """
    size = np.maximum(np.abs(features).max(axis=0), 1e-300)
    problem = _Logistic(features / size, targets, weights, start * size)
    bounds = lowest * size
    theta = np.maximum(problem.start, bounds)
    free = np.ones(len(theta), dtype=bool)
    for _ in range(4 * len(theta)):
        theta = problem.minimise(theta, free)
        low = free & (theta < bounds)
        if low.any():
            free[np.flatnonzero(low)[0]] = False
            theta = np.where(free, theta, bounds)
            continue
        pulled = ~free & (problem.slope(theta) < -1e-12)
        if not pulled.any():
            break
        free[np.flatnonzero(pulled)[0]] = True
    return np.asarray(np.maximum(theta, bounds) / size)


class _Logistic:
    """The objective in scaled coefficients, with a ridge towards the start."""

    def __init__(
        self, x: FloatArray, targets: FloatArray, weights: FloatArray | None, start: FloatArray
    ) -> None:
        self.x, self.targets, self.start = x, targets, start
        each = np.ones(len(x)) if weights is None else weights
        self.mass = each / each.sum()

    def value(self, theta: FloatArray) -> float:
        eta = self.x @ theta
        # log(1 + e^eta) - t eta, in a form that neither overflows nor cancels.
        loss = np.logaddexp(0.0, -np.abs(eta)) + np.maximum(eta, 0.0) - self.targets * eta
        away = theta - self.start
        return float((self.mass * loss).sum() + 0.5 * _RIDGE * (away * away).sum())

    def slope(self, theta: FloatArray) -> FloatArray:
        slack = self.mass * (_sigmoid(self.x @ theta) - self.targets)
        return np.asarray(self.x.T @ slack + _RIDGE * (theta - self.start))

    def curvature(self, theta: FloatArray) -> FloatArray:
        p = _sigmoid(self.x @ theta)
        bent: FloatArray = (self.x * (self.mass * p * (1.0 - p))[:, None]).T @ self.x
        return bent + _RIDGE * np.eye(len(theta))

    def minimise(self, theta: FloatArray, free: NDArray[np.bool_]) -> FloatArray:
        """Take Newton steps in the free coefficients, halved until they help."""
        if not free.any():
            return theta
        value = self.value(theta)
        for _ in range(_MOST_STEPS):
            slope = self.slope(theta)[free]
            step = np.linalg.solve(self.curvature(theta)[np.ix_(free, free)], slope)
            promised = 0.5 * float(slope @ step)
            share = 1.0
            while share > 1e-12:
                there = theta.copy()
                there[free] -= share * step
                reached = self.value(there)
                if reached <= value - 0.5 * share * promised:
                    break
                share /= 2.0
            if share <= 1e-12 or promised < _GAIN:
                return theta
            theta, value = there, reached
        return theta


def _sigmoid(eta: FloatArray) -> FloatArray:
    e = np.exp(-np.abs(eta))
    return np.where(eta >= 0, 1.0, e) / (1.0 + e)
