"""A calibrator as a file: strict JSON, written whole; damage is told in one sentence."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibrant.errors import InputError
from calibrant.files.strict_json import read_json, write_json

if TYPE_CHECKING:
    from calibrant.calibrators import Calibrator

__all__ = ["calibrator_of", "read_calibrator", "write_calibrator"]


def write_calibrator(saved: Mapping[str, Any], path: Path, *, name: str = "-o") -> None:
    """Write what `Calibrator.to_dict` gave."""
    write_json(saved, path, name=name)


def read_calibrator(path: Path, *, flag: str = "--apply") -> tuple[Calibrator, float]:
    """Load a calibrator of any method, and what a probability of 0 counts as for it.

    `flag` is the option that named the file.
    """
    saved = read_json(path, what="calibrator", maker="calibrate -o", flag=flag)
    return calibrator_of(saved, path)


def calibrator_of(saved: Any, path: Path) -> tuple[Calibrator, float]:
    """Rebuild a calibrator that was read from the file `path`."""
    from calibrant.bundle.calibration import BundleCalibration

    if isinstance(saved, Mapping) and "params" not in saved and "threshold" in saved:
        raise InputError(
            f"{path} is a point, not a calibrator: name a file that calibrate -o wrote."
        )
    try:
        found = BundleCalibration.from_dict(saved)
        return found.calibrator, found.zero_as
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise InputError(
            f"{path} is a damaged calibrator ({type(error).__name__}): fit and save it again."
        ) from error
