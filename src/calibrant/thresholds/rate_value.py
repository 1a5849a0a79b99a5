"""Value of a rate at a threshold, with its interval."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from calibrant.results import Interval


@dataclass(frozen=True)
class RateValue:
    """A rate at the threshold, measured on the rows that chose it.

    Parameters
    ----------
    value : the estimate; None if no row meets the condition
    interval : valid for a threshold fixed beforehand
    n : rows that meet the condition; with weights their effective number
    """

    value: float | None
    interval: Interval | None
    n: float

    def to_dict(self) -> dict[str, Any]:
        """Return the stable JSON shape."""
        span = self.interval
        out: dict[str, Any] = {"value": self.value, "low": None, "high": None, "n": self.n}
        if span is not None:
            out |= {"low": span.low, "high": span.high, "interval_method": span.method}
        return out

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any], confidence: float) -> RateValue:
        """Rebuild from `to_dict`."""
        span = None
        if saved["low"] is not None:
            method = str(saved.get("interval_method", ""))
            span = Interval(float(saved["low"]), float(saved["high"]), confidence, method)
        value = None if saved["value"] is None else float(saved["value"])
        return cls(value, span, saved["n"])
