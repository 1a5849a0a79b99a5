"""Constrained logistic regression shared by Platt, beta and quadratic scaling."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from calibrant.errors import InputError
from calibrant.inputs import FloatArray

Shrink = Literal["identity", "platt"] | None  # Regularisation of the fit: see `PlattScaling`

_MAX_STEPS = 200
_MIN_GAIN = 1e-15  # Stop when the predicted decrease of the NLL is below this

_CONSTANT = 1e-13  # A feature that varies by less than this share of its size counts as constant

_SINGULAR = 1e-12
"""Directions with less than this share of the curvature are undetermined and not changed."""


def penalty_strength(shrink: Shrink) -> float:
    """Return the strength of the penalty towards the identity."""
    if shrink not in ("identity", "platt", None):
        raise InputError(f"shrink must be 'identity', 'platt' or None, got {shrink!r}.")
    return 1.0 if shrink == "identity" else 0.0


def regression_targets(
    events: NDArray[np.bool_], weights: FloatArray | None, shrink: Shrink
) -> FloatArray:
    """Return Platt's targets if `shrink` is 'platt', else 1 and 0."""
    return platt_targets(events, weights, smooth=shrink == "platt")


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
    row_weights = np.ones(len(events)) if weights is None else weights
    positives = float(row_weights[events].sum())
    negatives = float(row_weights.sum()) - positives
    return np.where(events, (positives + 1.0) / (positives + 2.0), 1.0 / (negatives + 2.0))


def fit_logistic(
    features: FloatArray,
    targets: FloatArray,
    weights: FloatArray | None,
    *,
    start: FloatArray,
    lowest: FloatArray,
    strength: float = 0.0,
) -> FloatArray:
    r"""Minimise the NLL of :math:`\sigma(\Phi \theta)` subject to :math:`\theta \geq` `lowest`.

    With a `strength`, the NLL plus `strength` / N times the squared distance from `start`, N the
    number of rows (the sum of the weights).

    Newton's method on the free coefficients starts from the constant map, where the curvature does
    not vanish. The problem is convex with few coefficients, so the constrained optimum is found by
    an active-set method: fix coefficients that end below their bound, one after the other, and
    release one when its gradient points inwards. If all scores are equal the slope is undetermined
    and keeps its value in `start`.
    """
    problem = _Logistic(features, targets, weights)
    problem.pull_towards(start, strength)
    bounds = lowest * problem.size
    constant = problem.constant_map(problem.scaled(start))
    free = np.ones(len(constant), dtype=bool)
    for _ in range(4 * len(constant)):
        # Restart from the constant map: the previous optimum can be a poor starting point.
        theta = problem.minimise(np.where(free, np.maximum(constant, bounds), bounds), free)
        below = free & (theta < bounds)
        if below.any():
            free[np.flatnonzero(below)[0]] = False
            continue
        slope, curvature = problem.slope(theta), problem.curvature(theta).diagonal()
        released = ~free & (slope < 0) & (slope * slope > 2.0 * _MIN_GAIN * curvature)
        if not released.any():
            break
        free[np.flatnonzero(released)[0]] = True
    return problem.unscaled(np.maximum(theta, bounds))


