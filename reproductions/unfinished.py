"""Checkpoint folder of an unfinished run, from which it resumes."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from calibrant.errors import InputError
from calibrant.files.atomic_write import write_atomically
from calibrant.files.lock import exclusive_folder

__all__ = ["unfinished"]


@contextmanager
def unfinished(record: Path, setting: Mapping[str, Any]) -> Iterator[Path]:
    """Provide a checkpoint folder next to the record, removed when the block succeeds.

    What an interrupted run left in it stays for the next one, but for a run of another setting,
    which starts from scratch.

    Parameters
    ----------
    record : where the record of the run will stand
    setting : what the run is made with; see `setting_of`

    Examples
    --------
    >>> import tempfile
    >>> record = Path(tempfile.mkdtemp()) / "ce-0.json"
    >>> with unfinished(record, {"epochs": 5}) as folder:
    ...     print(folder.name, folder.is_dir())
    .ce-0 True
    >>> folder.exists()
    False
    """
    folder = record.with_name(f".{record.stem}")
    note = folder / "setting.json"
    if folder.is_dir() and _read(note) != setting:
        with exclusive_folder(folder):  # not from under a run that is at work in it
            shutil.rmtree(folder, ignore_errors=True)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"the folder {folder} cannot be made ({error.strerror or error}): see to it, or choose "
            "another --out."
        ) from None
    with write_atomically(note) as draft:
        draft.write_text(json.dumps(setting) + "\n", encoding="utf-8")
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def _read(note: Path) -> Any:
    try:
        return json.loads(note.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
