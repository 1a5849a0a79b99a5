"""The operating points of a bundle, and whether they decide on raw or on calibrated scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self, get_args

import numpy as np
from numpy.typing import NDArray

from calibrant.bundle.scores import GivenScores, places_of
from calibrant.errors import InputError
from calibrant.inputs import FloatArray, IntArray
from calibrant.thresholds import Band, OperatingPoint, OperatingPoints

__all__ = ["BundlePoint", "DecidesOn", "Rule"]

DecidesOn = Literal["raw", "calibrated"]
Result = OperatingPoint | OperatingPoints | Band


@dataclass(frozen=True)
class Rule:
    """One threshold: rows at or above it are acted on or, below the lower end of a band, cleared.

    Parameters
    ----------
    point : the threshold and its promise
    clears : whether rows below the threshold are cleared, instead of those above acted on
    """

    point: OperatingPoint
    clears: bool = False

    def __str__(self) -> str:
        of = self.point.of
        if of is None:
            return "accept predictions of any class"
        return f"{'clear of' if self.clears else 'act on'} {str(of)!r}"


@dataclass(frozen=True)
class BundlePoint:
    """What was chosen together, and the scores that its promises are about.

    Parameters
    ----------
    result : an operating point, points of several classes, or a band
    decides_on : `raw`, the model's own scores; or `calibrated`, what the bundle's calibrator makes
        of them
    """

    result: Result
    decides_on: DecidesOn

    def __post_init__(self) -> None:
        if not isinstance(self.result, Result):
            raise InputError(
                f"an operating point, points or a band is needed, got {self.result!r}."
            )
        if self.decides_on not in get_args(DecidesOn):
            raise InputError(f"decides_on must be 'raw' or 'calibrated', got {self.decides_on!r}.")
        if not self.rules:
            raise InputError("the operating points are empty, so there is nothing to decide by.")

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> Self:
        """Rebuild from `to_dict`; what is damaged or newer is refused in one sentence."""
        rest = dict(saved)
        decides_on = rest.pop("decides_on", None)
        if "points" in rest:
            return cls(OperatingPoints.from_dict(rest), decides_on)
        if "upper" in rest:
            return cls(Band.from_dict(rest), decides_on)
        return cls(OperatingPoint.from_dict(rest), decides_on)

    def to_dict(self) -> dict[str, Any]:
        """Return the stable JSON shape of the result, with `decides_on`."""
        return {**self.result.to_dict(), "decides_on": self.decides_on}

    @property
    def rules(self) -> tuple[Rule, ...]:
        """Every threshold."""
        if isinstance(self.result, OperatingPoints):
            return tuple(Rule(point) for point in self.result.points.values())
        if isinstance(self.result, Band):
            return Rule(self.result.upper), Rule(self.result.lower, clears=True)
        return (Rule(self.result),)

    @property
    def classes(self) -> tuple[Any, ...]:
        """The classes that the scores are of."""
        return self.rules[0].point.classes

    @property
    def acts_on(self) -> set[str | None]:
        """The classes that are acted on, as text; None for predictions of any class."""
        found = (rule.point.of for rule in self.rules)
        return {None if of is None else str(of) for of in found}

    @property
    def confidence(self) -> float | None:
        """Confidence of all promises together; None where nothing is promised."""
        promised = any(rule.point.guarantee is not None for rule in self.rules)
        return self.result.confidence if promised else None

    @property
    def promises(self) -> tuple[str, ...]:
        """Every promise as a sentence, or why there is none."""
        if isinstance(self.result, Band):
            return (self.result.guarantee or f"No promise: {self.result.why}.",)
        points = (rule.point for rule in self.rules)
        return tuple(point.guarantee or f"No promise: {point.why}." for point in points)

    def verdicts(
        self, given: GivenScores, log_probs: FloatArray | None, classes: Sequence[Any]
    ) -> list[tuple[NDArray[np.bool_], IntArray]]:
        """Say of each rule which rows it is about, and the position of the class they are taken as.

        Columns are put into the order in which the point was chosen, so that every sum is taken as
        it was then. Where predictions of any class are accepted, the predicted class is that of the
        scores the point decides on: its promise is about those. A row that is cleared is taken as
        no class, -1.

        Parameters
        ----------
        given : the model's own scores
        log_probs : (n, K) calibrated ones, where the point decides on them
        classes : the bundle's classes, in the order of the columns of both
        """
        if self.decides_on == "calibrated":
            assert log_probs is not None  # a bundle whose points need a calibrator has one
            given = GivenScores("logits", log_probs)
        order = places_of(self.classes, classes, called=("the point", "the bundle"))
        own = given.in_order(order)
        predicted = np.asarray(order)[own.matrix.argmax(axis=1)]
        names = [str(name) for name in classes]
        found = []
        for rule in self.rules:
            acts, of = self._acts(rule.point, own), rule.point.of
            place = -1 if rule.clears else names.index(str(of)) if of is not None else predicted
            found.append((~acts if rule.clears else acts, np.broadcast_to(place, len(acts))))
        return found

    def _acts(self, point: OperatingPoint, own: GivenScores) -> NDArray[np.bool_]:
        if self.decides_on == "calibrated" and point.on == "probs":
            return point.act(np.exp(own.array))  # calibrators give logarithms
        return point.act(**{own.kind: own.array})
