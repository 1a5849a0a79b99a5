"""Operating point files: strict JSON, with the calibrator of their scores."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibrant.errors import InputError
from calibrant.files.atomic_write import read_json, write_json
from calibrant.inputs.row_sketch import RowSketch

if TYPE_CHECKING:
    from calibrant.thresholds import Band, OperatingPoint, OperatingPoints
    from calibrant.workflows.point_rows import FileCalibration

MAKER = "threshold -o"


@dataclass(frozen=True)
class PointFile:
    """Content of a point file."""

    path: Path
    result: OperatingPoint | OperatingPoints | Band  # one point, one per class, or a band
    calibration: FileCalibration | None  # calibrator to apply first, or None
    chosen_on: str | None = None  # fingerprint of the rows that chose the point, or None if unknown
    # sketch that recognises some of these rows; None in older files
    chosen_by: RowSketch | None = None

    @property
    def points(self) -> list[OperatingPoint]:
        """Every point of the file."""
        from calibrant.thresholds import Band, OperatingPoints

        if isinstance(self.result, OperatingPoints):
            return list(self.result.points.values())
        if isinstance(self.result, Band):
            return [self.result.upper, self.result.lower]
        return [self.result]

    @property
    def point(self) -> OperatingPoint:
        """The only point; several are refused."""
        if len(self.points) > 1:
            raise InputError(
                f"{self.path} holds {len(self.points)} thresholds, but one is needed here: choose "
                "a point of one class."
            )
        return self.points[0]

    @property
    def classes(self) -> list[str]:
        """Class names, as text."""
        return [str(name) for name in self.points[0].classes]


def write_point(
    saved: Mapping[str, Any],
    path: Path,
    *,
    calibrator: Mapping[str, Any] | None,
    chosen_on: Mapping[str, Any],
    name: str = "-o",
) -> None:
    """Write the dict that `to_dict` returned."""
    extra = {} if calibrator is None else {"calibrator": dict(calibrator)}
    write_json({**saved, "chosen_on": dict(chosen_on), **extra}, path, name=name)


def read_point(path: Path, *, flag: str = "--point") -> PointFile:
    """Load a point, or raise `InputError` if it is damaged, newer or something else."""
    saved = read_json(path, what="point", maker=MAKER, flag=flag)
    _check_kind(saved, path)
    try:
        result = _build_point(saved)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    rows = saved.get("chosen_on")
    fingerprint = rows.get("fingerprint") if isinstance(rows, Mapping) else None
    calibration = _read_calibration(saved.get("calibrator"), path)
    return PointFile(path, result, calibration, fingerprint, _read_sketch(rows, path))


def _read_sketch(rows: Any, path: Path) -> RowSketch | None:
    saved = rows.get("sketch") if isinstance(rows, Mapping) else None
    if saved is None:
        return None
    try:
        return RowSketch.from_dict(saved)
    except (KeyError, TypeError, ValueError):
        raise InputError(f"{path} is damaged: the sketch of its rows is not readable.") from None


def _build_point(saved: Mapping[str, Any]) -> OperatingPoint | OperatingPoints | Band:
    from calibrant.thresholds import Band, OperatingPoint, OperatingPoints

    if "points" in saved:
        points = OperatingPoints.from_dict(saved)
        if not points.points:
            raise InputError("it contains no point: choose one first.")
        return points
    return Band.from_dict(saved) if "upper" in saved else OperatingPoint.from_dict(saved)


def _check_kind(saved: Any, path: Path) -> None:
    """Refuse other files by their kind."""
    from calibrant.thresholds.saved_point import FORMAT

    is_object = isinstance(saved, Mapping)
    if is_object and "method" in saved and "params" in saved:
        raise InputError(
            f"{path} is a calibrator, not a point: name a file written by {MAKER} (use a "
            "calibrator with calibrate --apply)."
        )
    if is_object and saved.get("reached") is False and not saved.get("points"):
        raise InputError(
            f"{path} contains no threshold, because the target was not reached: choose "
            "a point first."
        )
    if not is_object or not {"threshold", "points", "upper"} & set(saved):
        raise InputError(f"{path} is not a saved point: name a file written by {MAKER}.")
    version = saved.get("format")
    if isinstance(version, bool) or not isinstance(version, int) or not 1 <= version <= FORMAT:
        raise InputError(
            f"{path} has format {json.dumps(version)}, but this version of Calibrant reads formats "
            f"up to {FORMAT}: upgrade calibrant, or choose the point again."
        )


def _read_calibration(saved: Any, path: Path) -> FileCalibration | None:
    if saved is None:
        return None
    from calibrant.workflows.calibrator_file import build_calibrator
    from calibrant.workflows.point_rows import FileCalibration

    calibrator, floor = build_calibrator(saved, path)
    return FileCalibration(calibrator, floor, path)
