"""Base class of vector, matrix, Dirichlet and structured scaling: softmax(W x + b)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from calibrant.calibrators.base.calibrator import SoftmaxCalibrator
from calibrant.calibrators.base.rows import CalibrationRows
from calibrant.calibrators.fits.affine import Affine, Penalty, fit_affine
from calibrant.errors import InputError
from calibrant.inputs import FloatArray


class AffineCalibrator(SoftmaxCalibrator):
    """Base class of methods whose map is softmax(W x + b), fitted by penalised NLL.

    Subclasses define the features x and the penalties.
    """

    learned: ClassVar[tuple[str, ...]] = ("weight", "intercept")
    weight_: FloatArray
    intercept_: FloatArray

    @abstractmethod
    def _penalty(self, rows: CalibrationRows) -> Penalty:
        """Return the strengths of the penalties for these rows."""

    def _features(self, log_probs: FloatArray) -> FloatArray:
        return centre_rows(log_probs)

    def _learn(self, rows: CalibrationRows) -> None:
        fitted = fit_affine(self._features(rows.log_probs), rows, self._penalty(rows))
        self.weight_, self.intercept_ = fitted.weight, fitted.intercept

    def _new_logits(self, log_probs: FloatArray) -> FloatArray:
        return Affine(self.weight_, self.intercept_)(self._features(log_probs))

    def _keeps_order_of(self, position: int) -> bool:
        if self.n_classes > 2:
            return False
        # Centred features are -u and u, and u rises with the log-odds.
        first, second = self._slopes()
        return second - first > 0

    def _slopes(self) -> tuple[float, float]:
        """Return by how much both features of two classes move the log-odds of the second."""
        weight = np.diag(self.weight_) if self.weight_.ndim == 1 else self.weight_
        return float(weight[1, 0] - weight[0, 0]), float(weight[1, 1] - weight[0, 1])

    def _restore(self, params: Mapping[str, Any]) -> None:
        super()._restore(params)
        k = len(self.classes_)
        if self.weight_.shape not in ((k,), (k, k)) or self.intercept_.shape != (k,):
            raise ValueError(f"weight and intercept do not fit {k} classes")


def centre_rows(log_probs: FloatArray) -> FloatArray:
    """Return logits whose rows sum to 0, so that adding a constant to a row has no effect.

    The rows of a network's logits nearly sum to 0 already, and the published figures of vector and
    matrix scaling are reproduced.
    """
    return np.asarray(log_probs - log_probs.mean(axis=1, keepdims=True))


def check_strength(strength: float) -> None:
    """Refuse a penalty with which separated labels would drive the map to infinity."""
    if not 0 < strength < float("inf"):
        raise InputError(
            f"strength must be a positive number, got {strength!r}: a small one such as 1e-6 "
            "is nearly no penalty."
        )
