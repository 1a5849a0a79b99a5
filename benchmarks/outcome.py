"""An outcome: one goal, what was measured for it, and whether it was met."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

__all__ = ["Outcome", "speed_up", "within"]


@dataclass(frozen=True)
class Outcome:
    """One goal and its measurement.

    Parameters
    ----------
    goal : the goal as a sentence
    measured : the number that the goal is about
    limit : what it is held against
    unit : unit of both: "times", "s", "GiB", "modules"
    sense : whether to reach the limit ("at least") or to stay under it ("below")
    details : timings and values behind it
    """

    goal: str
    measured: float
    limit: float
    unit: str
    sense: Literal["at least", "below"]
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def ratio(self) -> float:
        """Measured over limit."""
        return self.measured / self.limit

    @property
    def met(self) -> bool:
        """Whether the goal was met."""
        return self.ratio >= 1.0 if self.sense == "at least" else self.ratio < 1.0

    @property
    def verdict(self) -> str:
        """The word of the table: "met", or "MISSED" with the ratio to the limit."""
        return "met" if self.met else f"MISSED ({self.ratio:.2f} of the limit)"

    @property
    def shown(self) -> str:
        """The measurement and its limit in words."""
        return f"{_number(self.measured)} {self.unit} ({self.sense} {_number(self.limit)})"

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready values."""
        return {
            "goal": self.goal,
            "measured": self.measured,
            "limit": self.limit,
            "unit": self.unit,
            "sense": self.sense,
            "ratio": round(self.ratio, 4),
            "met": self.met,
            "details": dict(self.details),
        }

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> Outcome:
        """Rebuild what `to_dict` saved."""
        names = ("goal", "measured", "limit", "unit", "sense", "details")
        return cls(**{name: saved[name] for name in names})


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def speed_up(
    goal: str, theirs: float, ours: float, least: float, details: Mapping[str, Any]
) -> Outcome:
    """Return how many times faster `ours` seconds are than `theirs`."""
    return Outcome(goal, round(theirs / ours, 4), least, "times", "at least", details)


def within(
    goal: str, measured: float, limit: float, unit: str, details: Mapping[str, Any]
) -> Outcome:
    """Return a measurement that has to stay under a limit."""
    return Outcome(goal, round(measured, 4), round(limit, 4), unit, "below", details)
