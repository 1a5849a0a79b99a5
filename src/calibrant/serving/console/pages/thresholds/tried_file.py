"""File beside the bundle that records tried targets, independent of the store.

It is in the folder of the bundle's versions. Entries are only appended.
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

FILE = "targets_tried.json"  # File name in the folder of versions

_FORMAT = 1
_LOCK_TIMEOUT = 2.0
"""Seconds to wait for a change of the bundle; unwritten tries are added with the next one."""


@dataclass(frozen=True)
class TargetTry:
    """A try of a target."""

    id: str
    at: datetime
    by: str  # name of the key used
    target: Mapping[str, Any]  # `ThresholdTarget.to_dict()`

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        at = self.at.isoformat(timespec="milliseconds")
        return {"id": self.id, "at": at, "by": self.by, "target": dict(self.target)}

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> Self:
        """Rebuild from `to_dict`; raise KeyError, TypeError or ValueError for anything else."""
        at = datetime.fromisoformat(saved["at"])
        if at.tzinfo is None or not isinstance(saved["id"], str):
            raise ValueError("not a try")
        return cls(saved["id"], at, str(saved["by"]), dict(saved["target"]))


def read_tries(bundle: str | os.PathLike[str], rows: str) -> list[TargetTry]:
    """Return the tries on some rows, in the order written.

    Raises `BundleError` if the file cannot be read, because the tries are then unknown.
    """
    return [
        TargetTry.from_dict(each) for each in _read_entries(_path(bundle)) if each["rows"] == rows
    ]


def append_tries(bundle: str | os.PathLike[str], rows: str, tried: Iterable[TargetTry]) -> None:
    """Append tries to the file; targets that it already contains are skipped.

    Raises `BundleError` if the file cannot be written, for example in a read-only folder or while
    another process changes the bundle; the file is then unchanged.
    """
    path, folder = _path(bundle), Path(bundle)
    try:
        mode = folder.stat().st_mode & 0o7777
        with lock_versions(path.parent, mode=mode, patience=_LOCK_TIMEOUT):
            entries = _read_entries(path)
            known = {target_key(each["target"]) for each in entries if each["rows"] == rows}
            new: dict[str, TargetTry] = {}
            for each in tried:
                new.setdefault(target_key(each.target), each)
            missing = [each for key, each in new.items() if key not in known]
            if missing:
                _write_entries(
                    path, [*entries, *({"rows": rows, **each.to_dict()} for each in missing)]
                )
    except (OSError, InputError) as error:
        raise BundleError(f"tried targets cannot be written to {path}: {error}") from error


def _path(bundle: str | os.PathLike[str]) -> Path:
    return Versions(bundle).versions_folder / FILE


def _write_entries(path: Path, entries: list[dict[str, Any]]) -> None:
    text = json.dumps({"format": _FORMAT, "tried": entries}, indent=1)
    with write_atomically(path, name="the file") as draft:
        draft.write_text(text + "\n", encoding="utf-8")
        sync_to_disk(draft)
    sync_to_disk(path.parent)


def _read_entries(path: Path) -> list[dict[str, Any]]:
    """Return all entries; empty if there is no file yet."""
    try:
        saved = read_strict_json(path)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise BundleError(
            f"{path}, the record of tried targets, cannot be read ({error.strerror}): give the "
            "service permission to read it."
        ) from None
    except (ValueError, RecursionError):
        raise _damaged_error(path) from None
    if not isinstance(saved, dict) or not isinstance(saved.get("tried"), list):
        raise _damaged_error(path)
    if saved.get("format") != _FORMAT:
        raise BundleError(f"{path} was written by a newer version of Calibrant: upgrade calibrant.")
    entries: list[dict[str, Any]] = saved["tried"]
    try:
        for each in entries:
            TargetTry.from_dict(each)
            target_key(each["target"])
            each["rows"]
    except (KeyError, TypeError, ValueError):
        raise _damaged_error(path) from None
    return entries


def _damaged_error(path: Path) -> BundleError:
    return BundleError(
        f"{path}, the record of tried targets, is damaged: restore it from a copy. Without it, "
        "targets recorded only there would not be counted."
    )
