"""From labelled score files to the point that was asked for, or to why there is none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from shlex import quote
from typing import Any

from calibrant.cli import interruption
from calibrant.cli.progress import progress
from calibrant.cli.targets import Asked
from calibrant.errors import InputError, TargetUnreachable
from calibrant.files.strict_json import read_json
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
from calibrant.workflows.calibrator_file import calibrator_of
from calibrant.workflows.point_rows import Calibration, PointRows, columns_of, rows_of_scores

__all__ = ["LARGEST", "Choice", "Found", "choose"]

LARGEST = "--largest-weight"
"""What the command line calls `largest_weight`."""

Result = OperatingPoint | OperatingPoints | Band


@dataclass(frozen=True)
class Choice:
    """What the command line asks for, checked as far as it goes without reading rows.

    Parameters
    ----------
    files : labelled score files
    asked : what is to be held and made best
    calibrator : the file of a calibrator that the scores go through first
    fitted_here : whether that was fitted on these rows; a calibrator that remembers its rows
        knows this by itself
    candidates : among how many models this one was chosen on these rows
    positive, label : about the columns
    seed : of the random order of tied rows
    largest_weight : the most that a row could weigh, or None
    """

    files: list[Path]
    asked: Asked
    calibrator: Path | None = None
    fitted_here: bool = False
    candidates: int = 1
    positive: str | None = None
    label: str = "label"
    seed: int = 0
    largest_weight: float | None = None


@dataclass(frozen=True)
class Found:
    """What came out, and what it came from.

    Parameters
    ----------
    result : one point, one for each class, two with a band between them, or why there is none
    rows : the rows it was chosen on
    asked : what was asked for
    calibrator : the saved calibrator that made the scores, or None
    positive : the class that a lone column was said to be of, or None
    """

    result: Result | TargetUnreachable
    rows: PointRows
    asked: Asked
    calibrator: dict[str, Any] | None = None
    positive: str | None = None

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
        """Whether everything that was asked for was reached."""
        return not any(isinstance(part, TargetUnreachable) for part in self.parts)

    @property
    def has_point(self) -> bool:
        """Whether there is anything to decide by."""
        return any(isinstance(part, OperatingPoint) for part in self.parts)


def choose(choice: Choice) -> Found:
    """Read the rows and look for thresholds; that there is none is an answer too."""
    calibration, saved = _calibration(choice.calibrator)
    with progress("looking for a threshold"):
        layout = columns_of(choice.files, label=choice.label)
        of, positive = _classes_asked(choice, layout)
        columns = {"positive": positive, "label": choice.label}
        rows = rows_of_scores(choice.files, columns, kind=layout.kind, calibration=calibration)
        for name in choice.asked.named:
            _check_class(name, rows.classes, choice.files[0], flag=f"--hold '{name}: ...'")
        check_largest_weight(choice.largest_weight, rows.weights, name=LARGEST)
        rows = _told_if_seen(rows, choice)
        interruption.check()
        result: Result | TargetUnreachable
        try:
            result = _in_flags(_selected(choice, rows, of, calibration))
        except TargetUnreachable as error:
            result = error
    lone = choice.positive if layout.lone else None
    return Found(result, rows, choice.asked, saved, lone)


def _told_if_seen(rows: PointRows, choice: Choice) -> PointRows:
    """Add a note where the calibrator knows rows that nobody said it was fitted on."""
    if not rows.seen or choice.fitted_here:
        return rows
    note = (
        f"the calibrator of {choice.calibrator} knows these rows: it was fitted on them, or on "
        "some of them, which counts as --fitted-here"
    )
    return replace(rows, notes=(*rows.notes, note))


def _selected(
    choice: Choice, rows: PointRows, of: str | None, calibration: Calibration | None
) -> Result:
    asked = choice.asked
    here = choice.fitted_here or rows.seen
    fitted = calibration.calibrator if here and calibration is not None else None
    options: dict[str, Any] = {
        **rows.scores,
        "confidence": asked.confidence,
        "weights": rows.weights,
        "largest_weight": choice.largest_weight,
        "classes": rows.classes,
        "label_use": LabelUse(candidates=choice.candidates, calibrator=fitted),
        "rng": choice.seed,
    }
    if asked.band:
        act, clear = asked.targets
        return select_band(rows.labels, act=act, clear=clear, positive=of, **options)
    options |= {"maximise": asked.maximise, "minimise": asked.minimise}
    if len(asked.named) > 1:
        return select_each(rows.labels, hold=dict(asked.hold), **options)
    return select(rows.labels, hold=asked.targets, positive=of, **options)


def _in_flags(result: Result) -> Result:
    """Return the result with notes that name flags."""
    if isinstance(result, OperatingPoints):
        named = {of: name_weight_setting(point, LARGEST) for of, point in result.points.items()}
        return replace(result, points=named)
    if isinstance(result, Band):
        return replace(
            result,
            upper=name_weight_setting(result.upper, LARGEST),
            lower=name_weight_setting(result.lower, LARGEST),
        )
    return name_weight_setting(result, LARGEST)


def _classes_asked(choice: Choice, layout: Layout) -> tuple[str | None, str | None]:
    """Return the class to act on (None: the library's default), and `positive` for the reader."""
    named, positive = choice.asked.named, choice.positive
    _check_any_class(choice.asked)
    only = named[0] if len(named) == 1 else None
    if layout.lone:
        return only, positive
    _check_classes(choice, layout.classes)
    if len(named) > 1:
        return None, None
    if len(layout.classes) == 2:
        both = None if _judges_any_class(choice.asked) else positive
        return only or both, only or positive
    of = only or positive
    if of is None and not _any_class(choice.asked):
        raise _no_class(choice, layout)
    return of, None


def _check_classes(choice: Choice, classes: Sequence[str]) -> None:
    """Refuse names of classes that the columns do not have, or that contradict each other."""
    named, positive, file = choice.asked.named, choice.positive, choice.files[0]
    if positive is not None:
        _check_class(positive, classes, file, flag=f"--positive {positive}")
    for name in named:
        _check_class(name, classes, file, flag=f"--hold '{name}: ...'")
    other = next((name for name in named if positive not in (None, name)), None)
    if other is not None:
        raise InputError(
            f"--positive {positive} and the target of '{other}' name different classes: leave "
            "--positive out."
        )


def _check_any_class(asked: Asked) -> None:
    any_class = [t for t in asked.targets if getattr(t.rate, "of", "") == "top-label"]
    if asked.named and any_class:
        raise InputError(
            f"--hold '{asked.named[0]}: {any_class[0]}': accuracy is about predictions of any "
            "class: leave the class out, or hold its precision."
        )


def _judges_any_class(asked: Asked) -> bool:
    """Whether a rate is that of predictions of any class, such as accuracy."""
    return any(getattr(rate, "of", "") == "top-label" for rate in _rates(asked))


def _any_class(asked: Asked) -> bool:
    """Whether the rates are about predictions of any class."""
    return all(getattr(rate, "of", "class") != "class" for rate in _rates(asked))


def _rates(asked: Asked) -> list[Rate | Cost]:
    aims = (asked.maximise, asked.minimise)
    return [
        *(target.rate for target in asked.targets),
        *(rate for rate in aims if rate is not None),
    ]


def _no_class(choice: Choice, layout: Layout) -> InputError:
    asked, file, first = choice.asked, choice.files[0], layout.classes[0]
    flag = "--act" if asked.band else "--hold"
    like = (
        f"{flag} '{first}: {asked.targets[0]}'" if asked.targets else f"--positive {quote(first)}"
    )
    return InputError(
        f"{file} has {len(layout.classes)} classes: say which one is acted on, like {like}, or "
        "hold accuracy to accept predictions of any class."
    )


def _check_class(of: str, classes: Sequence[str], file: Path, *, flag: str) -> None:
    if of in classes:
        return
    near = get_close_matches(of, classes, n=1)
    meant = f" (did you mean '{near[0]}'?)" if near else ""
    listed = ", ".join(f"'{name}'" for name in classes[:8])
    more = f" and {len(classes) - 8} more" if len(classes) > 8 else ""
    raise InputError(
        f"{flag}: '{of}' is not a class of {file}{meant}: choose among {listed}{more}."
    )


def _calibration(path: Path | None) -> tuple[Calibration | None, dict[str, Any] | None]:
    """Load the calibrator, and what a point file keeps of it."""
    if path is None:
        return None, None
    saved = read_json(path, what="calibrator", maker="calibrate -o", flag="--calibrator")
    calibrator, floor = calibrator_of(saved, path)
    return Calibration(calibrator, floor, path), saved
