"""The promises of a study: certified on the calibrate rows, checked on the test rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.bundle import BundlePoint
from calibrant.errors import InputError, TargetUnreachable
from calibrant.inputs import FloatArray, IntArray
from calibrant.ood import OodRule
from calibrant.reports.study_result import PointResult
from calibrant.reports.threshold_report import point_view
from calibrant.study.hold_text import parse_hold
from calibrant.study.rows import StudyRows
from calibrant.thresholds import OperatingPoint, Transfer, check_transfer
from calibrant.thresholds.objective import objective_of
from calibrant.thresholds.question import put_question
from calibrant.thresholds.rates import Rate, Target
from calibrant.thresholds.selection import answer

__all__ = ["Asked", "asked_of", "bundle_points", "certify", "check_point"]


@dataclass(frozen=True)
class Asked:
    """One promise that is asked for.

    Parameters
    ----------
    hold : as the user wrote it
    of : the class that is acted on; None where predictions of any class are accepted
    targets : what its threshold must keep
    """

    hold: str
    of: Any
    targets: tuple[Target, ...]


def asked_of(hold: Sequence[str], classes: Sequence[Any]) -> tuple[Asked, ...]:
    """Read promises like "defective: precision>=0.85 and recall>=0.3".

    Without a class a promise is about the second of two; of more classes each gets one, unless it
    is about accuracy, which is that of accepted predictions of any class.

    Examples
    --------
    >>> asked_of(["precision>=0.8"], ["no", "yes"])[0].of
    'yes'
    >>> [each.of for each in asked_of(["precision>=0.8"], ["a", "b", "c"])]
    ['a', 'b', 'c']
    """
    found: list[Asked] = []
    for text in hold:
        of, targets = parse_hold(text)
        found += [Asked(text, name, targets) for name in _acted_on(text, of, targets, classes)]
    return tuple(found)


def _acted_on(
    text: str, of: str | None, targets: tuple[Target, ...], classes: Sequence[Any]
) -> list[Any]:
    top = [t for t in targets if isinstance(t.rate, Rate) and t.rate.of == "top-label"]
    if top and of is not None:
        raise InputError(f"--hold '{text}': accuracy is about predictions of any class: name none.")
    if top:
        return [None]
    if of is None:
        return [classes[1]] if len(classes) == 2 else list(classes)
    known = {str(name): name for name in classes}
    if of not in known:
        listed = ", ".join(f"'{name}'" for name in list(known)[:8])
        raise InputError(
            f"--hold '{text}' is about '{of}', which is not among the classes {listed}: name one "
            "of them."
        )
    return [known[of]]


def certify(
    rows: StudyRows,
    asked: Sequence[Asked],
    logits: dict[str, FloatArray],
    rule: OodRule | None,
    *,
    confidence: float,
) -> tuple[PointResult, ...]:
    """Certify each promise on the calibrate rows and check it on the test rows.

    The ranking is that of the model's own logits, which no trusted label has seen: candidates were
    chosen on steer rows, the rule was fitted on them, and calibrators are not asked. Each of m
    promises gets 1/m of the allowed error, so that all hold together. Rows that the rule flags are
    never acted on; rows of no class are wrong to act on.
    """
    found: list[PointResult] = []
    taken: set[Any] = set()
    for each in asked:
        result = _certified(rows, each, logits["calibrate"], rule, confidence, 1 / len(asked))
        view = point_view(
            result,
            labels=filled(rows["calibrate"].codes),
            scores=logits["calibrate"],
            on="logits",
            classes=rows.classes,
            weights=rows["calibrate"].weights,
            **_masks(rows["calibrate"].codes, logits["calibrate"], rule),
        )
        check = None
        if isinstance(result, OperatingPoint):
            part = rows["test"]
            check = check_point(
                result, rows, part.codes, logits["test"], rule,
                weights=part.weights, confidence=1 - (1 - confidence) / len(asked),
            )  # fmt: skip
        decides = each.of not in taken
        if isinstance(result, OperatingPoint):
            taken.add(each.of)
        found.append(PointResult(each.hold, view, check, decides=decides))
    return tuple(found)


def check_point(
    point: OperatingPoint,
    rows: StudyRows,
    codes: IntArray,
    logits: FloatArray,
    rule: OodRule | None,
    *,
    weights: FloatArray | None = None,
    confidence: float = 0.95,
) -> Transfer:
    """Judge a point by rows that chose nothing."""
    return check_transfer(
        point,
        rows.labels(filled(codes)),
        logits=logits,
        weights=weights,
        confidence=confidence,
        **_masks(codes, logits, rule),
    )


def bundle_points(points: Sequence[PointResult]) -> list[BundlePoint]:
    """Return the operating points that were reached, those that decide first."""
    ordered = sorted(points, key=lambda each: not each.decides)
    return [
        BundlePoint(each.result, "raw")
        for each in ordered
        if isinstance(each.result, OperatingPoint)
    ]


def filled(codes: IntArray) -> IntArray:
    """Return codes with a class in the place of none; masks say which rows that is."""
    return np.maximum(codes, 0)


def _masks(codes: IntArray, logits: FloatArray, rule: OodRule | None) -> dict[str, Any]:
    """Return which rows are never acted on, and which belong to no class."""
    outside = np.asarray(codes < 0)
    return {
        "withheld": None if rule is None else rule.flags(logits),
        "outside": outside if outside.any() else None,
    }


def _certified(
    rows: StudyRows,
    each: Asked,
    logits: FloatArray,
    rule: OodRule | None,
    confidence: float,
    share: float,
) -> OperatingPoint | TargetUnreachable:
    part = rows["calibrate"]
    objective, sign = objective_of(each.targets, None, None, one_class=each.of is not None)
    question = put_question(
        rows.labels(filled(part.codes)),
        None,
        logits,
        [*(target.rate for target in each.targets), objective],
        weights=part.weights,
        classes=rows.classes,
        positive=each.of if each.of is not None else None,
        promised=True,
        needs_both=False,
        **_masks(part.codes, logits, rule),
    )
    try:
        return answer(question, each.targets, objective, sign, confidence=confidence, share=share)
    except TargetUnreachable as error:
        return error
