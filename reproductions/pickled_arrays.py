"""Reader of Python 2 pickles of byte arrays that runs no code from the pickle."""

from __future__ import annotations

import io
import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import InputError

__all__ = ["read_pickled"]


def read_pickled(data: bytes, *, name: str = "the pickle") -> dict[str, Any]:
    """Return a pickled dict whose values are lists, numbers, texts and arrays of bytes.

    CIFAR is published as such files. A pickle is a program: it may import any function and call
    it, so loading a download as it comes hands the machine to whoever wrote it. Here the three
    names that numpy's arrays need are answered with classes of this file, which only keep what
    they are given; any other name is refused before anything runs. The array is then made from
    the kept bytes, its shape checked against their number.

    Texts of Python 2 come as bytes and are read as Latin-1, for file names in CIFAR are ASCII.

    Parameters
    ----------
    data : bytes of the file
    name : what errors call it

    Examples
    --------
    >>> read_pickled(pickle.dumps({"labels": [3, 8]}, protocol=2))
    {'labels': [3, 8]}
    >>> read_pickled(pickle.dumps({"labels": print}, protocol=2))
    Traceback (most recent call last):
    ...
    calibrant.errors.InputError: the pickle asks for '__builtin__.print', which plain data do not
    need: download it again from its publisher.
    """
    try:
        loaded = _Reader(io.BytesIO(data), encoding="bytes").load()
    except InputError as error:
        raise InputError(f"{name} {error}") from None
    except Exception as error:  # what a damaged pickle raises has no end
        raise InputError(
            f"{name} is not a readable pickle ({type(error).__name__}): download it again."
        ) from None
    if not isinstance(loaded, dict):
        raise InputError(f"{name} holds a {type(loaded).__name__}, not a dict: download it again.")
    return {_text(key): _plain(value, name) for key, value in loaded.items()}


class _Type:
    """Stand-in for a numpy dtype that keeps its code."""

    def __init__(self, letters: Any = b"", *_: Any) -> None:
        self.letters = _text(letters)

    def __setstate__(self, state: Any) -> None:
        """Byte order and the like, which bytes do not have."""


class _Array:
    """Stand-in for a numpy array that keeps its pickled state."""

    state: tuple[Any, ...] = ()

    def __init__(self, *_: Any) -> None:
        """Take what numpy's own maker is called with, which says nothing about the array."""

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.state = state


_STAND_INS: dict[tuple[str, str], Callable[..., Any]] = {
    ("numpy", "dtype"): _Type,
    ("numpy", "ndarray"): _Array,
    ("numpy.core.multiarray", "_reconstruct"): _Array,
}


class _Reader(pickle.Unpickler):
    """Unpickler that replaces the few allowed names by stand-ins."""

    def find_class(self, module: str, name: str) -> Any:
        stand_in = _STAND_INS.get((module, name))
        if stand_in is None:
            raise InputError(
                f"asks for {module + '.' + name!r}, which plain data do not need: download it "
                "again from its publisher."
            )
        return stand_in


def _plain(value: Any, name: str) -> Any:
    if isinstance(value, _Array):
        return _as_array(value, name)
    if isinstance(value, bytes):
        return _text(value)
    if isinstance(value, list):
        return [_plain(part, name) for part in value]
    return value


def _as_array(stand_in: _Array, name: str) -> NDArray[np.uint8]:
    try:
        _, shape, kind, column_major, data = stand_in.state
        fits = kind.letters == "u1" and isinstance(data, bytes) and len(data) == math.prod(shape)
    except (AttributeError, TypeError, ValueError):
        fits = False
    if not fits:
        raise InputError(f"{name} holds an array that is not of bytes: download it again.")
    return np.frombuffer(data, dtype=np.uint8).reshape(shape, order="F" if column_major else "C")


def _text(value: Any) -> Any:
    return value.decode("latin-1") if isinstance(value, bytes) else value
