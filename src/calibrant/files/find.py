"""Resolution of paths, folders and globs to files."""

from __future__ import annotations

import difflib
import glob
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from calibrant.errors import InputError

Paths = str | Path | Sequence[str | Path]


@dataclass(frozen=True)
class FileKind:
    """A kind of file, for resolution and error messages."""

    noun: str  # the kind in messages, such as "score file"
    suffixes: tuple[str, ...]
    shown: str  # the suffixes in messages, without the compressed ones
    needs: str  # the required content, for messages about empty files


def resolve_files(path: Paths, kind: FileKind) -> list[Path]:
    """Resolve a path, folder, glob or a list of them to existing files of one type.

    Files in a folder and matches of a glob are sorted alphabetically.
    """
    paths = [path] if isinstance(path, str | Path) else list(path)
    if not paths or "" in paths:  # '' would be the current folder: an unset shell variable
        raise InputError(f"no {kind.noun} given: give a {kind.shown} file, a folder or a glob.")
    files = [file for item in paths for file in _resolve(Path(item), kind)]
    types = {suffix_of(file, kind).removesuffix(".gz"): file for file in reversed(files)}
    if len(types) > 1:
        examples = " and ".join(str(file) for file in list(types.values())[:2])
        raise InputError(
            f"{kind.noun}s must be of one type, got {' and '.join(sorted(types))} (such as "
            f"{examples}): select one type with a glob like 'folder/*.parquet'."
        )
    seen: set[Path] = set()
    for file in files:
        _check_readable(file, kind)
        if file.resolve() in seen:
            raise InputError(f"{file} is given twice, so its rows would count twice: remove one.")
        seen.add(file.resolve())
    return files


def suffix_of(path: Path, kind: FileKind) -> str:
    """Return the suffix that selects the reader, or ''."""
    name = path.name.lower()
    return next((s for s in sorted(kind.suffixes, key=len, reverse=True) if name.endswith(s)), "")


def permission_error(path: Path) -> InputError:
    """Return the error for an unreadable path."""
    return InputError(f"{path} cannot be read (permission denied): get read permission on it.")


def _resolve(path: Path, kind: FileKind) -> list[Path]:
    if path.is_dir():
        return _list_folder(path, kind)
    if path.exists():
        if not suffix_of(path, kind):
            raise InputError(
                f"{path} is not a {kind.noun}: its name must end in {kind.shown} (text also .gz)."
            )
        return [path]
    if glob.has_magic(str(path)):
        matches = sorted(Path(match) for match in glob.glob(str(path), recursive=True))
        files = [file for file in matches if file.is_file() and suffix_of(file, kind)]
        if not files:
            raise InputError(f"{path} matches no {kind.shown} file: check the pattern.")
        return files
    suggestion = _suggest_similar(path)
    raise InputError(f"{path} does not exist{suggestion}: check the path.")


def _list_folder(folder: Path, kind: FileKind) -> list[Path]:
    try:
        inside = sorted(folder.iterdir())
    except PermissionError:
        raise permission_error(folder) from None
    # Names that start with a dot or underscore are created by other tools (_SUCCESS, .crc).
    files = [f for f in inside if f.is_file() and suffix_of(f, kind) and f.name[0] not in "._"]
    if not files:
        deeper = " (subfolders need a glob like 'folder/**/*.parquet')"
        hint = deeper if any(f.is_dir() for f in inside) else ""
        raise InputError(f"{folder} is a folder without {kind.shown} files{hint}.")
    return files


def _check_readable(file: Path, kind: FileKind) -> None:
    if not os.access(file, os.R_OK):
        raise permission_error(file)
    if file.is_file() and file.stat().st_size == 0:
        raise InputError(f"{file} is empty: it needs {kind.needs}.")


def _suggest_similar(path: Path) -> str:
    if not path.parent.is_dir() or not os.access(path.parent, os.R_OK):
        return ""
    # A name with a suffix is not a folder, least of all the one just created for results.
    names = [p.name for p in path.parent.iterdir() if not (path.suffix and p.is_dir())]
    near = difflib.get_close_matches(path.name, names, n=1)
    return f" (did you mean {path.parent / near[0]}?)" if near else ""
