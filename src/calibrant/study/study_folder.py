"""The folder of a study: what may be replaced in it, and how the new files take their places."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from calibrant.bundle.files import check_folder
from calibrant.errors import InputError
from calibrant.files.atomic_write import write_atomically
from calibrant.study.settings.config_file import read_config

__all__ = [
    "BUNDLE",
    "CANDIDATE_FOLDERS",
    "check_place",
    "drafted",
    "folder_of",
    "make_room",
    "put",
    "write_json",
]

BUNDLE, CANDIDATE_FOLDERS = "bundle", "candidates"
_HEAD = 4096
_PAGE = b"default-src 'none'; script-src 'unsafe-inline'"
"""What stands at the top of every report."""


def folder_of(out: str | Path) -> Path:
    """Return the folder that a study was told to use.

    An empty text, which a shell makes of a variable that is not set, would be the current folder:
    that one is called ".".

    Examples
    --------
    >>> folder_of("")
    Traceback (most recent call last):
    ...
    calibrant.errors.InputError: --out is empty: name a folder, like --out runs/mine.
    """
    if isinstance(out, str) and not out.strip():
        raise InputError("--out is empty: name a folder, like --out runs/mine.")
    return Path(out)


def check_place(folder: Path) -> None:
    """Refuse, before anything is trained, a folder with files that a study would replace.

    What an earlier study left there is replaced, and so are settings that somebody wrote; other
    files of these names stay.
    """
    if (folder / CANDIDATE_FOLDERS).exists() and not (folder / CANDIDATE_FOLDERS).is_dir():
        raise InputError(
            f"--out {folder}: {CANDIDATE_FOLDERS} is a file there, not a folder: choose another "
            "folder."
        )
    for name, is_ours in _OURS.items():
        path = folder / name
        if path.is_dir():
            raise InputError(f"--out {folder}: {name} is a folder there: choose another folder.")
        if path.exists() and not is_ours(path):
            raise InputError(
                f"--out {folder} holds a file {name} that no study wrote, and it would be "
                "replaced: move it away, or choose another folder."
            )
    check_folder(folder / BUNDLE, force=True, name="--out")


def make_room(folder: Path) -> None:
    """Make the folder of the candidates."""
    try:
        (folder / CANDIDATE_FOLDERS).mkdir(exist_ok=True)
    except OSError as error:
        raise InputError(
            f"--out {folder} cannot be made ({error.strerror or error}): choose another folder."
        ) from None


@contextmanager
def drafted(folder: Path) -> Iterator[Path]:
    """Lend a folder for drafts within that of a study; what cannot be written names the study's."""
    draft: Path | None = None
    try:
        with tempfile.TemporaryDirectory(prefix=".draft-", dir=folder) as name:
            draft = Path(name)
            yield draft
    except InputError as error:
        if draft is None or str(draft) not in str(error):
            raise
        raise InputError(str(error).replace(str(draft), str(folder))) from error
    except OSError as error:
        raise InputError(
            f"--out {folder} cannot be written: {error.strerror or error}: make room there or "
            "choose another place."
        ) from error


def put(draft: Path, folder: Path, names: Iterable[str]) -> None:
    """Move files from the folder of drafts to their places, one right after the other."""
    (folder / "report.html").unlink(missing_ok=True)  # it may be that of an earlier study
    for name in names:
        (draft / name).replace(folder / name)


def write_json(content: Any, path: Path) -> None:
    """Write JSON, whole or not at all."""
    with write_atomically(path, name="--out") as draft:
        text = json.dumps(content, allow_nan=False, ensure_ascii=False, indent=1)
        draft.write_text(f"{text}\n", encoding="utf-8", errors="backslashreplace")


def _is_settings(path: Path) -> bool:
    try:
        read_config(path)
    except InputError:
        return False
    return True


def _is_page(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return _PAGE in file.read(_HEAD)
    except OSError:
        return False


def _has(*keys: str) -> Callable[[Path], bool]:
    """Return whether a file is a JSON object with these keys."""

    def holds(path: Path) -> bool:
        try:
            found = json.loads(path.read_bytes())
        except (OSError, ValueError, RecursionError):
            return False
        return isinstance(found, dict) and set(keys) <= set(found)

    return holds


_OURS: dict[str, Callable[[Path], bool]] = {
    "study.toml": _is_settings,
    "splits.json": _has("format", "splits"),
    "result.json": _has("schema", "candidates"),
    "report.html": _is_page,
}
"""Files that a study leaves, and whether one was written by a study."""
