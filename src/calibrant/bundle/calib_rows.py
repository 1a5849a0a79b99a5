"""The calibrate rows that travel with a bundle: a model's logits and the true class, no inputs."""

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

__all__ = ["FILE", "CalibRows"]

FILE = "calib.npz"
"""Name of the file in a bundle's folder."""

_ARRAYS: Mapping[str, str] = {"logits": "f", "codes": "i", "weights": "f", "largest_weight": "f"}
"""The arrays of the file, with the kind of number in each; the last two may be lacking."""

_AGAIN = "pack it again, or get a fresh copy"
_DAMAGE = (
    ArithmeticError, AttributeError, EOFError, LookupError, MemoryError, NotImplementedError,
    OSError, RuntimeError, TypeError, ValueError, zipfile.BadZipFile,
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class CalibRows:
    """Labelled scores that chose nothing but the calibrator and the points of a bundle.

    With them thresholds can be explored and promises certified wherever the bundle is, without the
    rows themselves: neither texts nor columns nor images are kept.

    Parameters
    ----------
    logits : (n, K) the model's own, in the order of the bundle's classes; of two classes log-odds
        (n,) of the second will do
    codes : (n,) position of the true class; -1 where a row belongs to none
    weights : (n,) inverse inclusion probabilities, or None
    largest_weight : the most that any row could weigh by the design, or None where nobody has said

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
        object.__setattr__(self, "logits", _fixed(logits))
        object.__setattr__(self, "codes", _fixed(codes))
        object.__setattr__(self, "weights", None if weights is None else _fixed(weights))
        check_largest_weight(
            self.largest_weight, weights, name="the calibrate rows' largest_weight"
        )

    def __len__(self) -> int:
        return len(self.codes)

    @cached_property
    def hash(self) -> str:
        """The SHA-256 of the numbers, however they are stored."""
        whole = hashlib.sha256(f"calib rows {self.logits.shape}".encode("ascii"))
        for name, array in self._arrays().items():
            whole.update(name.encode("ascii"))
            whole.update(array.astype(f"<{_ARRAYS[name]}8", copy=False).tobytes())
        return whole.hexdigest()

    @cached_property
    def unordered_hash(self) -> str:
        """The SHA-256 of logits and true classes, the same in whatever order the rows come.

        Weights do not count: the same labels say the same, however they are weighted.

        Examples
        --------
        >>> rows = CalibRows([[2.0, 0.0], [0.5, 1.5]], [0, 1])
        >>> rows.unordered_hash == CalibRows([[0.5, 1.5], [2.0, 0.0]], [1, 0]).unordered_hash
        True
        """
        table = np.column_stack([self.logits, self.codes]).astype("<f8") + 0.0  # no -0.0
        rows = np.sort(table.view(f"V{table.itemsize * table.shape[1]}"), axis=0)
        whole = hashlib.sha256(f"unordered calib rows {self.logits.shape}".encode("ascii"))
        whole.update(rows.tobytes())
        return whole.hexdigest()

    def to_bytes(self) -> bytes:
        """Return the file: numpy's own format, and for the same rows always the same bytes."""
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as folder:  # not packed tighter: zlib's bytes vary
            for name, array in self._arrays().items():
                entry = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
                entry.create_system = 3  # the same on every system
                part = io.BytesIO()
                np.lib.format.write_array(part, _short(name, array), (1, 0), allow_pickle=False)
                folder.writestr(entry, part.getvalue())
        return out.getvalue()

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Rebuild from `to_bytes`; raise InputError where that is not what it is."""
        try:
            found = _read(data)
        except _DAMAGE as error:
            raise InputError(
                f"it is not a file of calibrate rows ({type(error).__name__})."
            ) from error
        return cls(**found)

    @classmethod
    def read(cls, folder: str | os.PathLike[str], manifest: Mapping[str, Any]) -> Self | None:
        """Read those of a bundle; None where it has none, `BundleError` where they are damaged.

        Parameters
        ----------
        folder : of the bundle
        manifest : of the bundle; the file must have the hash that it gives
        """
        digest = manifest.get("files", {}).get(FILE)
        if digest is None:
            return None
        path = Path(folder) / FILE
        try:
            data = path.read_bytes()
        except OSError as error:
            raise BundleError(f"{path} cannot be read: {error.strerror}: {_AGAIN}.") from None
        if hashlib.sha256(data).hexdigest() != digest:
            raise BundleError(f"{path} was changed after the bundle was loaded: load it again.")
        try:
            rows = cls.from_bytes(data)
            rows.check_classes(len(manifest["classes"]))
        except InputError as error:
            raise BundleError(f"{path} is damaged: {str(error).rstrip('.')}: {_AGAIN}.") from error
        return rows

    def check_classes(self, n_classes: int) -> None:
        """Refuse rows with more or fewer columns than there are classes."""
        if self.logits.shape[1] != n_classes:
            raise InputError(
                f"the calibrate rows have {self.logits.shape[1]} logits each, but there are "
                f"{n_classes} classes: give one column for each."
            )

    def _arrays(self) -> dict[str, NDArray[Any]]:
        found = {"logits": self.logits, "codes": self.codes, "weights": self.weights}
        if self.largest_weight is not None:
            found["largest_weight"] = np.array([self.largest_weight], dtype=np.float64)
        return {name: array for name, array in found.items() if array is not None}


def _codes(given: Any, n: int, n_classes: int) -> IntArray:
    codes = np.asarray(given)
    if codes.shape != (n,) or codes.dtype.kind not in "iu":
        raise InputError(
            f"the calibrate rows' codes must be {n:,} whole numbers, one for each row of logits, "
            f"got {codes.dtype} of shape {codes.shape}."
        )
    if codes.min() < -1 or codes.max() >= n_classes:
        raise InputError(
            f"the calibrate rows' codes must be positions from 0 to {n_classes - 1}, or -1 for rows"
            f" of no class, got {codes.min()} to {codes.max()}."
        )
    return codes.astype(np.int64)


def _fixed(array: NDArray[Any]) -> NDArray[Any]:
    """Return the same numbers so that nobody writes into them."""
    own = np.ascontiguousarray(array).view()
    own.flags.writeable = False
    return own


def _short(name: str, array: NDArray[Any]) -> NDArray[Any]:
    """Return half as many bytes where they hold the same numbers: models give float32."""
    with np.errstate(over="ignore"):
        short = array.astype(f"<{_ARRAYS[name]}4")
    whole = array.astype(f"<{_ARRAYS[name]}8", copy=False)
    return short if np.array_equal(short, whole) else whole


def _read(data: bytes) -> dict[str, Any]:
    with np.load(io.BytesIO(data), allow_pickle=False) as folder:
        found: dict[str, Any] = {name: folder[name] for name in folder.files}
    if not {"logits", "codes"} <= set(found) <= set(_ARRAYS):
        raise ValueError(f"arrays {sorted(found)}")
    for name, array in found.items():
        if array.dtype.kind != _ARRAYS[name]:
            raise TypeError(f"{name} is {array.dtype}")
    if "largest_weight" in found:
        (found["largest_weight"],) = found["largest_weight"].tolist()
    return found
