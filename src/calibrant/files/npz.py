"""Lazy reading of numpy archives, without unpickling."""

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


def read_npz(file: Path) -> Mapping[str, NDArray[Any]]:
    """Return the arrays of an archive by name; each is read on first access."""
    with _open_archive(file) as archive:
        return _LazyArrays(file, archive.files)


class _LazyArrays(Mapping[str, NDArray[Any]]):
    """The arrays of an archive, cached on first access."""

    def __init__(self, file: Path, names: list[str]) -> None:
        self._file = file
        self._names = dict.fromkeys(names)
        self._cache: dict[str, NDArray[Any]] = {}

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name not in self._names:
            raise KeyError(name)
        if name not in self._cache:
            with _open_archive(self._file) as archive:
                self._cache[name] = _read_member(archive, name, self._file)
        return self._cache[name]

    def __contains__(self, name: object) -> bool:
        return name in self._names  # without reading it

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


@contextmanager
def _open_archive(file: Path) -> Iterator[Any]:
    """Open an archive; raise `InputError` if it is damaged."""
    try:
        loaded = np.load(file, allow_pickle=False)
        if not isinstance(loaded, np.lib.npyio.NpzFile):
            raise InputError(f"{file} is a single array: save an archive with numpy.savez.")
        with loaded as archive:
            yield archive
    except PermissionError:
        raise
    except RuntimeError as error:  # a password, or an unknown compression
        raise InputError(
            f"{file} cannot be unpacked ({reason_of(error)}): save it again with numpy.savez, "
            "without a password."
        ) from None
    except MemoryError:
        raise InputError(f"{file} does not fit into memory: save it in smaller parts.") from None
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"{file} is damaged, truncated or not a numpy archive: save it again with numpy.savez."
        ) from None


def _read_member(archive: Any, name: str, file: Path) -> NDArray[Any]:
    try:
        _check_size(archive.zip, name, file)
        return np.asarray(archive[name])
    except ValueError as error:
        if isinstance(error, InputError) or "pickle" not in str(error):
            raise
        raise InputError(
            f"{file}: {name} contains Python objects, which are never unpickled: "
            "save it as numbers or as text (dtype str)."
        ) from None


def _check_size(archive: zipfile.ZipFile, name: str, file: Path) -> None:
    """Reject an array whose header declares more bytes than there are, before allocating."""
    member_name = name if name in archive.namelist() else f"{name}.npy"
    with archive.open(member_name) as member:
        if member.read(6) != np.lib.format.MAGIC_PREFIX:
            return  # not an array: numpy returns it as bytes
        member.seek(0)
        read = np.lib.format.read_array_header_1_0
        if np.lib.format.read_magic(member) != (1, 0):
            read = np.lib.format.read_array_header_2_0
        shape, _, kind = read(member)
        n_bytes = archive.getinfo(member_name).file_size - member.tell()
    n_declared = math.prod(shape) * kind.itemsize
    if n_declared > n_bytes and not kind.hasobject:
        raise InputError(
            f"{file} is damaged: {name} declares {n_declared:,} bytes but has {n_bytes:,}: save "
            "it again with numpy.savez."
        )
