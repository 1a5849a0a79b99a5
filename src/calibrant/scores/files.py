"""Score files: resolution of paths and choice of reader."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from calibrant.errors import InputError
from calibrant.files.csv import CsvSource
from calibrant.files.find import FileKind, Paths, permission_error, resolve_files, suffix_of
from calibrant.files.jsonl import JsonlSource
from calibrant.files.npz import read_npz
from calibrant.files.parquet import ParquetSource
from calibrant.files.source import ColumnOptions, Source

__all__ = ["NpzSource", "Paths", "count_rows", "open_source", "score_files"]

_SINGULAR = {"groups": "group", "ids": "id"}  # column names in tables


class NpzSource:
    """An npz archive, presented as a table."""

    def __init__(self, file: Path, ask: ColumnOptions) -> None:
        self.file = file
        self._ask = ask

    @cached_property
    def _arrays(self) -> Mapping[str, NDArray[Any]]:
        return read_npz(self.file)

    @cached_property
    def _columns(self) -> Mapping[str, tuple[str, NDArray[Any]]]:
        """Column name -> (display name, values)."""
        arrays = self._arrays
        ask = self._ask
        columns: dict[str, tuple[str, NDArray[Any]]] = {}
        labels = "labels" if ask.label == "label" and "label" not in arrays else ask.label
        if labels in arrays:
            columns[ask.label] = (labels, _label_names(arrays, labels, self.file))
        columns |= _score_columns(arrays, self.file)
        for name, plural in ((ask.weight, "weights"), (ask.group, "groups"), (ask.ids, "ids")):
            if name is None:
                continue
            key = name if name in arrays else plural
            if key in arrays:
                columns[name] = (key, arrays[key])
        self._check_lengths(columns)
        return columns | self._others(columns) if ask.whole else columns

    def _others(
        self, columns: Mapping[str, tuple[str, NDArray[Any]]]
    ) -> dict[str, tuple[str, NDArray[Any]]]:
        """Return the remaining arrays with one value per row, as columns."""
        used = {"classes", *(display_name.split("[")[0] for display_name, _ in columns.values())}
        rows = len(next(iter(columns.values()))[1]) if columns else 0
        others = {}
        for key, values in self._arrays.items():
            name = _SINGULAR.get(key, key)
            if key in used or values.shape != (rows,):
                continue
            others[key if name in columns or name in self._arrays else name] = (key, values)
        return others

    @property
    def left_out(self) -> tuple[str, ...]:
        """Names of the arrays that are not columns."""
        used = {display_name.split("[")[0] for display_name, _ in self._columns.values()}
        return tuple(key for key in self._arrays if key not in used and key != "classes")

    def _check_lengths(self, columns: Mapping[str, tuple[str, NDArray[Any]]]) -> None:
        rows = None
        for key, values in columns.values():
            if values.ndim != 1:
                raise InputError(
                    f"{self.file}: {key} must have shape (n,), got {values.shape}: "
                    "give one value per row, not one-hot rows."
                )
            if rows is not None and len(values) != rows[1]:
                raise InputError(
                    f"{self.file}: {rows[0]} and {key} must have the same length, got {rows[1]:,} "
                    f"and {len(values):,}: give one entry per row."
                )
            rows = rows or (key, len(values))

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return list(self._columns)

    @property
    def display_names(self) -> tuple[tuple[str, str], ...]:
        """Display names of the columns: the arrays they come from."""
        return tuple((name, display_name) for name, (display_name, _) in self._columns.items())

    @cached_property
    def pair(self) -> tuple[str, str] | None:
        """Names of the two classes of `probs` or `logits` of shape (n,)."""
        lone = {"prob", "logit"} & set(self._columns)
        classes = self._arrays.get("classes")
        if not lone or classes is None:
            return None
        negative, positive = _class_names(classes, 2, f"{lone.pop()}s", self.file)
        return negative, positive

    def batches(
        self, numbers: Sequence[str], words: Sequence[str], batch_rows: int
    ) -> Iterator[pa.RecordBatch]:
        """Yield record batches; the archive itself is read whole."""
        columns = {name: self._columns[name] for name in dict.fromkeys([*numbers, *words])}
        n = len(next(iter(columns.values()))[1])
        for start in range(0, n, batch_rows):
            part = {
                name: self._arrow(display_name, values[start : start + batch_rows])
                for name, (display_name, values) in columns.items()
            }
            yield pa.record_batch(part)

    def estimate(self) -> int:
        """Return the number of rows, from the largest first dimension in the headers."""
        try:
            with zipfile.ZipFile(self.file) as archive:
                return max((_count_rows(archive, name) for name in archive.namelist()), default=0)
        except (zipfile.BadZipFile, zlib.error, ValueError, OSError, RuntimeError):
            return 0  # reading it will report the problem

    def _arrow(self, display_name: str, values: NDArray[Any]) -> pa.Array:
        try:
            return pa.array(np.ascontiguousarray(_to_native(values)))
        except (pa.ArrowException, UnicodeDecodeError):
            raise InputError(
                f"{self.file}: {display_name} has type {values.dtype}: give numbers or text."
            ) from None


def _to_native(values: NDArray[Any]) -> NDArray[Any]:
    """Convert values to a type supported by Arrow: native byte order, at most 64 bits."""
    if values.dtype.kind == "f" and values.dtype.itemsize > 8:
        with np.errstate(over="ignore"):  # infinities are reported later, with their row
            return values.astype(np.float64)
    return values if values.dtype.isnative else values.astype(values.dtype.newbyteorder("="))


def _label_names(arrays: Mapping[str, NDArray[Any]], key: str, file: Path) -> NDArray[Any]:
    """Map integer labels to names in `classes`, unless the names are numbers themselves."""
    labels, classes = arrays[key], arrays.get("classes")
    if classes is None or labels.ndim != 1 or labels.dtype.kind not in "iu":
        return labels
    names = np.array([str(name).strip() for name in np.ravel(classes).tolist()])
    if any(name.lstrip("-").isdigit() for name in names) or len(labels) == 0:
        return labels
    out_of_range = (labels < 0) | (labels >= len(names))
    if out_of_range.any():
        row = int(np.argmax(out_of_range))
        raise InputError(
            f"{file}, data row {row + 1}, {key}: label {labels[row]} is not a position in classes, "
            f"which has {len(names)} names: correct the label or the array classes."
        )
    return np.asarray(names[labels])


def _score_columns(
    arrays: Mapping[str, NDArray[Any]], file: Path
) -> dict[str, tuple[str, NDArray[Any]]]:
    """Split `probs` or `logits` into one column per class."""
    columns: dict[str, tuple[str, NDArray[Any]]] = {}
    for key, kind in (("probs", "prob"), ("logits", "logit")):
        if key not in arrays:
            continue
        values = arrays[key]
        if values.ndim == 1:
            columns[kind] = (key, values)
            continue
        if values.ndim != 2 or values.shape[1] < 2:
            raise InputError(
                f"{file}: {key} must have shape (n,) or (n, K) with K >= 2, got {values.shape}."
            )
        names = _class_names(arrays.get("classes"), values.shape[1], key, file)
        for k, name in enumerate(names):
            columns[f"{kind}_{name}"] = (f"{key}[:, {k}]", values[:, k])
    return columns


def _class_names(classes: NDArray[Any] | None, n_classes: int, key: str, file: Path) -> list[str]:
    if classes is None:
        return [str(k) for k in range(n_classes)]
    names = [str(name).strip() for name in np.ravel(classes).tolist()]
    if len(names) != n_classes:
        raise InputError(
            f"{file}: classes has {len(names)} names, but {key} has scores for {n_classes}: "
            "give one name per class."
        )
    duplicates = [name for i, name in enumerate(names) if name in names[:i]]
    if duplicates:
        raise InputError(f"{file}: classes contains '{duplicates[0]}' twice: names must be unique.")
    return names


def _count_rows(archive: zipfile.ZipFile, name: str) -> int:
    """Read the length of a member from its header."""
    with archive.open(name) as member:
        version = np.lib.format.read_magic(member)
        read = np.lib.format.read_array_header_1_0
        if version != (1, 0):
            read = np.lib.format.read_array_header_2_0
        shape = read(member)[0]
    return int(shape[0]) if shape else 0


_READERS: dict[str, type[CsvSource | JsonlSource | ParquetSource | NpzSource]] = {
    ".csv": CsvSource,
    ".csv.gz": CsvSource,
    ".jsonl": JsonlSource,
    ".jsonl.gz": JsonlSource,
    ".parquet": ParquetSource,
    ".npz": NpzSource,
}

_KIND = FileKind(
    noun="score file",
    suffixes=tuple(_READERS),
    shown=".csv, .parquet, .jsonl or .npz",
    needs="a label and scores for at least one row",
)


def score_files(path: Paths) -> list[Path]:
    """Resolve a path, folder, glob or a list of them to existing files of one type.

    Files in a folder and matches of a glob are sorted alphabetically.
    """
    return resolve_files(path, _KIND)


def open_source(file: Path, ask: ColumnOptions) -> Source:
    """Open a score file with the reader for its suffix."""
    try:
        return _READERS[suffix_of(file, _KIND)](file, ask)
    except PermissionError:
        raise permission_error(file) from None


def count_rows(path: Paths) -> int:
    r"""Estimate the number of rows without reading them.

    Exact for parquet and npz; text files are extrapolated from the length of the first rows.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "scores.csv"
    >>> _ = file.write_text("label,prob\n1,0.9\n0,0.2\n")
    >>> count_rows(file)
    2
    """
    return sum(open_source(file, ColumnOptions()).estimate() for file in score_files(path))
