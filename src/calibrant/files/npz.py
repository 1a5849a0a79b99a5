"""A numpy archive as its arrays, each read when it is asked for; nothing is ever unpickled."""

from __future__ import annotations

import math
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import InputError
from calibrant.files.source import reason_of

__all__ = ["read_npz"]


def read_npz(file: Path) -> Mapping[str, NDArray[Any]]:
    """Return the arrays of an archive by name, or say in a sentence why it cannot be read.

    An array is read when it is first asked for: others in the archive cost nothing.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "two.npz"
    >>> np.savez(file, labels=[0, 1])
    >>> found = read_npz(file)
    >>> list(found), found["labels"]
    (['labels'], array([0, 1]))
    """
    with _opened(file) as archive:
        return _Arrays(file, archive.files)


class _Arrays(Mapping[str, NDArray[Any]]):
    """The arrays of an archive; those that were asked for are kept."""

    def __init__(self, file: Path, names: list[str]) -> None:
        self._file = file
        self._names = dict.fromkeys(names)
        self._read: dict[str, NDArray[Any]] = {}

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name not in self._names:
            raise KeyError(name)
        if name not in self._read:
            with _opened(self._file) as archive:
                self._read[name] = _member(archive, name, self._file)
        return self._read[name]

    def __contains__(self, name: object) -> bool:
        return name in self._names  # without reading it

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


@contextmanager
def _opened(file: Path) -> Iterator[Any]:
    """Open an archive; say what is wrong with it in a sentence."""
    try:
        found = np.load(file, allow_pickle=False)
        if not isinstance(found, np.lib.npyio.NpzFile):
            raise InputError(f"{file} is a single array: save an archive with numpy.savez.")
        with found as archive:
            yield archive
    except PermissionError:
        raise
    except RuntimeError as error:  # a password, or a compression that zipfile does not know
        raise InputError(
            f"{file} cannot be unpacked ({reason_of(error)}): save it again with numpy.savez, "
            "without a password."
        ) from None
    except MemoryError:
        raise InputError(
            f"{file} holds more than fits into memory: save it in smaller parts."
        ) from None
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"{file} is damaged, cut short or not a numpy archive: save it again with numpy.savez."
        ) from None


def _member(archive: Any, name: str, file: Path) -> NDArray[Any]:
    try:
        _check_size(archive.zip, name, file)
        return np.asarray(archive[name])
    except ValueError as error:
        if isinstance(error, InputError) or "pickle" not in str(error):
            raise
        raise InputError(
            f"{file}: {name} holds Python objects, which are never unpickled: "
            "save it as numbers or as text (dtype str)."
        ) from None


def _check_size(archive: zipfile.ZipFile, name: str, file: Path) -> None:
    """Refuse an array whose header promises more bytes than there are, before room is made."""
    inside = name if name in archive.namelist() else f"{name}.npy"
    with archive.open(inside) as member:
        if member.read(6) != np.lib.format.MAGIC_PREFIX:
            return  # no array, which numpy gives as bytes
        member.seek(0)
        read = np.lib.format.read_array_header_1_0
        if np.lib.format.read_magic(member) != (1, 0):
            read = np.lib.format.read_array_header_2_0
        shape, _, kind = read(member)
        held = archive.getinfo(inside).file_size - member.tell()
    promised = math.prod(shape) * kind.itemsize
    if promised > held and not kind.hasobject:
        raise InputError(
            f"{file} is damaged: {name} promises {promised:,} bytes, but {held:,} are there; save "
            "it again with numpy.savez."
        )
