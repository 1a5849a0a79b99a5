"""Base class of objectives: losses with their derivatives by the logits, in numpy."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np

from calibrant.errors import InputError
from calibrant.fitting.class_weights import log_prior, log_weight
from calibrant.fitting.gamma_history import GammaHistory
from calibrant.inputs import FloatArray, IntArray

Reduction = Literal["mean", "sum"]
Derivatives = tuple[FloatArray, FloatArray]
"""Gradient and diagonal of the Hessian, each (n, K)."""

_LEAST = 1e-16
"""Smallest second derivative, so that every row counts."""

_NEWTON_STEPS, _HALVINGS, _CLOSE = 100, 20, 1e-12
"""Most steps of `find_start`, most halvings of a step, and the least relative gain of a step."""


class Objective:
    """A loss of `(logits, labels)` whose derivatives are known.

    Gradients are exact. Second derivatives are exact where that is positive and safe, and otherwise
    a positive number: a Newton step divides by their sum, and focal losses are not convex.

    Parameters
    ----------
    weight : (K,) weight of each class
    reduction : "mean" or "sum"; the trees are the same, because both derivatives scale alike
    """

    name: ClassVar[str] = ""
    steered: ClassVar[bool] = False
    is_cross_entropy = False
    update_every: int | None = None  # rounds between updates; None for one at each evaluation

    def __init__(self, *, weight: Any = None, reduction: Reduction = "mean") -> None:
        if reduction not in ("mean", "sum"):
            raise InputError(f"reduction must be 'mean' or 'sum', got {reduction!r}.")
        self.weight = None if weight is None else _check_weight(weight)
        self.reduction = reduction

    def values(self, logits: FloatArray, labels: IntArray) -> FloatArray:
        """Return the loss (n,) of each row, without its weight."""
        raise NotImplementedError

    def mean(self, logits: FloatArray, labels: IntArray) -> float:
        """Return the mean over rows by their weights, or the sum."""
        values, weights = self.values(logits, labels), self.row_weights(labels)
        if self.reduction == "sum":
            return float(values.sum() if weights is None else values @ weights)
        return float(np.average(values, weights=weights))

    def derivatives(self, logits: FloatArray, labels: IntArray) -> Derivatives:
        """Return gradient and diagonal of the Hessian of each row's loss, times its weight."""
        gradient, hessian = self._derivatives(logits, labels)
        weights = self.row_weights(labels)
        if weights is not None:
            gradient, hessian = gradient * weights[:, None], hessian * weights[:, None]
        return gradient, np.maximum(hessian, _LEAST)

    def row_weights(self, labels: IntArray) -> FloatArray | None:
        """Return the weight (n,) of each row; None if there are no class weights."""
        return None if self.weight is None else self.weight[labels]

    def start(self, counts: FloatArray) -> FloatArray:
        """Return logits (K,) from which boosting starts: the log-prior, with class weights."""
        prior = log_prior(counts)
        return prior if self.weight is None else prior + log_weight(self.weight)

    def log_shift(self) -> FloatArray | None:
        """Return the (K,) constant by which the loss shifts the logits of a perfect model.

        None if there is no shift, or no such constant.
        """
        return None

    @property
    def has_unknown_shift(self) -> bool:
        """Whether class weights shift a perfect model by an unknown amount."""
        weighted = self.weight is not None and bool((self.weight != self.weight[0]).any())
        return weighted and self.log_shift() is None

    @property
    def gammas_range(self) -> tuple[float, float] | None:
        """Smallest and largest gamma, if the loss updates them."""
        return None

    @property
    def history(self) -> GammaHistory | None:
        """History of the gammas, if the loss updates them."""
        return None

    def update(self, logits: FloatArray, labels: IntArray) -> None:
        """Update the state from the steer rows."""

    def to_dict(self) -> dict[str, Any]:
        """Return name and options as JSON values."""
        weight = None if self.weight is None else self.weight.tolist()
        return {"name": self.name, "weight": weight, **self._options()}

    def _options(self) -> dict[str, Any]:
        return {}

    def _derivatives(self, logits: FloatArray, labels: IntArray) -> Derivatives:
        raise NotImplementedError


def find_start(objective: Objective, counts: FloatArray) -> FloatArray:
    r"""Return the logits (K,) of the constant prediction with the smallest loss.

    That of cross-entropy is the log-prior. A focal loss is larger there than at less extreme
    logits. From the log-prior its first trees would find no split, because the rows of rare classes
    have all of the gradient. Newton steps, each halved until the loss falls.

    Examples
    --------
    >>> from calibrant.boosting.focal import FocalObjective
    >>> probs = np.exp(find_start(FocalObjective(gamma=2), np.array([98.0, 2.0])))
    >>> (probs / probs.sum()).round(3).tolist()
    [0.81, 0.19]
    """
    start = objective.start(counts)
    if not counts.all():  # the best logit of a class without rows is minus infinity
        return start
    labels = np.arange(len(counts))
    weights = objective.row_weights(labels)
    shares = counts if weights is None else counts * weights

    def loss(logits: FloatArray) -> float:
        return float(shares @ objective.values(np.tile(logits, (len(counts), 1)), labels))

    best = loss(start)
    for _ in range(_NEWTON_STEPS):
        gradient, hessian = objective.derivatives(np.tile(start, (len(counts), 1)), labels)
        step = (counts @ gradient) / (counts @ hessian)
        step *= 0.5 if len(counts) == 2 else 1.0  # each of two logits takes half of it
        for _ in range(_HALVINGS):
            reached = loss(start - step)
            if reached < best * (1.0 - _CLOSE):
                break
            step = 0.5 * step
        else:
            return start
        start, best = start - step, reached
    return start


def softmax_derivatives(probs: FloatArray, target: FloatArray) -> Derivatives:
    """Return the derivatives of cross-entropy against target shares (n, K)."""
    return probs - target, class_factor(probs.shape[1]) * probs * (1.0 - probs)


def class_factor(n_classes: int) -> float:
    """Return K / (K - 1), or 1 for the single score of two classes.

    A tree for each class follows the diagonal of the Hessian alone. The factor makes up for the
    rest of it, see Friedman (2001), Greedy function approximation, section 4.6; LightGBM has it.
    """
    return 1.0 if n_classes == 2 else n_classes / (n_classes - 1.0)


def _check_weight(weight: Any) -> FloatArray:
    numbers = isinstance(weight, Sequence | np.ndarray) and not isinstance(weight, str)
    if numbers and all(isinstance(w, Real) and not isinstance(w, bool) for w in weight):
        values = np.asarray(weight, dtype=np.float64)
        if values.ndim == 1 and np.isfinite(values).all() and (values >= 0).all() and values.any():
            return values
    raise InputError(
        f"weight must be one finite number of at least 0 per class, got {weight!r:.200}."
    )
