"""Targets that were tried, as a file beside the bundle knows them: whichever store is in use.

The file lies in the folder of the bundle's versions. Entries are added to it, and never changed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Self

from calibrant.bundle.files import read_strict_json
from calibrant.bundle.versions.exchange import sync_to_disk
from calibrant.bundle.versions.lock import lock_versions
from calibrant.bundle.versions.versions import Versions
from calibrant.errors import BundleError, InputError
from calibrant.files.atomic_write import write_atomically
from calibrant.serving.console.pages.thresholds.targets import target_key

__all__ = ["FILE", "Try", "add_tried", "read_tried"]

FILE = "targets_tried.json"
"""Name of the file in the folder of versions."""

_FORMAT = 1
_PATIENCE = 2.0
"""Seconds to wait for a change of the bundle; what is not written is written with the next."""


@dataclass(frozen=True)
class Try:
    """That somebody tried a target.

    Parameters
    ----------
    id, at : of the try, and when it was
    by : name of who tried
    target : as `AskedTarget.to_dict` tells it
    """

    id: str
    at: datetime
    by: str
    target: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Return what is written down of it."""
        at = self.at.isoformat(timespec="milliseconds")
        return {"id": self.id, "at": at, "by": self.by, "target": dict(self.target)}

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> Self:
        """Rebuild from `to_dict`; raise KeyError, TypeError or ValueError where it is not that."""
        at = datetime.fromisoformat(saved["at"])
        if at.tzinfo is None or not isinstance(saved["id"], str):
            raise ValueError("no try")
        return cls(saved["id"], at, str(saved["by"]), dict(saved["target"]))


def read_tried(bundle: str | os.PathLike[str], rows: str) -> list[Try]:
    """Return what was tried on some rows, in the order in which it was written down.

    A file that cannot be read is a `BundleError`: nobody knows then what was tried.

    Examples
    --------
    >>> read_tried("no_such_bundle", "5ea3")
    []
    """
    return [Try.from_dict(each) for each in _read(_path(bundle)) if each["rows"] == rows]


def add_tried(bundle: str | os.PathLike[str], rows: str, tried: Iterable[Try]) -> None:
    """Write down what was tried; a target that is there already is not written again.

    Where the file cannot be written, such as in a folder that is read-only, or while another
    process changes the bundle, that is a `BundleError`, and the file is as it was.
    """
    path, folder = _path(bundle), Path(bundle)
    try:
        mode = folder.stat().st_mode & 0o7777
        with lock_versions(path.parent, mode=mode, patience=_PATIENCE):
            found = _read(path)
            known = {target_key(each["target"]) for each in found if each["rows"] == rows}
            new: dict[str, Try] = {}
            for each in tried:
                new.setdefault(target_key(each.target), each)
            missing = [each for key, each in new.items() if key not in known]
            if missing:
                _write(path, [*found, *({"rows": rows, **each.to_dict()} for each in missing)])
    except (OSError, InputError) as error:
        raise BundleError(f"what was tried cannot be written to {path}: {error}") from error


def _path(bundle: str | os.PathLike[str]) -> Path:
    return Versions(bundle).versions_folder / FILE


def _write(path: Path, entries: list[dict[str, Any]]) -> None:
    text = json.dumps({"format": _FORMAT, "tried": entries}, indent=1)
    with write_atomically(path, name="the file") as draft:
        draft.write_text(text + "\n", encoding="utf-8")
        sync_to_disk(draft)
    sync_to_disk(path.parent)


def _read(path: Path) -> list[dict[str, Any]]:
    """Return all entries; none where there is no file yet."""
    try:
        saved = read_strict_json(path)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise BundleError(
            f"{path}, which tells what was tried, cannot be read: {error.strerror}: let the "
            "service read it."
        ) from None
    except (ValueError, RecursionError):
        raise _damaged(path) from None
    if not isinstance(saved, dict) or not isinstance(saved.get("tried"), list):
        raise _damaged(path)
    if saved.get("format") != _FORMAT:
        raise BundleError(f"{path} is of a newer version of Calibrant: upgrade calibrant.")
    entries: list[dict[str, Any]] = saved["tried"]
    try:
        for each in entries:
            Try.from_dict(each)
            target_key(each["target"])
            each["rows"]
    except (KeyError, TypeError, ValueError):
        raise _damaged(path) from None
    return entries


def _damaged(path: Path) -> BundleError:
    return BundleError(
        f"{path}, which tells what was tried, is damaged: put a copy of it back. Without it the "
        "targets that are only there would count for nothing."
    )
