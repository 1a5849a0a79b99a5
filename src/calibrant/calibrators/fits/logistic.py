"""The fit shared by Platt, beta and quadratic scaling: logistic regression on a few features."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from calibrant.errors import InputError
from calibrant.inputs import FloatArray

__all__ = ["Shrink", "fit_logistic", "platt_targets", "strength_of", "targets_of"]

Shrink = Literal["identity", "platt"] | None
"""What keeps a fit on few rows in bounds: see `PlattScaling`."""

_MOST_STEPS = 200
_GAIN = 1e-15
"""A step that promises less NLL than this is the last one."""

_LEVEL = 1e-13
"""A feature that varies by less than this share of its size is constant but for rounding."""

_SINGULAR = 1e-12
"""Directions with less than this share of the curvature are left alone: nothing decides there."""


def strength_of(shrink: Shrink) -> float:
    """Return the strength of the pull towards the identity."""
    if shrink not in ("identity", "platt", None):
        raise InputError(f"shrink must be 'identity', 'platt' or None, got {shrink!r}.")
    return 1.0 if shrink == "identity" else 0.0


def targets_of(events: NDArray[np.bool_], weights: FloatArray | None, shrink: Shrink) -> FloatArray:
    """Return Platt's targets where they are asked for, else 1 and 0."""
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
    strength: float = 0.0,
) -> FloatArray:
    r"""Minimise the NLL of :math:`\sigma(\Phi \theta)` subject to :math:`\theta \geq` `lowest`.

    With a `strength`, the NLL plus `strength` / N times the squared distance from `start`, N the
    number of rows (the sum of the weights).

    Newton's method on the free coefficients, from the map that gives all rows the same answer: it
    bends there, which a map that is certain of everything does not. The problem is convex with few
    coefficients, so the constrained optimum is found by fixing those that end below their bound,
    one after the other, and setting one free again when the slope says so. Where all scores are
    equal nothing decides the slope, and it stays as it is in `start`.
    """
    problem = _Logistic(features, targets, weights)
    problem.pull_towards(start, strength)
    bounds = lowest * problem.size
    level = problem.level(problem.scaled(start))
    free = np.ones(len(level), dtype=bool)
    for _ in range(4 * len(level)):
        # Always from the level map: what was best before a coefficient was fixed may be hopeless.
        theta = problem.minimise(np.where(free, np.maximum(level, bounds), bounds), free)
        low = free & (theta < bounds)
        if low.any():
            free[np.flatnonzero(low)[0]] = False
            continue
        slope, bent = problem.slope(theta), problem.curvature(theta).diagonal()
        pulled = ~free & (slope < 0) & (slope * slope > 2.0 * _GAIN * bent)
        if not pulled.any():
            break
        free[np.flatnonzero(pulled)[0]] = True
    return problem.unscaled(np.maximum(theta, bounds))


class _Logistic:
    """The objective in coefficients of features that are centred and of size 1."""

    def __init__(
        self, features: FloatArray, targets: FloatArray, weights: FloatArray | None
    ) -> None:
        each = np.ones(len(features)) if weights is None else weights
        self.total = float(each.sum())
        self.mass = each / self.total
        self.targets = targets
        size = np.abs(features).max(axis=0)
        self.centre = np.zeros(len(size))
        self.shifts = bool((features[:, -1] == 1.0).all())
        if self.shifts:
            # Beside an intercept only differences count; far from 0 they would be lost. The median
            # because a few rows far out move the mean away from all others.
            self.centre[:-1] = np.median(features[:, :-1], axis=0)
        self.x = features - self.centre
        self.size = np.abs(self.x).max(axis=0)
        level = self.size <= _LEVEL * size
        self.x[:, level] = 0.0
        self.size[level] = 1.0
        self.x /= self.size

    def pull_towards(self, start: FloatArray, strength: float) -> None:
        """Add a penalty on the distance of the features' coefficients from `start`."""
        self.start, self.pull = start, strength / self.total
        self.back = np.column_stack([self.unscaled(row) for row in np.eye(len(start))])

    def scaled(self, theta: FloatArray) -> FloatArray:
        """Turn coefficients of the features into those of `x`."""
        out: FloatArray = theta * self.size
        if self.shifts:
            out[-1] += theta @ self.centre
        return out

    def unscaled(self, theta: FloatArray) -> FloatArray:
        """Turn coefficients of `x` into those of the features."""
        out: FloatArray = theta / self.size
        if self.shifts:
            out[-1] -= out @ self.centre
        return out

    def level(self, start: FloatArray) -> FloatArray:
        """Return the map that gives all rows the mean target; where `x` is 0 keep the start."""
        out = np.where((self.x == 0.0).all(axis=0), start, 0.0)
        if self.shifts:
            mean = float(self.mass @ self.targets)
            out[-1] = np.log(mean) - np.log1p(-mean) if 0.0 < mean < 1.0 else 0.0
        return out

    def value(self, theta: FloatArray) -> float:
        eta = self.x @ theta
        # log(1 + e^eta) - t eta, in a form that neither overflows nor cancels.
        loss = np.logaddexp(0.0, -np.abs(eta)) + np.maximum(eta, 0.0) - self.targets * eta
        away = self.back @ theta - self.start
        return float((self.mass * loss).sum() + self.pull * (away @ away))

    def slope(self, theta: FloatArray) -> FloatArray:
        slack = self.mass * (expit(self.x @ theta) - self.targets)
        away = self.back @ theta - self.start
        return np.asarray(self.x.T @ slack + 2.0 * self.pull * (self.back.T @ away))

    def curvature(self, theta: FloatArray) -> FloatArray:
        p = expit(self.x @ theta)
        bent: FloatArray = (self.x * (self.mass * p * (1.0 - p))[:, None]).T @ self.x
        return bent + 2.0 * self.pull * (self.back.T @ self.back)

    def minimise(self, theta: FloatArray, free: NDArray[np.bool_]) -> FloatArray:
        """Take Newton steps in the free coefficients, halved until they help."""
        if not free.any():
            return theta
        value = self.value(theta)
        for _ in range(_MOST_STEPS):
            slope = self.slope(theta)[free]
            step = _newton_step(self.curvature(theta)[np.ix_(free, free)], slope)
            promised = 0.5 * float(slope @ step)
            if promised < _GAIN:
                last = theta.copy()
                last[free] -= step
                return last if self.value(last) <= value + _GAIN else theta
            share = 1.0
            while share > 1e-12:
                there = theta.copy()
                there[free] -= share * step
                reached = self.value(there)
                if reached <= value - 0.5 * share * promised:
                    break
                share /= 2.0
            else:
                return theta
            theta, value = there, reached
        return theta


def _newton_step(curvature: FloatArray, slope: FloatArray) -> FloatArray:
    """Solve for the step in units of each coefficient's own curvature."""
    unit = np.sqrt(curvature.diagonal())
    unit = np.where(unit > 0, unit, np.inf)
    values, vectors = np.linalg.eigh(curvature / unit / unit[:, None])
    decided = values > _SINGULAR
    along = (vectors[:, decided].T @ (slope / unit)) / values[decided]
    return np.asarray((vectors[:, decided] @ along) / unit)
