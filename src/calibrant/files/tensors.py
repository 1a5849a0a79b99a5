"""Arrays in the safetensors format, without torch."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import InputError

_TYPES: dict[str, np.dtype[Any]] = {"F32": np.dtype("<f4"), "F64": np.dtype("<f8")}
_NAMES = {kind: name for name, kind in _TYPES.items()}
_ALIGN = 8
_LONGEST = 100_000_000  # Longest header that the format allows, in bytes


def write_tensors(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write arrays of 32-bit or 64-bit floating-point numbers.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "model.safetensors"
    >>> write_tensors(file, {"weight": np.eye(2, dtype=np.float32)})
    >>> read_tensors(file)["weight"].tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    header, parts, end = {}, [], 0
    # The format wants wide numbers first, so that all are aligned.
    for name, array in sorted(arrays.items(), key=lambda item: (-item[1].itemsize, item[0])):
        data = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
        span = [end, end + data.nbytes]
        header[name] = {
            "dtype": _NAMES[data.dtype], "shape": list(data.shape), "data_offsets": span
        }  # fmt: skip
        parts.append(data)
        end = span[1]
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % _ALIGN)
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little"))
        file.write(text)
        for part in parts:
            file.write(part.tobytes())


def read_tensors(path: Path) -> dict[str, NDArray[Any]]:
    """Read all arrays of a file; a damaged one raises `InputError`."""
    try:
        content = path.read_bytes()
        size = int.from_bytes(content[:8], "little")
        if not 0 < size <= min(len(content) - 8, _LONGEST):
            raise ValueError("the header is cut off")
        header = json.loads(content[8 : 8 + size])
        data = content[8 + size :]
        return {
            name: _read_array(entry, data)
            for name, entry in header.items()
            if name != "__metadata__"
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"{path.name} is damaged ({error}): pack it again, or get a fresh copy."
        ) from error


def _read_array(entry: Mapping[str, Any], data: bytes) -> NDArray[Any]:
    kind, (start, end) = _TYPES[entry["dtype"]], entry["data_offsets"]
    shape = tuple(int(n) for n in entry["shape"])
    if not 0 <= start <= end <= len(data) or end - start != math.prod(shape) * kind.itemsize:
        raise ValueError("an array is cut off")
    return np.frombuffer(data[start:end], dtype=kind).reshape(shape)
