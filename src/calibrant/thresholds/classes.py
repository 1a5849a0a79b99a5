"""One threshold for each of several classes, under one confidence for all of them."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import InputError, TargetUnreachable
from calibrant.thresholds.checks import EMPIRICAL, check_confidence
from calibrant.thresholds.objective import as_targets, objective_of
from calibrant.thresholds.operating_point import OperatingPoint
from calibrant.thresholds.proof.question import put_question
from calibrant.thresholds.proof.seen_labels import NOTHING_SEEN, Seen
from calibrant.thresholds.rates import Cost, Rate, Target
from calibrant.thresholds.saved_point import FORMAT
from calibrant.thresholds.scores import labelled_scores
from calibrant.thresholds.selection import answer

__all__ = ["OperatingPoints", "select_each"]


@dataclass(frozen=True)
class OperatingPoints:
    """Thresholds of several classes, each against the rest.

    All promises together hold with the stated confidence. A class for which none can be made is
    reported in `unreachable`, never guessed. A promise is about every row that a class flags; a
    row can be flagged by several classes where their thresholds sum to less than 1.

    Parameters
    ----------
    points : the operating point of each class that has one
    unreachable : the error of each class that has none
    confidence : of all promises together; None where nothing is promised
    flagged_twice : labelled rows that more than one class flags
    """

    points: Mapping[Any, OperatingPoint]
    unreachable: Mapping[Any, TargetUnreachable]
    confidence: float | None
    flagged_twice: int = 0

    def __getitem__(self, name: Any) -> OperatingPoint:
        if name in self.unreachable:
            raise self.unreachable[name]
        return self.points[name]

    def act(self, probs: Any = None, *, logits: Any = None) -> dict[Any, NDArray[np.bool_]]:
        """Say for each class which rows it flags."""
        return {name: point.act(probs, logits=logits) for name, point in self.points.items()}

    def to_dict(self) -> dict[str, Any]:
        """Return the stable JSON shape: keys may be added, never renamed."""
        return {
            "format": FORMAT,
            "reached": not self.unreachable,
            "confidence": self.confidence,
            "points": [point.to_dict() for point in self.points.values()],
            "unreachable": [error.to_dict() for error in self.unreachable.values()],
            "flagged_twice": self.flagged_twice,
        }

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> OperatingPoints:
        """Rebuild from `to_dict`."""
        try:
            points = [OperatingPoint.from_dict(point) for point in saved["points"]]
            failed = [TargetUnreachable.from_dict(error) for error in saved["unreachable"]]
            confidence, twice = saved["confidence"], int(saved["flagged_twice"])
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"the saved operating points are damaged: {error}.") from None
        return cls({p.of: p for p in points}, {e.of: e for e in failed}, confidence, twice)

    def __str__(self) -> str:
        parts = [f"{name}: {point}" for name, point in self.points.items()]
        parts += [f"{name}: {error}" for name, error in self.unreachable.items()]
        return "\n\n".join(parts)

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


def select_each(
    labels: Any,
    probs: Any = None,
    *,
    hold: Target | Iterable[Target] | Mapping[Any, Target | Iterable[Target]],
    maximise: Rate | None = None,
    minimise: Rate | Cost | None = None,
    confidence: float | None = 0.95,
    weights: Any = None,
    largest_weight: float | None = None,
    logits: Any = None,
    classes: Sequence[Any] | None = None,
    seen: Seen = NOTHING_SEEN,
    rng: int | np.random.Generator = 0,
) -> OperatingPoints:
    """Choose a threshold for each class against the rest; all promises hold together.

    Each of m classes gets 1/m of the allowed error, so that with probability `confidence` none of
    the promises is broken. For a single threshold on the predicted class's confidence, hold
    `accuracy` with `select` instead.

    Parameters
    ----------
    labels, probs, logits, weights, largest_weight, classes, seen, rng : as in `select`
    hold : targets for every class, or for the classes named: {"defective": precision >= 0.85}
    maximise, minimise : as in `select`, for every class
    confidence : of all promises together

    Examples
    --------
    >>> from calibrant.testing import WORLDS
    >>> from calibrant.thresholds import precision
    >>> draw = WORLDS["multiclass"].draw(5000, 0)
    >>> hold = {0: precision >= 0.7, 4: precision >= 0.9}
    >>> found = select_each(draw.labels, draw.probs, hold=hold)
    >>> sorted(found.points), sorted(found.unreachable)
    ([0], [4])
    """
    if confidence is not None:
        check_confidence(confidence, hint=EMPIRICAL)
    array, on, _, names = labelled_scores(labels, probs, logits, classes)
    wanted = _for_each(hold, names)
    points: dict[Any, OperatingPoint] = {}
    failed: dict[Any, TargetUnreachable] = {}
    flags = np.zeros(len(array), dtype=np.int64)
    for name, targets in wanted.items():
        objective, sign = objective_of(targets, maximise, minimise)
        asked = [*(target.rate for target in targets), objective]
        question = put_question(
            labels,
            probs,
            logits,
            asked,
            weights=weights,
            largest_weight=largest_weight,
            classes=classes,
            positive=name,
            rng=rng,
            promised=confidence is not None,
            needs_both=False,
        )
        try:
            points[name] = answer(
                question,
                targets,
                objective,
                sign,
                confidence=confidence,
                seen=seen,
                share=1 / len(wanted),
            )
        except TargetUnreachable as error:
            failed[name] = error
            continue
        flags += points[name].act(**{on: array})
    promised = all(point.guarantee is not None for point in points.values())
    return OperatingPoints(points, failed, confidence if promised else None, int((flags > 1).sum()))


def _for_each(hold: Any, names: tuple[Any, ...]) -> dict[Any, tuple[Target, ...]]:
    """Return the targets of each class that has some."""
    if not isinstance(hold, Mapping):
        hold = dict.fromkeys(names, as_targets(hold))
    unknown = [name for name in hold if name not in names]
    if unknown:
        raise InputError(f"hold names {unknown[0]!r}, which is not among the classes {names}.")
    if not hold:
        raise InputError("hold is empty: name at least one class and its target.")
    found = {name: as_targets(targets) for name, targets in hold.items()}
    for name, targets in found.items():
        if any(isinstance(t.rate, Rate) and t.rate.of == "top-label" for t in targets):
            raise InputError(
                f"accuracy is about predictions of any class, not about {name!r}: hold it with "
                "select, or hold precision here."
            )
    return found
