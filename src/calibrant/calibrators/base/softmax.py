"""Base class of calibrators that apply a softmax to new logits."""

from __future__ import annotations

from abc import abstractmethod

from calibrant.calibrators.base.calibrator import Calibrator
from calibrant.calibrators.base.rows import two_columns
from calibrant.convert import log_probs_from_logits
from calibrant.inputs import FloatArray


class SoftmaxCalibrator(Calibrator):
    """Base class of methods that map log-probabilities (n, K) to new logits (n, K)."""

    def _log_probs(self, logits: FloatArray) -> FloatArray:
        log_probs = log_probs_from_logits(two_columns(logits))
        return log_probs_from_logits(self._new_logits(log_probs))

    @abstractmethod
    def _new_logits(self, log_probs: FloatArray) -> FloatArray:
        """Return logits of the calibrated probabilities."""
