"""The promises of a study, checked on its test rows, and its out-of-scope rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calibrant.bundle import Bundle, BundlePoint
from calibrant.bundle.decision_rules import calibrate_threshold
from calibrant.errors import InputError
from calibrant.inputs import FloatArray, IntArray
from calibrant.ood import SCORES, OodRule, separation
from calibrant.reports.threshold.page import point_view
from calibrant.study.result import OutOfScope, PointResult
from calibrant.study.rows.rows import StudyRows
from calibrant.thresholds import OperatingPoint, Transfer, check_transfer
from calibrant.thresholds.labelled_rows import LabelledRows, fill_missing_codes
from calibrant.thresholds.proof.largest_weight import name_weight_setting
from calibrant.thresholds.rates import Rate, Target, parse_hold


@dataclass(frozen=True)
class PromiseRequest:
    """A promise that the user requests.

    Parameters
    ----------
    hold : the text of the request
    of : the class that is acted on; None if predictions of any class are accepted
    targets : rates that the threshold must hold
    """

    hold: str
    of: Any
    targets: tuple[Target, ...]


def parse_promises(hold: Sequence[str], classes: Sequence[Any]) -> tuple[PromiseRequest, ...]:
    """Parse promises like "defective: precision>=0.85 and recall>=0.3".

    A promise without a class is about the second of two classes, or about each of more than two; a
    promise about accuracy is about accepted predictions of any class.

    Examples
    --------
    >>> parse_promises(["precision>=0.8"], ["no", "yes"])[0].of
    'yes'
    >>> [request.of for request in parse_promises(["precision>=0.8"], ["a", "b", "c"])]
    ['a', 'b', 'c']
    """
    requests: list[PromiseRequest] = []
    for text in hold:
        of, targets = parse_hold(text, flag="--hold")
        classes_acted_on = _classes_acted_on(text, of, targets, classes)
        requests += [PromiseRequest(text, name, targets) for name in classes_acted_on]
    return tuple(requests)


def _classes_acted_on(
    text: str, of: str | None, targets: tuple[Target, ...], classes: Sequence[Any]
) -> list[Any]:
    top = [t for t in targets if isinstance(t.rate, Rate) and t.rate.of == "top-label"]
    if top and of is not None:
        raise InputError(
            f"--hold '{text}': accuracy is about predictions of any class: leave the class out."
        )
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
    requests: Sequence[PromiseRequest],
    logits: dict[str, FloatArray],
    rule: OodRule | None,
    *,
    confidence: float,
    largest_weight: float | None = None,
) -> tuple[PointResult, ...]:
    """Certify each promise on the calibrate rows and check it on the test rows.

    Rows are ranked by the model's raw logits, which used no trusted label: the candidate was chosen
    on choice rows, the rule was fitted on choice and steer rows, and calibrators are not involved.
    Each of m promises gets 1/m of the allowed error, so that all hold together. Rows that the rule
    flags are never acted on; acting on an out-of-scope row is an error. No row weighs more than
    `largest_weight`; if that is None, promises state the largest weight seen as a condition.
    """
    points: list[PointResult] = []
    taken: set[Any] = set()
    part = rows["calibrate"]
    labelled = _labelled(rows, part.codes, logits["calibrate"], rule, part.weights)
    labelled = replace(labelled, largest_weight=largest_weight)
    for request in requests:
        result = labelled.select_point(
            request.of, request.targets, confidence=confidence, share=1 / len(requests)
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
                confidence=1 - (1 - confidence) / len(requests),
            )  # fmt: skip
        decides = request.of not in taken
        if isinstance(result, OperatingPoint):
            taken.add(request.of)
        points.append(PointResult(request.hold, view, check, decides=decides))
    return tuple(points)


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
    """Check a point on rows that were not used to choose it."""
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
    ordered = sorted(points, key=lambda point: not point.decides)
    return [
        BundlePoint(point.result, "raw")
        for point in ordered
        if isinstance(point.result, OperatingPoint)
    ]


def note_fallback_points(points: Sequence[PointResult]) -> list[str]:
    """Return a note for each class whose first promise failed and whose later one decides."""
    notes = []
    for i, point in enumerate(points):
        earlier = [p for p in points[:i] if p.result.of == point.result.of]
        if point.decides and earlier and isinstance(point.result, OperatingPoint):
            notes.append(
                f"'{earlier[0].hold}' cannot be promised, so the later '{point.hold}' decides: "
                "rows are acted on without the first promise. Leave the later one out to prevent "
                "that."
            )
    return notes


def _labelled(
    rows: StudyRows,
    codes: IntArray,
    logits: FloatArray,
    rule: OodRule | None,
    weights: FloatArray | None,
) -> LabelledRows:
    """Return the rows to certify on; those that the rule flags are withheld from action."""
    withheld = None if rule is None else rule.flags(logits)
    return LabelledRows(logits, codes, tuple(rows.classes), weights, withheld)


def fit_rule(logits: dict[str, FloatArray], score: str) -> OodRule | None:
    """Fit the rule on the steer and choice rows, without trusted rows.

    Its thresholds are quantiles of the scores of in-scope rows that were not trained on. Both
    splits qualify, and a quantile per predicted class needs all of them. Selecting the epoch and
    the candidate on them hardly changes the scores of single rows. Rows that the scorer marks as
    unscorable are flagged as well.
    """
    if score == "none":
        return None
    if score == "unreadable":
        return OodRule.unreadable(len(_in_scope_logits(logits)))
    return OodRule.fit(_in_scope_logits(logits), score=score, by_class=True, equal=True)


def _in_scope_logits(logits: Mapping[str, FloatArray]) -> FloatArray:
    return np.concatenate([logits[name] for name in ("steer", "choice") if name in logits])


def describe_rule(
    rule: OodRule | None, rows: StudyRows, logits: dict[str, FloatArray]
) -> OutOfScope | None:
    """Evaluate the rule on the test rows, and against out-of-scope rows if there are any."""
    if rule is None:
        return None
    inside = rows["test"].inside
    outside = [logits["test"][~inside]]
    outside += [logits["out_of_scope"]] if "out_of_scope" in logits else []
    foreign = np.concatenate(outside)
    scores = {}
    if len(foreign):
        compared = SCORES if rule.score != "unreadable" else {rule.score: SCORES[rule.score]}
        for name, score in compared.items():
            fitted = fit_rule(logits, name)
            assert fitted is not None
            result = separation(score(logits["test"][inside]), score(foreign))
            caught = float(fitted.flags(foreign).mean())
            scores[name] = {"auroc": result.auroc, "fpr95": result.fpr95, "caught": caught}
    return OutOfScope(
        score=rule.score,
        threshold=rule.threshold,
        quantile=rule.quantile,
        n=rule.n,
        flagged=float(rule.flags(logits["test"][inside]).mean()),
        scores=scores,
        out_of_scope=len(foreign),
    )


def place_thresholds(points: Sequence[PointResult], bundle: Bundle) -> tuple[PointResult, ...]:
    """Add the place of each threshold on the bundle's calibrated scale, where it has one."""
    calibration = bundle.calibration
    if calibration is None or calibration.method == "identity":
        return tuple(points)
    placed = []
    for point in points:
        place = None
        if isinstance(point.result, OperatingPoint):
            place = calibrate_threshold(calibration, point.result, bundle.classes)
        placed.append(replace(point, calibrated_threshold=None if place is None else place.prob))
    return tuple(placed)
