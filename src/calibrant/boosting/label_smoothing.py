"""Label smoothing as an objective."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np

from calibrant.boosting.objective import Derivatives, Objective, Reduction, softmax_derivatives
from calibrant.convert import log_probs_from_logits, probs_from_logits
from calibrant.errors import InputError
from calibrant.fitting.class_weights import log_weight
from calibrant.inputs import FloatArray, IntArray


class LabelSmoothingObjective(Objective):
    """Cross-entropy against smoothed labels; see `calibrant.losses.label_smoothing_loss`.

    Parameters
    ----------
    smoothing : share of each label that is spread over classes, from 0 to below 1
    others_only : spread it over the other classes only
    weight, reduction : see `Objective`

    Examples
    --------
    >>> logits, labels = np.log([[0.9, 0.1]]), np.array([0])
    >>> LabelSmoothingObjective(smoothing=0.2).values(logits, labels).round(4)
    array([0.3251])
    """

    name: ClassVar[str] = "label_smoothing"

    def __init__(
        self,
        smoothing: float = 0.05,
        *,
        others_only: bool = False,
        weight: Any = None,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(weight=weight, reduction=reduction)
        known = isinstance(smoothing, Real) and not isinstance(smoothing, bool)
        if not known or not 0 <= smoothing < 1:
            raise InputError(f"smoothing must be a number from 0 to below 1, got {smoothing!r}.")
        self.smoothing, self.others_only = smoothing, bool(others_only)

    def values(self, logits: FloatArray, labels: IntArray) -> FloatArray:
        """Return the loss (n,) of each row, without its weight."""
        target = self._target(labels, logits.shape[1])
        return np.asarray(-(target * log_probs_from_logits(logits)).sum(axis=1))

    def log_shift(self) -> FloatArray | None:
        """Return the shift of cross-entropy if smoothing is 0, else None."""
        return None if self.smoothing or self.weight is None else log_weight(self.weight)

    def _target(self, labels: IntArray, n_classes: int) -> FloatArray:
        """Return the smoothed labels as shares (n, K)."""
        spread = self.smoothing / (n_classes - 1 if self.others_only else n_classes)
        own = 1.0 - self.smoothing + (0.0 if self.others_only else spread)
        return np.where(np.arange(n_classes) == labels[:, None], own, spread)

    def _options(self) -> dict[str, Any]:
        return {"smoothing": self.smoothing, "others_only": self.others_only}

    def _derivatives(self, logits: FloatArray, labels: IntArray) -> Derivatives:
        target = self._target(labels, logits.shape[1])
        return softmax_derivatives(probs_from_logits(logits), target)
