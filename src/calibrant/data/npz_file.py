"""A numpy archive as its arrays; nothing in it is ever unpickled."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.data.score_columns import reason_of
from calibrant.errors import InputError

__all__ = ["read_npz"]


def read_npz(file: Path) -> dict[str, NDArray[Any]]:
    """Return all arrays of an archive by name, or say in a sentence why it cannot be read.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "two.npz"
    >>> np.savez(file, labels=[0, 1])
    >>> read_npz(file)
    {'labels': array([0, 1])}
    """
    try:
        found = np.load(file, allow_pickle=False)
        if not isinstance(found, np.lib.npyio.NpzFile):
            raise InputError(f"{file} is a single array: save an archive with numpy.savez.")
        with found as archive:
            return {name: _member(archive, name, file) for name in archive.files}
    except PermissionError:
        raise
    except RuntimeError as error:  # a password, or a compression that zipfile does not know
        raise InputError(
            f"{file} cannot be unpacked ({reason_of(error)}): save it again with numpy.savez, "
            "without a password."
        ) from None
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"{file} is damaged, cut short or not a numpy archive: save it again with numpy.savez."
        ) from None


def _member(archive: Any, name: str, file: Path) -> NDArray[Any]:
    try:
        return np.asarray(archive[name])
    except ValueError as error:
        if "pickle" not in str(error):
            raise
        raise InputError(
            f"{file}: {name} holds Python objects, which are never unpickled: "
            "save it as numbers or as text (dtype str)."
        ) from None
