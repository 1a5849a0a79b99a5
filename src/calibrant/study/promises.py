"""The promises of a study: certified on the calibrate rows, checked on the test rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from calibrant.bundle import BundlePoint
from calibrant.errors import InputError
from calibrant.inputs import FloatArray, IntArray
from calibrant.ood import OodRule
from calibrant.reports.threshold.page import point_view
from calibrant.study.result import PointResult
from calibrant.study.rows.rows import StudyRows
from calibrant.thresholds import OperatingPoint, Transfer, check_transfer
from calibrant.thresholds.hold_text import parse_hold
from calibrant.thresholds.labelled_rows import LabelledRows, fill_missing_codes
from calibrant.thresholds.proof.largest_weight import name_weight_setting
from calibrant.thresholds.rates import Rate, Target

__all__ = ["Asked", "asked_of", "bundle_points", "certify", "check_point", "decided_by_later"]


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
        of, targets = parse_hold(text, flag="--hold")
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
    largest_weight: float | None = None,
) -> tuple[PointResult, ...]:
    """Certify each promise on the calibrate rows and check it on the test rows.

    The ranking is that of the model's own logits, which no trusted label has seen: the candidate
    was chosen on choice rows, the rule was fitted on those and on steer rows, and calibrators are
    not asked. Each of m promises gets 1/m of the allowed error, so that all hold together. Rows
    that the rule flags are never acted on; rows of no class are wrong to act on. No row weighs more
    than `largest_weight`; where that is None, promises name the largest weight seen as a condition.
    """
    found: list[PointResult] = []
    taken: set[Any] = set()
    part = rows["calibrate"]
    labelled = _labelled(rows, part.codes, logits["calibrate"], rule, part.weights)
    labelled = replace(labelled, largest_weight=largest_weight)
    for each in asked:
        result = labelled.select_point(
            each.of, each.targets, confidence=confidence, share=1 / len(asked)
        )
        if isinstance(result, OperatingPoint):
            result = name_weight_setting(result, "--largest-weight")
        view = point_view(
            result,
            labels=fill_missing_codes(labelled.codes),
            scores=labelled.logits,
            on="logits",
            classes=labelled.classes,
            weights=labelled.weights,
            **labelled.masks,
        )
        check = None
        if isinstance(result, OperatingPoint):
            part = rows["test"]
            check = check_point(
                result, rows, part.codes, logits["test"], rule,
                weights=part.weights, largest_weight=largest_weight,
                confidence=1 - (1 - confidence) / len(asked),
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
    largest_weight: float | None = None,
    confidence: float = 0.95,
) -> Transfer:
    """Judge a point by rows that chose nothing."""
    return check_transfer(
        point,
        rows.labels(fill_missing_codes(codes)),
        logits=logits,
        weights=weights,
        largest_weight=largest_weight,
        confidence=confidence,
        **_labelled(rows, codes, logits, rule, weights).masks,
    )


def bundle_points(points: Sequence[PointResult]) -> list[BundlePoint]:
    """Return the operating points that were reached, those that decide first."""
    ordered = sorted(points, key=lambda each: not each.decides)
    return [
        BundlePoint(each.result, "raw")
        for each in ordered
        if isinstance(each.result, OperatingPoint)
    ]


def decided_by_later(points: Sequence[PointResult]) -> list[str]:
    """Say where the promise that was asked for first is not given, and another one decides."""
    found = []
    for i, each in enumerate(points):
        before = [p for p in points[:i] if p.result.of == each.result.of]
        if each.decides and before and isinstance(each.result, OperatingPoint):
            found.append(
                f"'{before[0].hold}' cannot be promised, so '{each.hold}' decides, which was asked "
                "for later: rows are acted on without the promise that was asked for first. Leave "
                "the later one out if they should not be."
            )
    return found


def _labelled(
    rows: StudyRows,
    codes: IntArray,
    logits: FloatArray,
    rule: OodRule | None,
    weights: FloatArray | None,
) -> LabelledRows:
    """Return rows for promises: those that the rule flags are never acted on."""
    withheld = None if rule is None else rule.flags(logits)
    return LabelledRows(logits, codes, tuple(rows.classes), weights, withheld)
