"""Coordinates in which the weights of a linear layer are learned: its own, or those of the rows."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from calibrant.inputs import FloatArray

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

Features = Any
"""(n, F) floating-point numbers: a SciPy CSR matrix or an array."""


class Basis(ABC):
    r"""Coordinates of the weights W (F, K) of logits Z = X W.

    A gradient G on the logits gives the gradient X^T G on the weights, so all weights that a
    gradient method meets are of the form W = X^T A. With more features than rows the coordinates A
    (n, K) are the smaller ones: `RowBasis`, otherwise `FeatureBasis`.

    Parameters
    ----------
    features : the train rows X
    """

    def __init__(self, features: Features) -> None:
        self.n_rows, self.n_features = features.shape
        self.times, self.transposed_times = _multipliers(features)

    @abstractmethod
    def zero(self, n_classes: int) -> FloatArray:
        """Return the coordinates of weights of 0."""

    @abstractmethod
    def lift(self, gradient: FloatArray) -> FloatArray:
        """Return the coordinates of X^T G for a gradient G (n, K) on the logits."""

    @abstractmethod
    def dot(self, one: FloatArray, other: FloatArray) -> float:
        """Return the inner product of two sets of weights."""

    @abstractmethod
    def logits(self, point: FloatArray) -> FloatArray:
        """Return X W (n, K)."""

    @abstractmethod
    def weights(self, point: FloatArray) -> FloatArray:
        """Return W (F, K)."""


class FeatureBasis(Basis):
    """The weights themselves, (F, K)."""

    def zero(self, n_classes: int) -> FloatArray:
        """Return weights of 0."""
        return np.zeros((self.n_features, n_classes))

    def lift(self, gradient: FloatArray) -> FloatArray:
        """Return X^T G."""
        return self.transposed_times(gradient)

    def dot(self, one: FloatArray, other: FloatArray) -> float:
        """Return the inner product of two sets of weights."""
        return float(np.vdot(one, other))

    def logits(self, point: FloatArray) -> FloatArray:
        """Return X W (n, K)."""
        return self.times(point)

    def weights(self, point: FloatArray) -> FloatArray:
        """Return W (F, K)."""
        return point


class RowBasis(Basis):
    """A (n, K) of W = X^T A, together with the logits X W: (2, n, K).

    The logits are a linear function of A as well, so no sum of points needs a product with X.
    """

    def zero(self, n_classes: int) -> FloatArray:
        """Return the coordinates of weights of 0."""
        return np.zeros((2, self.n_rows, n_classes))

    def lift(self, gradient: FloatArray) -> FloatArray:
        """Return the coordinates of X^T G, which are G."""
        return np.stack((gradient, self.times(self.transposed_times(gradient))))

    def dot(self, one: FloatArray, other: FloatArray) -> float:
        """Return the inner product of two sets of weights: A times the other's logits."""
        return float(np.vdot(one[0], other[1]))

    def logits(self, point: FloatArray) -> FloatArray:
        """Return X W (n, K)."""
        return np.asarray(point[1])

    def weights(self, point: FloatArray) -> FloatArray:
        """Return W (F, K)."""
        weights: FloatArray = self.transposed_times(point[0])
        return weights


def choose_basis(features: Features) -> Basis:
    """Return the basis with fewer coordinates.

    Examples
    --------
    >>> type(choose_basis(np.ones((9, 2)))).__name__
    'FeatureBasis'
    """
    n, width = features.shape
    return RowBasis(features) if width > 2 * n else FeatureBasis(features)


_Multiply = Callable[[FloatArray], FloatArray]


def _multipliers(features: Features) -> tuple[_Multiply, _Multiply]:
    """Return products with X and with X^T, in the precision of X, as 64-bit numbers."""
    kind = features.dtype
    if isinstance(features, np.ndarray):
        turned = features.T
        return (
            lambda right: np.asarray(features @ right.astype(kind), dtype=np.float64),
            lambda right: np.asarray(turned @ right.astype(kind), dtype=np.float64),
        )
    return _sparse_multiplier(features), _sparse_multiplier(features.T.tocsr())


def _sparse_multiplier(matrix: csr_matrix) -> _Multiply:
    """Return the product with a CSR matrix: by torch where it has one, which is faster."""
    kind: NDArray[Any] = matrix.dtype

    def multiply(right: FloatArray) -> FloatArray:
        return np.asarray(matrix @ right.astype(kind), dtype=np.float64)

    if not matrix.nnz or matrix.indptr.dtype != np.int32:
        return multiply
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
        starts, columns, values = (
            torch.from_numpy(part) for part in (matrix.indptr, matrix.indices, matrix.data)
        )
        tensor = torch.sparse_csr_tensor(
            starts, columns, values, size=matrix.shape, check_invariants=False
        )

    def multiply_fast(right: FloatArray) -> FloatArray:
        product = tensor @ torch.from_numpy(right.astype(kind))
        return np.asarray(product.numpy(), dtype=np.float64)

    try:
        multiply_fast(np.zeros((matrix.shape[1], 2)))
    except RuntimeError:  # without MKL, as on ARM
        return multiply
    return multiply_fast