class _Logistic:
    """The objective in coefficients of centred features scaled to 1."""

    def __init__(
        self, features: FloatArray, targets: FloatArray, weights: FloatArray | None
    ) -> None:
        row_weights = np.ones(len(features)) if weights is None else weights
        self.total = float(row_weights.sum())
        self.mass = row_weights / self.total
        self.targets = targets
        size = np.abs(features).max(axis=0)
        self.centre = np.zeros(len(size))
        self.has_intercept = bool((features[:, -1] == 1.0).all())
        if self.has_intercept:
            # With an intercept only differences matter, and centring keeps their precision. The
            # median, because outliers move the mean away from the other rows.
            self.centre[:-1] = np.median(features[:, :-1], axis=0)
        self.x = features - self.centre
        self.size = np.abs(self.x).max(axis=0)
        is_constant = self.size <= _CONSTANT * size
        self.x[:, is_constant] = 0.0
        self.size[is_constant] = 1.0
        self.x /= self.size

    def pull_towards(self, start: FloatArray, strength: float) -> None:
        """Add a penalty on the distance of the features' coefficients from `start`."""
        self.start, self.pull = start, strength / self.total
        self.unscale_matrix = np.column_stack([self.unscaled(row) for row in np.eye(len(start))])

    def scaled(self, theta: FloatArray) -> FloatArray:
        """Convert coefficients of the features to those of `x`."""
        out: FloatArray = theta * self.size
        if self.has_intercept:
            out[-1] += theta @ self.centre
        return out

    def unscaled(self, theta: FloatArray) -> FloatArray:
        """Convert coefficients of `x` to those of the features."""
        out: FloatArray = theta / self.size
        if self.has_intercept:
            out[-1] -= out @ self.centre
        return out

    def constant_map(self, start: FloatArray) -> FloatArray:
        """Return the map that predicts the mean target; where `x` is 0 keep the start."""
        out = np.where((self.x == 0.0).all(axis=0), start, 0.0)
        if self.has_intercept:
            mean = float(self.mass @ self.targets)
            out[-1] = np.log(mean) - np.log1p(-mean) if 0.0 < mean < 1.0 else 0.0
        return out

    def value(self, theta: FloatArray) -> float:
        eta = self.x @ theta
        # log(1 + e^eta) - t eta, in a form that neither overflows nor cancels.
        loss = np.logaddexp(0.0, -np.abs(eta)) + np.maximum(eta, 0.0) - self.targets * eta
        offset = self.unscale_matrix @ theta - self.start
        return float((self.mass * loss).sum() + self.pull * (offset @ offset))

    def slope(self, theta: FloatArray) -> FloatArray:
        residual = self.mass * (expit(self.x @ theta) - self.targets)
        offset = self.unscale_matrix @ theta - self.start
        return np.asarray(self.x.T @ residual + 2.0 * self.pull * (self.unscale_matrix.T @ offset))

    def curvature(self, theta: FloatArray) -> FloatArray:
        p = expit(self.x @ theta)
        hessian: FloatArray = (self.x * (self.mass * p * (1.0 - p))[:, None]).T @ self.x
        return hessian + 2.0 * self.pull * (self.unscale_matrix.T @ self.unscale_matrix)

    def minimise(self, theta: FloatArray, free: NDArray[np.bool_]) -> FloatArray:
        """Take Newton steps in the free coefficients, halved until they help."""
        if not free.any():
            return theta
        value = self.value(theta)
        for _ in range(_MAX_STEPS):
            slope = self.slope(theta)[free]
            step = _newton_step(self.curvature(theta)[np.ix_(free, free)], slope)
            expected = 0.5 * float(slope @ step)
            if expected < _MIN_GAIN:
                last = theta.copy()
                last[free] -= step
                return last if self.value(last) <= value + _MIN_GAIN else theta
            share = 1.0
            while share > 1e-12:
                candidate = theta.copy()
                candidate[free] -= share * step
                new_value = self.value(candidate)
                if new_value <= value - 0.5 * share * expected:
                    break
                share /= 2.0
            else:
                return theta
            theta, value = candidate, new_value
        return theta


def _newton_step(curvature: FloatArray, slope: FloatArray) -> FloatArray:
    """Solve for the step in units of each coefficient's own curvature."""
    unit = np.sqrt(curvature.diagonal())
    unit = np.where(unit > 0, unit, np.inf)
    values, vectors = np.linalg.eigh(curvature / unit / unit[:, None])
    determined = values > _SINGULAR
    coordinates = (vectors[:, determined].T @ (slope / unit)) / values[determined]
    return np.asarray((vectors[:, determined] @ coordinates) / unit)
