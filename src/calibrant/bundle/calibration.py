"""The calibrator of a bundle: scores of the model in, calibrated log-probabilities out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from calibrant.calibrators import Calibrator, from_dict
from calibrant.convert import logits_from_probs
from calibrant.errors import InputError
from calibrant.inputs import FloatArray

__all__ = ["Calibration"]

LEAST_LOG_PROB = -1e6
"""What the logarithm of a calibrated probability of exactly 0 counts as."""


@dataclass(frozen=True, eq=False)
class Calibration:
    """A fitted calibrator, and what a probability of 0 counts as for it.

    Parameters
    ----------
    calibrator : the calibrator
    zero_as : no probability counts as smaller where its logit is needed

    Examples
    --------
    >>> found = Calibration.from_dict(
    ...     {"format": 1, "method": "temperature", "classes": ["no", "yes"],
    ...      "params": {"temperature": 2.0}})
    >>> np.exp(found.log_probs(np.array([[0.0, 2.0]]))).round(4)
    array([[0.2689, 0.7311]])
    """

    calibrator: Calibrator
    zero_as: float

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> Self:
        """Rebuild a calibrator that `calibrant calibrate` or `to_dict` saved."""
        with np.errstate(all="ignore"):  # what a damaged one computes is judged, not warned about
            made = from_dict(saved)
        return cls(made, _zero_as(saved))

    def to_dict(self) -> dict[str, Any]:
        """Return what `from_dict` takes."""
        from calibrant.scores.checks import FLOOR

        saved = self.calibrator.to_dict()
        return saved if self.zero_as == FLOOR else {**saved, "zero_as": self.zero_as}

    @property
    def classes(self) -> list[Any]:
        """The classes it was fitted on, in the order of its columns."""
        found: list[Any] = self.calibrator.classes_.tolist()
        return found

    @property
    def method(self) -> str:
        """Name of the method."""
        return self.calibrator.method

    def same_as(self, other: Calibration) -> bool:
        """Whether both give the same probabilities for the same scores, whatever taught them."""
        return bool(_without_rows(self.to_dict()) == _without_rows(other.to_dict()))

    def logits(self, probs: FloatArray) -> FloatArray:
        """Turn a model's probabilities into logits, where a 0 means what it meant when fitting."""
        from calibrant.scores.checks import FLOOR, raised

        found = logits_from_probs(probs, floor=FLOOR)
        return np.asarray(raised(found, self.zero_as), dtype=np.float64)

    def log_probs(self, logits: FloatArray) -> FloatArray:
        """Calibrate logits (n, K)."""
        with np.errstate(all="ignore"):  # what a damaged calibrator computes is refused below
            found = self.calibrator.predict_log_proba(np.ascontiguousarray(logits))
        if np.isnan(found).any():
            row = int(np.argmax(np.isnan(found).any(axis=1)))
            raise InputError(
                f"the calibrator {self.method} gives no probability for row {row}: it is damaged, "
                "or the scores are far from those it was fitted on."
            )
        return np.maximum(found, LEAST_LOG_PROB)


def _without_rows(saved: Any) -> Any:
    """Return a saved calibrator without what it and its members remember of their rows."""
    if isinstance(saved, list):
        return [_without_rows(each) for each in saved]
    if not isinstance(saved, dict):
        return saved
    return {key: _without_rows(value) for key, value in saved.items() if key != "fitted_on"}


def _zero_as(saved: Mapping[str, Any]) -> float:
    from calibrant.scores.checks import FLOOR

    value = saved.get("zero_as", FLOOR)
    if isinstance(value, bool) or not isinstance(value, int | float) or not FLOOR <= value < 0.5:
        raise InputError(f"'zero_as' must be a small probability, got {value!r}: fit it again.")
    return float(value)
