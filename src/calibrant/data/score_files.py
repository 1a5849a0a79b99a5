"""Which files SCORES names: a file, a folder, a glob, or several of them."""

from __future__ import annotations

import difflib
import glob
import os
from collections.abc import Sequence
from pathlib import Path

from calibrant.data.csv_source import CsvSource
from calibrant.data.jsonl_source import JsonlSource
from calibrant.data.npz_source import NpzSource
from calibrant.data.parquet_source import ParquetSource
from calibrant.data.score_columns import Ask, Source
from calibrant.errors import InputError

__all__ = ["count_rows", "open_source", "score_files"]

Paths = str | Path | Sequence[str | Path]

_READERS: dict[str, type[CsvSource | JsonlSource | ParquetSource | NpzSource]] = {
    ".csv": CsvSource,
    ".csv.gz": CsvSource,
    ".jsonl": JsonlSource,
    ".jsonl.gz": JsonlSource,
    ".parquet": ParquetSource,
    ".npz": NpzSource,
}
_SUFFIXES = ".csv, .parquet, .jsonl or .npz"


def score_files(path: Paths) -> list[Path]:
    """Resolve a path, folder, glob or a list of them to existing files of one type.

    Files in a folder and matches of a glob come in alphabetical order.
    """
    paths = [path] if isinstance(path, str | Path) else list(path)
    if not paths or "" in paths:  # '' would be the current folder: a shell variable left unset
        raise InputError(f"no score file was named: give a {_SUFFIXES} file, a folder or a glob.")
    files = [file for one in paths for file in _resolve(Path(one))]
    kinds = {_suffix(file).removesuffix(".gz"): file for file in reversed(files)}
    if len(kinds) > 1:
        some = " and ".join(str(file) for file in list(kinds.values())[:2])
        raise InputError(
            f"score files must be of one type, got {' and '.join(sorted(kinds))} (such as {some}): "
            "name one type with a glob like 'folder/*.parquet'."
        )
    seen: set[Path] = set()
    for file in files:
        _check_readable(file)
        if file.resolve() in seen:
            raise InputError(f"{file} is named twice: its rows would count double.")
        seen.add(file.resolve())
    return files


def open_source(file: Path, ask: Ask) -> Source:
    """Open a score file with the reader for its suffix."""
    try:
        return _READERS[_suffix(file)](file, ask)
    except PermissionError:
        raise _denied(file) from None


def count_rows(path: Paths) -> int:
    r"""Estimate the number of rows without reading them.

    Exact for parquet and npz; for text files from the file size and the length of the first rows.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "scores.csv"
    >>> _ = file.write_text("label,prob\n1,0.9\n0,0.2\n")
    >>> count_rows(file)
    2
    """
    return sum(open_source(file, Ask()).estimate() for file in score_files(path))


def _resolve(path: Path) -> list[Path]:
    if path.is_dir():
        return _in_folder(path)
    if path.exists():
        if not _suffix(path):
            raise InputError(
                f"{path} is not a score file: its name must end in {_SUFFIXES} (text also .gz)."
            )
        return [path]
    if glob.has_magic(str(path)):
        found = sorted(Path(match) for match in glob.glob(str(path), recursive=True))
        files = [file for file in found if file.is_file() and _suffix(file)]
        if not files:
            raise InputError(f"{path} matches no {_SUFFIXES} file: check the pattern.")
        return files
    near = _close_files(path)
    raise InputError(f"{path} does not exist{near}: check the path.")


def _in_folder(folder: Path) -> list[Path]:
    try:
        inside = sorted(folder.iterdir())
    except PermissionError:
        raise _denied(folder) from None
    # Names that start with a dot or underscore are the droppings of other tools (_SUCCESS, .crc).
    files = [f for f in inside if f.is_file() and _suffix(f) and f.name[0] not in "._"]
    if not files:
        deeper = " (subfolders need a glob like 'folder/**/*.parquet')"
        hint = deeper if any(f.is_dir() for f in inside) else ""
        raise InputError(f"{folder} is a folder without any {_SUFFIXES} file{hint}.")
    return files


def _check_readable(file: Path) -> None:
    if not os.access(file, os.R_OK):
        raise _denied(file)
    if file.is_file() and file.stat().st_size == 0:
        raise InputError(f"{file} is empty: it needs a label and scores for at least one row.")


def _denied(path: Path) -> InputError:
    return InputError(f"{path} may not be read: ask for read permission on it.")


def _suffix(path: Path) -> str:
    """Return the suffix that chooses the reader, or ''."""
    name = path.name.lower()
    return next((s for s in sorted(_READERS, key=len, reverse=True) if name.endswith(s)), "")


def _close_files(path: Path) -> str:
    if not path.parent.is_dir() or not os.access(path.parent, os.R_OK):
        return ""
    names = [p.name for p in path.parent.iterdir()]
    near = difflib.get_close_matches(path.name, names, n=1)
    return f" (did you mean {path.parent / near[0]}?)" if near else ""
