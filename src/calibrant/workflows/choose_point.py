"""Choose an operating point on labelled score files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from shlex import quote
from typing import Any

from calibrant.errors import InputError, TargetUnreachable
from calibrant.files.atomic_write import read_json
from calibrant.scores.columns import Layout
from calibrant.thresholds import (
    Band,
    LabelUse,
    OperatingPoint,
    OperatingPoints,
    select,
    select_band,
    select_each,
)
from calibrant.thresholds.proof.largest_weight import check_largest_weight, name_weight_setting
from calibrant.thresholds.rates import Cost, Rate
from calibrant.workflows.calibrator_file import build_calibrator
from calibrant.workflows.point_rows import FileCalibration, PointRows, read_layout, read_point_rows
from calibrant.workflows.progress import Progress, no_progress
from calibrant.workflows.target_request import TargetRequest

LARGEST = "--largest-weight"  # Flag for `largest_weight`

Result = OperatingPoint | OperatingPoints | Band


@dataclass(frozen=True)
class ThresholdOptions:
    """Options of `calibrant threshold`, checked before any row is read."""

    files: list[Path]
    request: TargetRequest
    calibrator: Path | None = None  # file of a calibrator to apply first
    fitted_here: bool = False  # whether it was fitted on these rows
    candidates: int = 1  # number of models compared on these rows
    positive: str | None = None
    label: str = "label"
    seed: int = 0  # for the random order of tied rows
    largest_weight: float | None = None  # upper bound of a row's weight, or None


@dataclass(frozen=True)
class ThresholdResult:
    """Chosen points, or why there are none, with their rows."""

    # one point, one per class, a band, or the reason there is none
    result: Result | TargetUnreachable
    rows: PointRows  # rows it was chosen on
    request: TargetRequest
    calibrator: dict[str, Any] | None = None  # saved calibrator applied to the scores, or None
    positive: str | None = None  # class of a lone column, or None

    @property
    def parts(self) -> list[OperatingPoint | TargetUnreachable]:
        """Every point and every failure."""
        if isinstance(self.result, OperatingPoints):
            return [*self.result.points.values(), *self.result.unreachable.values()]
        if isinstance(self.result, Band):
            return [self.result.upper, self.result.lower]
        return [self.result]

    @property
    def reached(self) -> bool:
        """Whether every target was reached."""
        return not any(isinstance(part, TargetUnreachable) for part in self.parts)

    @property
    def has_point(self) -> bool:
        """Whether there is at least one point."""
        return any(isinstance(part, OperatingPoint) for part in self.parts)


def choose(choice: ThresholdOptions, *, progress: Progress = no_progress) -> ThresholdResult:
    """Read the rows and select thresholds; an unreachable target is a result too."""
    calibration, saved = _read_calibration(choice.calibrator)
    with progress("selecting a threshold", None) as advance:
        layout = read_layout(choice.files, label=choice.label)
        class_name, positive = _resolve_classes(choice, layout)
        columns = {"positive": positive, "label": choice.label}
        rows = read_point_rows(choice.files, columns, kind=layout.kind, calibration=calibration)
        for name in choice.request.classes:
            _check_class(name, rows.classes, choice.files[0], flag=f"--hold '{name}: ...'")
        check_largest_weight(choice.largest_weight, rows.weights, name=LARGEST)
        rows = _note_seen_rows(rows, choice)
        advance(0)
        result: Result | TargetUnreachable
        try:
            result = _name_flags(_select(choice, rows, class_name, calibration))
        except TargetUnreachable as error:
            result = error
    lone = choice.positive if layout.lone else None
    return ThresholdResult(result, rows, choice.request, saved, lone)


def _note_seen_rows(rows: PointRows, choice: ThresholdOptions) -> PointRows:
    """Add a note if the calibrator was fitted on these rows without --fitted-here."""
    if not rows.seen or choice.fitted_here:
        return rows
    note = (
        f"the calibrator of {choice.calibrator} was fitted on these rows, or on "
        "some of them, which counts as --fitted-here"
    )
    return replace(rows, notes=(*rows.notes, note))


def _select(
    choice: ThresholdOptions,
    rows: PointRows,
    class_name: str | None,
    calibration: FileCalibration | None,
) -> Result:
    request = choice.request
    here = choice.fitted_here or rows.seen
    fitted = calibration.calibrator if here and calibration is not None else None
    options: dict[str, Any] = {
        **rows.scores,
        "confidence": request.confidence,
        "weights": rows.weights,
        "largest_weight": choice.largest_weight,
        "classes": rows.classes,
        "label_use": LabelUse(candidates=choice.candidates, calibrator=fitted),
        "rng": choice.seed,
    }
    if request.band:
        act, clear = request.targets
        return select_band(rows.labels, act=act, clear=clear, positive=class_name, **options)
    options |= {"maximise": request.maximise, "minimise": request.minimise}
    if len(request.classes) > 1:
        return select_each(rows.labels, hold=dict(request.hold), **options)
    return select(rows.labels, hold=request.targets, positive=class_name, **options)


def _name_flags(result: Result) -> Result:
    """Name flags instead of arguments in the notes."""
    if isinstance(result, OperatingPoints):
        points = {
            class_name: name_weight_setting(point, LARGEST)
            for class_name, point in result.points.items()
        }
        return replace(result, points=points)
    if isinstance(result, Band):
        return replace(
            result,
            upper=name_weight_setting(result.upper, LARGEST),
            lower=name_weight_setting(result.lower, LARGEST),
        )
    return name_weight_setting(result, LARGEST)


def _resolve_classes(choice: ThresholdOptions, layout: Layout) -> tuple[str | None, str | None]:
    """Return the class to act on (None: the library's default), and `positive` for the reader."""
    classes, positive = choice.request.classes, choice.positive
    _check_any_class(choice.request)
    only = classes[0] if len(classes) == 1 else None
    if layout.lone:
        return only, positive
    _check_classes(choice, layout.classes)
    if len(classes) > 1:
        return None, None
    if len(layout.classes) == 2:
        both = None if _judges_any_class(choice.request) else positive
        return only or both, only or positive
    class_name = only or positive
    if class_name is None and not _any_class(choice.request):
        raise _missing_class_error(choice, layout)
    return class_name, None


def _check_classes(choice: ThresholdOptions, classes: Sequence[str]) -> None:
    """Refuse unknown or contradictory class names."""
    targeted, positive, file = choice.request.classes, choice.positive, choice.files[0]
    if positive is not None:
        _check_class(positive, classes, file, flag=f"--positive {positive}")
    for name in targeted:
        _check_class(name, classes, file, flag=f"--hold '{name}: ...'")
    other = next((name for name in targeted if positive not in (None, name)), None)
    if other is not None:
        raise InputError(
            f"--positive {positive} and the target of '{other}' name different classes: leave "
            "--positive out."
        )


def _check_any_class(request: TargetRequest) -> None:
    any_class = [t for t in request.targets if getattr(t.rate, "of", "") == "top-label"]
    if request.classes and any_class:
        raise InputError(
            f"--hold '{request.classes[0]}: {any_class[0]}': accuracy is about predictions of any "
            "class: leave the class out, or hold its precision."
        )


def _judges_any_class(request: TargetRequest) -> bool:
    """Whether a rate is that of predictions of any class, such as accuracy."""
    return any(getattr(rate, "of", "") == "top-label" for rate in _rates(request))


def _any_class(request: TargetRequest) -> bool:
    """Whether the rates are about predictions of any class."""
    return all(getattr(rate, "of", "class") != "class" for rate in _rates(request))


def _rates(request: TargetRequest) -> list[Rate | Cost]:
    aims = (request.maximise, request.minimise)
    return [
        *(target.rate for target in request.targets),
        *(rate for rate in aims if rate is not None),
    ]


def _missing_class_error(choice: ThresholdOptions, layout: Layout) -> InputError:
    request, file, first = choice.request, choice.files[0], layout.classes[0]
    flag = "--act" if request.band else "--hold"
    like = (
        f"{flag} '{first}: {request.targets[0]}'"
        if request.targets
        else f"--positive {quote(first)}"
    )
    return InputError(
        f"{file} has {len(layout.classes)} classes: name the one to act on, like {like}, or "
        "hold accuracy to accept predictions of any class."
    )


def _check_class(class_name: str, classes: Sequence[str], file: Path, *, flag: str) -> None:
    if class_name in classes:
        return
    near = get_close_matches(class_name, classes, n=1)
    meant = f" (did you mean '{near[0]}'?)" if near else ""
    listed = ", ".join(f"'{name}'" for name in classes[:8])
    more = f" and {len(classes) - 8} more" if len(classes) > 8 else ""
    raise InputError(
        f"{flag}: '{class_name}' is not a class of {file}{meant}: choose among {listed}{more}."
    )


def _read_calibration(path: Path | None) -> tuple[FileCalibration | None, dict[str, Any] | None]:
    """Load the calibrator and its saved form."""
    if path is None:
        return None, None
    saved = read_json(path, what="calibrator", maker="calibrate -o", flag="--calibrator")
    calibrator, floor = build_calibrator(saved, path)
    return FileCalibration(calibrator, floor, path), saved
