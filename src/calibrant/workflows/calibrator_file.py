"""Calibrator files: strict JSON, written atomically."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibrant.errors import InputError
from calibrant.files.strict_json import read_json, write_json

if TYPE_CHECKING:
    from calibrant.calibrators import Calibrator


def write_calibrator(saved: Mapping[str, Any], path: Path, *, name: str = "-o") -> None:
    """Write the dict that `Calibrator.to_dict` returned."""
    write_json(saved, path, name=name)


def read_calibrator(path: Path, *, flag: str = "--apply") -> tuple[Calibrator, float]:
    """Load a calibrator and its replacement for a probability of 0; `flag` named the file."""
    saved = read_json(path, what="calibrator", maker="calibrate -o", flag=flag)
    return build_calibrator(saved, path)


def build_calibrator(saved: Any, path: Path) -> tuple[Calibrator, float]:
    """Build a calibrator from the content of the file `path`."""
    from calibrant.bundle.calibration import BundleCalibration

    if isinstance(saved, Mapping) and "params" not in saved and "threshold" in saved:
        raise InputError(
            f"{path} is a point, not a calibrator: name a file written by calibrate -o."
        )
    try:
        calibration = BundleCalibration.from_dict(saved)
        return calibration.calibrator, calibration.zero_as
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise InputError(
            f"{path} is a damaged calibrator ({type(error).__name__}): fit and save it again."
        ) from error
