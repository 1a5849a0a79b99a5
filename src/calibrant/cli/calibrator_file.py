"""A calibrator as a file: strict JSON, written whole; damage is told in one sentence."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibrant.errors import InputError

if TYPE_CHECKING:
    from calibrant.calibrators import Calibrator

__all__ = ["read_calibrator", "write_calibrator"]


def write_calibrator(saved: Mapping[str, Any], path: Path, *, name: str = "-o") -> None:
    """Write what `Calibrator.to_dict` gave."""
    from calibrant.data.whole_file import whole_file

    text = json.dumps(saved, allow_nan=False, ensure_ascii=False, indent=2)
    with whole_file(path, name=name) as draft:
        draft.write_text(f"{text}\n", encoding="utf-8", errors="backslashreplace")


def read_calibrator(path: Path) -> tuple[Calibrator, float]:
    """Load a calibrator of any method, and what a probability of 0 counts as for it."""
    import numpy as np

    from calibrant.calibrators import from_dict

    saved = _read(path)
    try:
        with np.errstate(all="ignore"):  # what a damaged one computes is judged, not warned about
            return from_dict(saved), _zero_as(saved, path)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise InputError(
            f"{path} is a damaged calibrator ({type(error).__name__}): fit and save it again."
        ) from error


def _zero_as(saved: Mapping[str, Any], path: Path) -> float:
    from calibrant.data.score_checks import FLOOR

    value = saved.get("zero_as", FLOOR)
    if isinstance(value, bool) or not isinstance(value, int | float) or not FLOOR <= value < 0.5:
        raise InputError(f"'zero_as' must be a small probability, got {value!r}: fit it again.")
    return float(value)


def _read(path: Path) -> Any:
    if not path.exists():
        raise InputError(f"--apply {path} does not exist: name a file that calibrate -o wrote.")
    if not path.is_file():
        raise InputError(f"--apply {path} is not a file: name a file that calibrate -o wrote.")
    try:
        return json.loads(path.read_text(encoding="utf-8"), parse_constant=_refuse)
    except PermissionError:
        raise InputError(f"{path} may not be read: ask for read permission on it.") from None
    except (ValueError, RecursionError):
        raise InputError(
            f"{path} is not a saved calibrator, for it is not JSON: name a file that calibrate -o "
            "wrote, or fit it again."
        ) from None


def _refuse(word: str) -> None:
    raise ValueError(f"{word} is not JSON")
