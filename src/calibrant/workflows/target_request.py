"""Targets to hold and the objective to optimise, as one value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from calibrant.thresholds.rates import Cost, Rate, Target


@dataclass(frozen=True)
class TargetRequest:
    """Targets to hold and the objective to optimise.

    `hold` maps each class to its targets, and None to those without a class. A band has two
    targets: for rows acted on, and for rows cleared.
    """

    hold: Mapping[str | None, Sequence[Target]]
    maximise: Rate | None
    minimise: Rate | Cost | None
    confidence: float | None
    band: bool = False

    @property
    def classes(self) -> list[str]:
        """Classes named by targets, in the order of the command line."""
        return [class_name for class_name in self.hold if class_name is not None]

    @property
    def targets(self) -> list[Target]:
        """Targets of all classes."""
        return [target for targets in self.hold.values() for target in targets]

    @property
    def cost(self) -> Cost | None:
        """Cost of decisions, if used."""
        from calibrant.thresholds.rates import Cost

        rates = [self.minimise, *(target.rate for target in self.targets)]
        return next((rate for rate in rates if isinstance(rate, Cost)), None)
