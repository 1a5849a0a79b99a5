"""A point as a file: strict JSON, written whole, with the calibrator that its scores go through."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibrant.errors import InputError
from calibrant.files.strict_json import read_json, write_json
from calibrant.inputs.row_sketch import RowSketch

if TYPE_CHECKING:
    from calibrant.thresholds import Band, OperatingPoint, OperatingPoints
    from calibrant.workflows.point_rows import Calibration

__all__ = ["PointFile", "read_point", "write_point"]

MAKER = "threshold -o"


@dataclass(frozen=True)
class PointFile:
    """What a point file holds.

    Parameters
    ----------
    path : the file
    result : what decides: one point, one for each of several classes, or a band
    calibration : what scores go through first, or None
    chosen_on : the fingerprint of the rows that chose the point, or None where it is not known
    chosen_by : a sketch of these rows, which knows a part of them again; None in older files
    """

    path: Path
    result: OperatingPoint | OperatingPoints | Band
    calibration: Calibration | None
    chosen_on: str | None = None
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
        """The only point; a file with several is refused."""
        if len(self.points) > 1:
            raise InputError(
                f"{self.path} holds {len(self.points)} thresholds, but one is needed here: choose "
                "a point of one class."
            )
        return self.points[0]

    @property
    def classes(self) -> list[str]:
        """The classes that the scores are of, as text."""
        return [str(name) for name in self.points[0].classes]


def write_point(
    saved: Mapping[str, Any],
    path: Path,
    *,
    calibrator: Mapping[str, Any] | None,
    chosen_on: Mapping[str, Any],
    name: str = "-o",
) -> None:
    """Write what `to_dict` gave."""
    more = {} if calibrator is None else {"calibrator": dict(calibrator)}
    write_json({**saved, "chosen_on": dict(chosen_on), **more}, path, name=name)


def read_point(path: Path, *, flag: str = "--point") -> PointFile:
    """Load a point; what is damaged, newer or something else is refused in one sentence."""
    saved = read_json(path, what="point", maker=MAKER, flag=flag)
    _check_kind(saved, path)
    try:
        result = _rebuilt(saved)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    rows = saved.get("chosen_on")
    fingerprint = rows.get("fingerprint") if isinstance(rows, Mapping) else None
    calibration = _calibration(saved.get("calibrator"), path)
    return PointFile(path, result, calibration, fingerprint, _sketch(rows, path))


def _sketch(rows: Any, path: Path) -> RowSketch | None:
    saved = rows.get("sketch") if isinstance(rows, Mapping) else None
    if saved is None:
        return None
    try:
        return RowSketch.from_dict(saved)
    except (KeyError, TypeError, ValueError):
        raise InputError(f"{path} is damaged: what it tells of its rows cannot be read.") from None


def _rebuilt(saved: Mapping[str, Any]) -> OperatingPoint | OperatingPoints | Band:
    from calibrant.thresholds import Band, OperatingPoint, OperatingPoints

    if "points" in saved:
        found = OperatingPoints.from_dict(saved)
        if not found.points:
            raise InputError("it holds no point, so there is nothing to decide by.")
        return found
    return Band.from_dict(saved) if "upper" in saved else OperatingPoint.from_dict(saved)


def _check_kind(saved: Any, path: Path) -> None:
    """Name what was taken for a point."""
    from calibrant.thresholds.saved_point import FORMAT

    known = isinstance(saved, Mapping)
    if known and "method" in saved and "params" in saved:
        raise InputError(
            f"{path} is a calibrator, not a point: name a file that {MAKER} wrote (a calibrator "
            "goes with calibrate --apply)."
        )
    if known and saved.get("reached") is False and not saved.get("points"):
        raise InputError(
            f"{path} says that no threshold was reached, so there is nothing to decide by: choose "
            "a point first."
        )
    if not known or not {"threshold", "points", "upper"} & set(saved):
        raise InputError(f"{path} is not a saved point: name a file that {MAKER} wrote.")
    version = saved.get("format")
    if isinstance(version, bool) or not isinstance(version, int) or not 1 <= version <= FORMAT:
        raise InputError(
            f"{path} has format {json.dumps(version)}, but this version of Calibrant reads formats "
            f"up to {FORMAT}: upgrade calibrant, or choose the point again."
        )


def _calibration(saved: Any, path: Path) -> Calibration | None:
    if saved is None:
        return None
    from calibrant.workflows.calibrator_file import calibrator_of
    from calibrant.workflows.point_rows import Calibration

    calibrator, floor = calibrator_of(saved, path)
    return Calibration(calibrator, floor, path)
