"""L-BFGS for a linear layer: one product with the rows for a direction, none along it."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from calibrant.inputs import FloatArray
from calibrant.training.linear_basis import Basis

LossOnLogits = Callable[[FloatArray], tuple[float, FloatArray]]
"""Returns the loss of logits (n, K) and its gradient (n, K)."""

_HISTORY = 10
_HISTORY_BYTES = 2**30
"""Past steps that are kept, and the memory that they may take."""

_DECREASE, _CURVATURE = 1e-4, 0.9
"""Constants of Wolfe's conditions."""

_MAX_TRIES = 30
_NOISE = 1e-13
"""Relative decrease that rounding explains."""


@dataclass(frozen=True, eq=False)
class Point:
    """Weights in the coordinates of a basis, and the bias (K,)."""

    weights: FloatArray
    bias: FloatArray

    def plus(self, factor: float, other: Point) -> Point:
        """Return this point plus a multiple of another."""
        return Point(self.weights + factor * other.weights, self.bias + factor * other.bias)

    def times(self, factor: float) -> Point:
        """Return a multiple of this point."""
        return Point(factor * self.weights, factor * self.bias)


@dataclass(frozen=True, eq=False)
class SmoothObjective:
    """Loss of the logits X W + b plus penalty / 2 times the squared length of W."""

    basis: Basis
    loss: LossOnLogits
    penalty: float

    def dot(self, one: Point, other: Point) -> float:
        """Return the inner product of two points."""
        return self.basis.dot(one.weights, other.weights) + float(np.vdot(one.bias, other.bias))

    def gradient(self, point: Point, on_logits: FloatArray) -> Point:
        """Return the gradient at a point from that on its logits."""
        lifted = self.basis.lift(on_logits)
        return Point(lifted + self.penalty * point.weights, on_logits.sum(axis=0))

    def penalty_at(self, point: Point) -> float:
        """Return the penalty of a point."""
        return 0.5 * self.penalty * self.basis.dot(point.weights, point.weights)

    def logits(self, point: Point) -> FloatArray:
        """Return the logits (n, K) of the train rows."""
        return self.basis.logits(point.weights) + point.bias


@dataclass(frozen=True, eq=False)
class Minimum:
    """Where L-BFGS ended.

    Parameters
    ----------
    point : weights and bias
    loss : their loss, without the penalty
    steps : steps that were taken
    """

    point: Point
    loss: float
    steps: int


@dataclass(frozen=True, eq=False)
class _State:
    """A point with its logits, objective, gradient on the logits, and gradient."""

    point: Point
    logits: FloatArray
    value: float
    on_logits: FloatArray
    gradient: Point


@dataclass(frozen=True, eq=False)
class _Change:
    """A past step: the change of point and gradient, and their inner product."""

    point: Point
    gradient: Point
    product: float


def minimise(objective: SmoothObjective, start: Point, *, length: float, max_steps: int) -> Minimum:
    """Minimise an objective until its gradient is shorter than `length`."""
    state = _evaluate(objective, start)
    size = 2 * (start.weights.nbytes + start.bias.nbytes)
    history: deque[_Change] = deque(maxlen=min(max(_HISTORY_BYTES // size, 3), _HISTORY))
    steps = 0
    while steps < max_steps and objective.dot(state.gradient, state.gradient) > length * length:
        direction = _find_direction(objective, state.gradient, history)
        new = _search(objective, state, direction, first=not history)
        if new is None:
            if not history:
                break  # rounding hides any further decrease
            history.clear()
            continue
        change = new.point.plus(-1.0, state.point)
        turn = new.gradient.plus(-1.0, state.gradient)
        product = objective.dot(change, turn)
        if product > 0.0:
            history.append(_Change(change, turn, product))
        stalled = state.value - new.value <= _NOISE * abs(state.value)
        state, steps = new, steps + 1
        if stalled:
            break
    return Minimum(state.point, state.value - objective.penalty_at(state.point), steps)


def _evaluate(objective: SmoothObjective, point: Point) -> _State:
    logits = objective.logits(point)
    value, on_logits = objective.loss(logits)
    value += objective.penalty_at(point)
    return _State(point, logits, value, on_logits, objective.gradient(point, on_logits))


def _find_direction(objective: SmoothObjective, gradient: Point, history: deque[_Change]) -> Point:
    """Return the direction of L-BFGS, by its two loops over past steps."""
    direction, factors = gradient, []
    for change in reversed(history):
        factor = objective.dot(change.point, direction) / change.product
        direction = direction.plus(-factor, change.gradient)
        factors.append(factor)
    if history:
        last = history[-1]
        direction = direction.times(last.product / objective.dot(last.gradient, last.gradient))
    for change, factor in zip(history, reversed(factors), strict=True):
        back = objective.dot(change.gradient, direction) / change.product
        direction = direction.plus(factor - back, change.point)
    return direction.times(-1.0)


def _search(
    objective: SmoothObjective, state: _State, direction: Point, *, first: bool
) -> _State | None:
    """Return a state along a direction that meets Wolfe's conditions; None without decrease.

    Logits and penalty are known along the line, so trying a step needs no product with the rows.
    """
    basis, penalty = objective.basis, objective.penalty
    slope = objective.dot(state.gradient, direction)
    if slope >= 0.0:
        return None
    line = objective.logits(direction)
    cross = penalty * basis.dot(state.point.weights, direction.weights)
    square = penalty * basis.dot(direction.weights, direction.weights)
    own = objective.penalty_at(state.point)
    low, high, accepted = 0.0, math.inf, None
    step = 1.0 / math.sqrt(-slope) if first else 1.0
    for _ in range(_MAX_TRIES):
        logits = state.logits + step * line
        value, on_logits = objective.loss(logits)
        rise = value - state.value + step * (cross + 0.5 * step * square)
        rise += own
        if not rise <= _DECREASE * step * slope:  # also NaN
            high, step = step, _shorten(step, low, rise, slope)
            continue
        accepted = (step, logits, state.value + rise, on_logits)
        if float(np.vdot(on_logits, line)) + cross + step * square >= _CURVATURE * slope:
            break
        low, step = step, 2.0 * step if high == math.inf else 0.5 * (step + high)
    if accepted is None:
        return None
    step, logits, value, on_logits = accepted
    point = state.point.plus(step, direction)
    return _State(point, logits, value, on_logits, objective.gradient(point, on_logits))


def _shorten(step: float, low: float, rise: float, slope: float) -> float:
    """Return a shorter step: the minimum of a parabola, or the middle of the bracket."""
    if low > 0.0 or not math.isfinite(rise):
        return 0.5 * (low + step)
    parabola = -0.5 * slope * step * step / (rise - slope * step)
    return min(max(parabola, 0.1 * step), 0.5 * step)
