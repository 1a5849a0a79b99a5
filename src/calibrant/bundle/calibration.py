"""Calibrator of a bundle: model scores in, calibrated log-probabilities out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from calibrant.calibrators import Calibrator, from_dict
from calibrant.convert import logits_from_probs
from calibrant.errors import InputError
from calibrant.inputs import FloatArray

LEAST_LOG_PROB = -1e6  # Finite substitute for the logarithm of a calibrated probability of 0


@dataclass(frozen=True, eq=False)
class BundleCalibration:
    """A fitted calibrator, and `zero_as`, the smallest probability in its input logits."""

    calibrator: Calibrator
    zero_as: float

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> Self:
        """Rebuild a calibrator saved by `calibrant calibrate` or `to_dict`."""
        with np.errstate(all="ignore"):  # results of a damaged calibrator are checked later
            calibrator = from_dict(saved)
        return cls(calibrator, _zero_as(saved))

    def to_dict(self) -> dict[str, Any]:
        """Return the state as JSON values for `from_dict`."""
        from calibrant.scores.checks import FLOOR

        saved = self.calibrator.to_dict()
        return saved if self.zero_as == FLOOR else {**saved, "zero_as": self.zero_as}

    @property
    def classes(self) -> list[Any]:
        """The classes of the calibrator, in column order."""
        classes: list[Any] = self.calibrator.classes_.tolist()
        return classes

    @property
    def method(self) -> str:
        """Name of the method."""
        return self.calibrator.method

    def same_as(self, other: BundleCalibration) -> bool:
        """Return whether both give the same probabilities, whatever rows they were fitted on."""
        return bool(_without_rows(self.to_dict()) == _without_rows(other.to_dict()))

    def logits(self, probs: FloatArray) -> FloatArray:
        """Convert probabilities to logits, with zeros replaced as during fitting."""
        from calibrant.scores.checks import FLOOR, clip_logits

        logits = logits_from_probs(probs, floor=FLOOR)
        return np.asarray(clip_logits(logits, self.zero_as), dtype=np.float64)

    def log_probs(self, logits: FloatArray) -> FloatArray:
        """Calibrate logits (n, K)."""
        with np.errstate(
            all="ignore"
        ):  # invalid results of a damaged calibrator are rejected below
            log_probs = self.calibrator.predict_log_proba(np.ascontiguousarray(logits))
        if np.isnan(log_probs).any():
            row = int(np.argmax(np.isnan(log_probs).any(axis=1)))
            raise InputError(
                f"the calibrator {self.method} gives NaN for row {row}: it is damaged, "
                "or the scores are far from those it was fitted on."
            )
        return np.maximum(log_probs, LEAST_LOG_PROB)


def _without_rows(saved: Any) -> Any:
    """Return a saved calibrator without the record of its training rows."""
    if isinstance(saved, list):
        return [_without_rows(item) for item in saved]
    if not isinstance(saved, dict):
        return saved
    return {key: _without_rows(value) for key, value in saved.items() if key != "fitted_on"}


def _zero_as(saved: Mapping[str, Any]) -> float:
    from calibrant.scores.checks import FLOOR

    value = saved.get("zero_as", FLOOR)
    if isinstance(value, bool) or not isinstance(value, int | float) or not FLOOR <= value < 0.5:
        raise InputError(f"'zero_as' must be a small probability, got {value!r}: fit it again.")
    return float(value)
