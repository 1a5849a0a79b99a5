"""Calibrate rows of a bundle: logits and true classes, without inputs."""

from __future__ import annotations

import hashlib
import io
import os
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from calibrant.calibrators.base.rows import two_columns
from calibrant.errors import BundleError, InputError
from calibrant.inputs import FloatArray, IntArray, as_logits, as_weights
from calibrant.thresholds.proof.largest_weight import check_largest_weight

FILE = "calib.npz"  # Name of the file in a bundle folder

_ARRAYS: Mapping[str, str] = {"logits": "f", "codes": "i", "weights": "f", "largest_weight": "f"}
"""The arrays of the file and their dtype kinds; the last two are optional."""

_REMEDY = "pack it again, or restore a copy"
_READ_ERRORS = (
    ArithmeticError, AttributeError, EOFError, LookupError, MemoryError, NotImplementedError,
    OSError, RuntimeError, TypeError, ValueError, zipfile.BadZipFile,
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class CalibRows:
    """Labelled scores used only for the calibrator and the operating points of a bundle.

    They allow exploring thresholds and certifying promises without the data: no texts, columns or
    images are stored.

    Parameters
    ----------
    logits : (n, K) uncalibrated logits in the order of the bundle's classes, or (n,) log-odds of
        the second of two classes
    codes : (n,) position of the true class; -1 for a row of no class
    weights : (n,) inverse inclusion probabilities, or None
    largest_weight : the largest weight possible under the sampling design, or None if unknown

    Examples
    --------
    >>> rows = CalibRows([[2.0, 0.0], [0.5, 1.5], [0.0, 0.1]], [0, 1, -1])
    >>> len(rows), rows.logits.shape, rows.hash[:12]
    (3, (3, 2), '5ea3d612d812')
    """

    logits: FloatArray
    codes: IntArray
    weights: FloatArray | None = None
    largest_weight: float | None = None

    def __post_init__(self) -> None:
        logits = as_logits(self.logits, name="the calibrate rows' logits").astype(np.float64)
        if logits.ndim == 1:
            logits = two_columns(logits)
        codes = _codes(self.codes, *logits.shape)
        weights = as_weights(self.weights, len(logits), name="the calibrate rows' weights")
        object.__setattr__(self, "logits", _read_only(logits))
        object.__setattr__(self, "codes", _read_only(codes))
        object.__setattr__(self, "weights", None if weights is None else _read_only(weights))
        check_largest_weight(
            self.largest_weight, weights, name="the calibrate rows' largest_weight"
        )

    def __len__(self) -> int:
        return len(self.codes)

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the values, independent of the storage type."""
        digest = hashlib.sha256(f"calib rows {self.logits.shape}".encode("ascii"))
        for name, array in self._arrays().items():
            digest.update(name.encode("ascii"))
            digest.update(array.astype(f"<{_ARRAYS[name]}8", copy=False).tobytes())
        return digest.hexdigest()

    @cached_property
    def unordered_hash(self) -> str:
        """SHA-256 of logits and true classes, independent of the row order.

        Weights are ignored, because they do not change which labels were used.

        Examples
        --------
        >>> rows = CalibRows([[2.0, 0.0], [0.5, 1.5]], [0, 1])
        >>> rows.unordered_hash == CalibRows([[0.5, 1.5], [2.0, 0.0]], [1, 0]).unordered_hash
        True
        """
        table = np.column_stack([self.logits, self.codes]).astype("<f8") + 0.0  # no -0.0
        rows = np.sort(table.view(f"V{table.itemsize * table.shape[1]}"), axis=0)
        digest = hashlib.sha256(f"unordered calib rows {self.logits.shape}".encode("ascii"))
        digest.update(rows.tobytes())
        return digest.hexdigest()

    def to_bytes(self) -> bytes:
        """Return the content of the npz file; equal rows give identical bytes."""
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as folder:  # uncompressed: the output of zlib varies
            for name, array in self._arrays().items():
                entry = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
                entry.create_system = 3  # independent of the platform
                part = io.BytesIO()
                np.lib.format.write_array(part, _narrow(name, array), (1, 0), allow_pickle=False)
                folder.writestr(entry, part.getvalue())
        return out.getvalue()

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Rebuild from `to_bytes`; raise `InputError` for invalid data."""
        try:
            arrays = _read_arrays(data)
        except _READ_ERRORS as error:
            raise InputError(
                f"it is not a valid file of calibrate rows ({type(error).__name__})."
            ) from error
        return cls(**arrays)

    @classmethod
    def read(cls, folder: str | os.PathLike[str], manifest: Mapping[str, Any]) -> Self | None:
        """Read the calibrate rows of a bundle; None if it has none, `BundleError` if damaged.

        Parameters
        ----------
        folder : the folder of the bundle
        manifest : the manifest of the bundle, with the hash of the file
        """
        digest = manifest.get("files", {}).get(FILE)
        if digest is None:
            return None
        path = Path(folder) / FILE
        try:
            data = path.read_bytes()
        except OSError as error:
            raise BundleError(f"{path} cannot be read: {error.strerror}: {_REMEDY}.") from None
        if hashlib.sha256(data).hexdigest() != digest:
            raise BundleError(f"{path} was changed after the bundle was loaded: load it again.")
        try:
            rows = cls.from_bytes(data)
            rows.check_classes(len(manifest["classes"]))
        except InputError as error:
            raise BundleError(f"{path} is damaged: {str(error).rstrip('.')}: {_REMEDY}.") from error
        return rows

    def check_classes(self, n_classes: int) -> None:
        """Raise `InputError` if the number of columns is not the number of classes."""
        if self.logits.shape[1] != n_classes:
            raise InputError(
                f"the calibrate rows have {self.logits.shape[1]} logits each, but there are "
                f"{n_classes} classes: give one column per class."
            )

    def _arrays(self) -> dict[str, NDArray[Any]]:
        arrays = {"logits": self.logits, "codes": self.codes, "weights": self.weights}
        if self.largest_weight is not None:
            arrays["largest_weight"] = np.array([self.largest_weight], dtype=np.float64)
        return {name: array for name, array in arrays.items() if array is not None}


def _codes(values: Any, n: int, n_classes: int) -> IntArray:
    codes = np.asarray(values)
    if codes.shape != (n,) or codes.dtype.kind not in "iu":
        raise InputError(
            f"the calibrate rows' codes must be {n:,} integers, one per row of logits, "
            f"got {codes.dtype} of shape {codes.shape}."
        )
    if codes.min() < -1 or codes.max() >= n_classes:
        raise InputError(
            f"the calibrate rows' codes must be positions from 0 to {n_classes - 1}, or -1 for rows"
            f" of no class, got {codes.min()} to {codes.max()}."
        )
    return codes.astype(np.int64)


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return a read-only view of an array."""
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


def _narrow(name: str, array: NDArray[Any]) -> NDArray[Any]:
    """Narrow an array to 32 bits if lossless, because models give float32."""
    with np.errstate(over="ignore"):
        narrow = array.astype(f"<{_ARRAYS[name]}4")
    full = array.astype(f"<{_ARRAYS[name]}8", copy=False)
    return narrow if np.array_equal(narrow, full) else full


def _read_arrays(data: bytes) -> dict[str, Any]:
    with np.load(io.BytesIO(data), allow_pickle=False) as folder:
        arrays: dict[str, Any] = {name: folder[name] for name in folder.files}
    if not {"logits", "codes"} <= set(arrays) <= set(_ARRAYS):
        raise ValueError(f"arrays {sorted(arrays)}")
    for name, array in arrays.items():
        if array.dtype.kind != _ARRAYS[name]:
            raise TypeError(f"{name} is {array.dtype}")
    if "largest_weight" in arrays:
        (arrays["largest_weight"],) = arrays["largest_weight"].tolist()
    return arrays
