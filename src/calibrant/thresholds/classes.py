"""Operating points of several classes, with one confidence for all of them."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import InputError, TargetUnreachable
from calibrant.thresholds.objective import as_targets, resolve_objective
from calibrant.thresholds.operating_point import OperatingPoint
from calibrant.thresholds.proof.question import build_problem
from calibrant.thresholds.proof.seen_labels import NO_LABEL_USE, LabelUse
from calibrant.thresholds.rates import EMPIRICAL, Cost, Rate, Target, check_confidence
from calibrant.thresholds.saved_point import FORMAT
from calibrant.thresholds.scores import labelled_scores
from calibrant.thresholds.selection import solve_problem


@dataclass(frozen=True)
class OperatingPoints:
    """Thresholds of several classes, each against the rest.

    All promises hold together with the stated confidence. A class without a certified threshold
    is listed in `unreachable`. A promise covers every row that a class flags; several classes can
    flag the same row when their thresholds sum to less than 1.

    Parameters
    ----------
    points : the operating point of each class that has one
    unreachable : the error of each class that has none
    confidence : of all promises together; None if nothing is promised
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
        """Return a mask of flagged rows for each class."""
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
    label_use: LabelUse = NO_LABEL_USE,
    rng: int | np.random.Generator = 0,
) -> OperatingPoints:
    """Choose a threshold for each class against the rest; all promises hold together.

    Each of m classes gets 1/m of the allowed error, so that with probability `confidence` none of
    the promises is broken. For a single threshold on the predicted class's confidence, hold
    `accuracy` with `select` instead.

    Parameters
    ----------
    labels, probs, logits, weights, largest_weight, classes, label_use, rng : as in `select`
    hold : targets for every class, or by class name: {"defective": precision >= 0.85}
    maximise, minimise : as in `select`, for every class
    confidence : of all promises together

    Examples
    --------
    >>> from calibrant.testing import WORLDS
    >>> from calibrant.thresholds import precision
    >>> draw = WORLDS["multiclass"].draw(5000, 0)
    >>> hold = {0: precision >= 0.7, 4: precision >= 0.9}
    >>> result = select_each(draw.labels, draw.probs, hold=hold)
    >>> sorted(result.points), sorted(result.unreachable)
    ([0], [4])
    """
    if confidence is not None:
        check_confidence(confidence, hint=EMPIRICAL)
    array, on, _, names = labelled_scores(labels, probs, logits, classes)
    targets_by_class = _targets_by_class(hold, names)
    points: dict[Any, OperatingPoint] = {}
    failed: dict[Any, TargetUnreachable] = {}
    flags = np.zeros(len(array), dtype=np.int64)
    for name, targets in targets_by_class.items():
        objective, sign = resolve_objective(targets, maximise, minimise)
        rates = [*(target.rate for target in targets), objective]
        problem = build_problem(
            labels,
            probs,
            logits,
            rates,
            weights=weights,
            largest_weight=largest_weight,
            classes=classes,
            positive=name,
            rng=rng,
            promised=confidence is not None,
            needs_both=False,
        )
        try:
            points[name] = solve_problem(
                problem,
                targets,
                objective,
                sign,
                confidence=confidence,
                label_use=label_use,
                share=1 / len(targets_by_class),
            )
        except TargetUnreachable as error:
            failed[name] = error
            continue
        flags += points[name].act(**{on: array})
    promised = all(point.guarantee is not None for point in points.values())
    return OperatingPoints(points, failed, confidence if promised else None, int((flags > 1).sum()))


def _targets_by_class(hold: Any, names: tuple[Any, ...]) -> dict[Any, tuple[Target, ...]]:
    """Return the targets of each class."""
    if not isinstance(hold, Mapping):
        hold = dict.fromkeys(names, as_targets(hold))
    unknown = [name for name in hold if name not in names]
    if unknown:
        raise InputError(f"hold names {unknown[0]!r}, which is not among the classes {names}.")
    if not hold:
        raise InputError("hold is empty: name at least one class and its target.")
    targets_by_class = {name: as_targets(targets) for name, targets in hold.items()}
    for name, targets in targets_by_class.items():
        if any(isinstance(t.rate, Rate) and t.rate.of == "top-label" for t in targets):
            raise InputError(
                f"accuracy applies to predictions of any class, not to {name!r}: hold it with "
                "select, or hold precision here."
            )
    return targets_by_class
