"""Score files: resolution of paths and choice of reader."""

from __future__ import annotations

from pathlib import Path

from calibrant.files.csv import CsvSource
from calibrant.files.find import FileKind, Paths, permission_error, resolve_files, suffix_of
from calibrant.files.jsonl import JsonlSource
from calibrant.files.parquet import ParquetSource
from calibrant.files.source import ColumnOptions, Source
from calibrant.scores.npz import NpzSource

__all__ = ["Paths", "count_rows", "open_source", "score_files"]

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
