"""Operating points of a bundle, on raw or calibrated scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Self, get_args

import numpy as np
from numpy.typing import NDArray

from calibrant.bundle.scores import ModelScores, class_positions
from calibrant.errors import InputError
from calibrant.inputs import FloatArray, IntArray
from calibrant.thresholds import Band, OperatingPoint, OperatingPoints

DecidesOn = Literal["raw", "calibrated"]
SelectedPoints = OperatingPoint | OperatingPoints | Band


@dataclass(frozen=True)
class Rule:
    """One threshold: acts on rows at or above it or, with `clears`, clears rows below it."""

    point: OperatingPoint
    clears: bool = False

    def __str__(self) -> str:
        of = self.point.of
        if of is None:
            return "accept predictions of any class"
        return f"{'clear of' if self.clears else 'act on'} {str(of)!r}"

    @property
    def name(self) -> str:
        """What it does, and the scale of its decision scores if they are not probabilities."""
        return f"{self} by log-odds" if self.point.scale == "log-odds" else str(self)


class RuleOutcome(NamedTuple):
    """What a rule says about n rows.

    `acts` : (n,) whether it applies; `of` : (n,) position of the class acted on, -1 for cleared
    rows; `scores` : (n,) decision scores, on the scale of the rule's `decision_threshold`
    """

    acts: NDArray[np.bool_]
    of: IntArray
    scores: FloatArray


@dataclass(frozen=True)
class BundlePoint:
    """Operating points selected together, and the scores that they apply to.

    Parameters
    ----------
    result : an operating point, points of several classes, or a band
    decides_on : `raw`, scores of the model; or `calibrated`, scores of the bundle's calibrator
    """

    result: SelectedPoints
    decides_on: DecidesOn

    def __post_init__(self) -> None:
        if not isinstance(self.result, SelectedPoints):
            raise InputError(
                f"result must be an operating point, points or a band, got {self.result!r}."
            )
        if self.decides_on not in get_args(DecidesOn):
            raise InputError(f"decides_on must be 'raw' or 'calibrated', got {self.decides_on!r}.")
        if not self.rules:
            raise InputError("the operating points are empty: give at least one.")

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> Self:
        """Rebuild from `to_dict`; raise `InputError` if it is damaged or newer."""
        rest = dict(saved)
        decides_on = rest.pop("decides_on", None)
        if "points" in rest:
            return cls(OperatingPoints.from_dict(rest), decides_on)
        if "upper" in rest:
            return cls(Band.from_dict(rest), decides_on)
        return cls(OperatingPoint.from_dict(rest), decides_on)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON values, with `decides_on`."""
        return {**self.result.to_dict(), "decides_on": self.decides_on}

    @property
    def rules(self) -> tuple[Rule, ...]:
        """All rules."""
        if isinstance(self.result, OperatingPoints):
            return tuple(Rule(point) for point in self.result.points.values())
        if isinstance(self.result, Band):
            return Rule(self.result.upper), Rule(self.result.lower, clears=True)
        return (Rule(self.result),)

    @property
    def classes(self) -> tuple[Any, ...]:
        """The classes of the scores."""
        return self.rules[0].point.classes

    @property
    def acts_on(self) -> set[str | None]:
        """The classes that are acted on, as text; None for predictions of any class."""
        names = (rule.point.of for rule in self.rules)
        return {None if name is None else str(name) for name in names}

    @property
    def confidence(self) -> float | None:
        """Joint confidence of all promises; None without a promise."""
        promised = any(rule.point.guarantee is not None for rule in self.rules)
        return self.result.confidence if promised else None

    @property
    def promises(self) -> tuple[str, ...]:
        """Every promise, or the reason there is none, as a sentence."""
        if isinstance(self.result, Band):
            return (self.result.guarantee or f"No promise: {self.result.why}.",)
        points = (rule.point for rule in self.rules)
        return tuple(point.guarantee or f"No promise: {point.why}." for point in points)

    def apply_rules(
        self, scores: ModelScores, log_probs: FloatArray | None, classes: Sequence[Any]
    ) -> list[RuleOutcome]:
        """Return for each rule the rows it applies to, the class acted on, and the scores.

        Columns are reordered as in the selection of the point, so that sums are reproduced exactly.
        A point for predictions of any class uses the predicted class of the scores it decides on,
        because its promise is about those. A cleared row has position -1.

        Parameters
        ----------
        scores : scores of the model
        log_probs : (n, K) calibrated log-probabilities, if the point decides on them
        classes : the bundle's classes, in the order of the columns of both
        """
        if self.decides_on == "calibrated":
            assert log_probs is not None  # guaranteed by `assemble_bundle`
            scores = ModelScores("logits", log_probs)
        order = class_positions(self.classes, classes, owners=("the point", "the bundle"))
        ordered = scores.reorder_columns(order)
        predicted = np.asarray(order)[ordered.matrix.argmax(axis=1)]
        names = [str(name) for name in classes]
        results = []
        for rule in self.rules:
            decision_scores, of = self._decision_scores(rule.point, ordered), rule.point.of
            acts = decision_scores >= rule.point.decision_threshold
            place = -1 if rule.clears else names.index(str(of)) if of is not None else predicted
            results.append(
                RuleOutcome(
                    ~acts if rule.clears else acts,
                    np.broadcast_to(place, len(acts)),
                    decision_scores,
                )
            )
        return results

    def _decision_scores(self, point: OperatingPoint, scores: ModelScores) -> FloatArray:
        if self.decides_on == "calibrated" and point.on == "probs":
            return point.decision_scores(np.exp(scores.array))  # calibrators return logarithms
        return point.decision_scores(**{scores.kind: scores.array})
