"""A linear layer under any loss: L-BFGS on the weights, with an L2 penalty."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from calibrant.errors import InputError, TrainingError
from calibrant.inputs import FloatArray, IntArray
from calibrant.losses import as_loss
from calibrant.losses.base import RowLoss
from calibrant.losses.function import check_value
from calibrant.losses.names import LossLike
from calibrant.losses.sums import LossSum
from calibrant.training.job import read_weighing
from calibrant.training.lbfgs import Minimum, Point, SmoothObjective, minimise
from calibrant.training.linear_basis import Basis, Features, choose_basis

TOLERANCE = 1e-4
"""Length of the gradient, relative to that of weights of 0, at which the solver stops."""

MAX_STEPS = 500
_PART = 1024
"""Rows that a loss of a whole batch is computed on at a time."""


@dataclass(frozen=True, eq=False)
class LinearLayer:
    """Weights of a linear layer.

    Parameters
    ----------
    weights : (F, K) W of the logits X W + b
    bias : (K,) b
    """

    weights: NDArray[Any]
    bias: NDArray[Any]

    def logits(self, features: Features) -> FloatArray:
        """Return X W + b (n, K)."""
        return np.asarray(features @ self.weights + self.bias, dtype=np.float64)


def fit_linear(
    features: Features,
    labels: IntArray,
    *,
    loss: LossLike = "ce",
    C: float = 1.0,  # noqa: N803  # as scikit-learn calls it
    n_classes: int | None = None,
    tolerance: float = TOLERANCE,
    max_steps: int = MAX_STEPS,
) -> LinearLayer:
    r"""Fit a linear layer with an L2 penalty under any loss.

    $$
    \min_{W, b} \; \frac{1}{n} \sum_i l(z_i, y_i) + \frac{1}{2 C n} \|W\|^2, \qquad
    z_i = W^\top x_i + b
    $$

    - $l$ : the loss of a row; for a loss of a whole batch (MMCE, soft F1) the mean over parts of
      about 1,024 rows
    - $n$ : number of rows
    - $C$ : inverse strength of the penalty. With two classes the penalty is twice as strong, that
      of one column of weights for the log-odds. Cross-entropy then has the solution of
      scikit-learn's `LogisticRegression` with the same C

    The solver is L-BFGS with Wolfe's conditions: with a loss that is not convex it ends at a local
    minimum. It does not call `update` of a steered loss (AdaFocal), see `fit_linear_path`.

    Parameters
    ----------
    features : (n, F) numbers: a SciPy CSR matrix or an array, in single or double precision
    labels : (n,) classes 0 .. K - 1
    loss : see `calibrant.losses.as_loss`
    C : inverse strength of the penalty, above 0
    n_classes : K; None for the largest label plus 1
    tolerance : length of the gradient, relative to that of weights of 0, at which to stop
    max_steps : maximum number of steps

    Examples
    --------
    >>> features = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> layer = fit_linear(features, np.array([0, 0, 1, 1]), loss="focal:gamma=1", C=10.0)
    >>> layer.logits(features).argmax(axis=1).tolist()
    [0, 0, 1, 1]

    References
    ----------
    Liu and Nocedal (1989), On the limited memory BFGS method for large scale optimization.
    """
    codes = np.asarray(labels, dtype=np.int64)
    count = int(codes.max()) + 1 if n_classes is None else n_classes
    module = as_loss(loss, class_counts=torch.bincount(torch.from_numpy(codes), minlength=count))
    problem = LinearProblem(features, codes, count)
    minimum = problem.minimise(module, C=C, tolerance=tolerance, max_steps=max_steps)
    return problem.layer(minimum.point)


class LinearProblem:
    """Train rows of a linear layer; `minimise` is called with several losses and penalties.

    Parameters
    ----------
    features, labels : train rows, see `fit_linear`
    n_classes : K
    basis : coordinates of the weights; None for the smaller ones
    """

    def __init__(
        self,
        features: Features,
        labels: IntArray,
        n_classes: int,
        basis: Callable[[Features], Basis] = choose_basis,
    ) -> None:
        if features.shape[0] != len(labels):
            raise InputError(
                f"labels must hold one class for each row of features, got {len(labels)} for "
                f"{features.shape[0]} rows."
            )
        self.labels = torch.from_numpy(np.asarray(labels, dtype=np.int64))
        self.n_classes = n_classes
        self.basis = basis(features)

    def start(self) -> Point:
        """Return weights after a step down the gradient of cross-entropy from 0.

        At 0 all classes are equally probable, where a loss that ranks them (dual focal) has a kink.
        """
        n, k = len(self.labels), self.n_classes
        down = np.full((n, k), -1.0 / (n * k))
        down[np.arange(n), self.labels.numpy()] += 1.0 / n
        return Point(self.basis.lift(down), down.sum(axis=0))

    def layer(self, point: Point) -> LinearLayer:
        """Return the weights of a point."""
        return LinearLayer(self.basis.weights(point.weights), point.bias)

    def minimise(
        self,
        loss: nn.Module,
        *,
        C: float,  # noqa: N803
        start: Point | None = None,
        tolerance: float = TOLERANCE,
        share: float = math.inf,
        max_steps: int = MAX_STEPS,
    ) -> Minimum:
        """Return the minimum of loss and penalty, from `start` if it is given.

        The gradient must also be shorter than `share` of the penalty's gradient at the start.
        """
        if not isinstance(C, Real) or isinstance(C, bool) or not 0 < C < math.inf:
            raise InputError(f"C must be a number above 0, got {C!r}.")
        value = _LossValue(loss, self.labels)
        factor = 2.0 if self.n_classes == 2 else 1.0
        objective = SmoothObjective(self.basis, value, factor / (float(C) * len(self.labels)))
        zero = Point(self.basis.zero(self.n_classes), np.zeros(self.n_classes))
        _, on_logits = value(np.zeros((len(self.labels), self.n_classes)))
        first = objective.gradient(zero, on_logits)
        begin = start or self.start()
        pull = math.sqrt(2.0 * objective.penalty * objective.penalty_at(begin))
        length = min(tolerance * math.sqrt(objective.dot(first, first)), share * pull)
        minimum = minimise(objective, begin, length=length, max_steps=max_steps)
        if not math.isfinite(minimum.loss):
            raise TrainingError(
                f"the loss {type(loss).__name__} is {minimum.loss}, so it cannot be minimised: "
                "choose another."
            )
        return minimum


class _LossValue:
    """Value and gradient of a loss as a mean over all rows."""

    def __init__(self, loss: nn.Module, labels: torch.Tensor) -> None:
        self.loss, self.labels, n = loss, labels, len(labels)
        self.summed = read_weighing(loss, 1).summed
        many = 1 if is_sum_over_rows(loss) else -(-n // _PART)
        # Every part has rows from everywhere: rows may be sorted by class.
        self.parts = [torch.arange(start, n, many) for start in range(many)] if many > 1 else []

    def __call__(self, logits: FloatArray) -> tuple[float, FloatArray]:
        """Return the value, and the gradient (n, K) on the logits."""
        z = torch.from_numpy(logits).requires_grad_(True)
        n = len(self.labels)
        if self.parts:
            shares = [1.0 / n if self.summed else len(part) / n for part in self.parts]
            values = [self.loss(z[part], self.labels[part]) for part in self.parts]
            value = torch.stack([s * v for s, v in zip(shares, values, strict=True)]).sum()
        else:
            value = self.loss(z, self.labels)
            value = value / n if self.summed else value
        check_value(value, type(self.loss).__name__)
        value.backward()  # type: ignore[no-untyped-call]
        assert z.grad is not None
        return value.item(), z.grad.numpy()


def is_sum_over_rows(loss: nn.Module) -> bool:
    """Return whether a loss, with all its terms, has a value for each row."""
    if isinstance(loss, LossSum):
        return all(is_sum_over_rows(term) for term in loss.terms)
    return isinstance(loss, RowLoss)
