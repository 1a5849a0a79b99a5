"""The versions of a bundle that are kept: their folders, which share big files with each other."""

from __future__ import annotations

import os
import shutil
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from calibrant.bundle.files import MANIFEST, read_strictly, sha256_of
from calibrant.bundle.manifest import read_manifest, sealed
from calibrant.bundle.versions.exchange import synced
from calibrant.errors import BundleError

__all__ = [
    "SHORT",
    "Version",
    "copied",
    "files_alike",
    "is_copy",
    "kept_versions",
    "seal_of",
    "take_rights",
    "version_named",
]

SHORT = 12
"""Characters of a hash that name a version."""

_UNSHARED = (MANIFEST, "card.md")
"""Small files that differ in every version: copied, so that editing one spoils one version only."""


@dataclass(frozen=True)
class Version:
    """One version of a bundle.

    Parameters
    ----------
    hash : the seal of its manifest
    created : when it was packed or, where it was made by a change, changed
    path : where it is
    current : whether it is the one in the bundle's folder
    change : what was told of the change that made it; None where it was packed
    changes : how many changes led to it
    """

    hash: str
    created: datetime
    path: Path
    current: bool
    change: Mapping[str, Any] | None = field(repr=False, compare=False)
    changes: int = field(repr=False, compare=False)

    @property
    def id(self) -> str:
        """The first 12 characters of the hash."""
        return self.hash[:SHORT]

    @property
    def manifest(self) -> Mapping[str, Any]:
        """Everything that its manifest says, read anew; `BundleError` where it is damaged."""
        return read_manifest(self.path)

    @classmethod
    def at(cls, path: Path, *, current: bool) -> Self | None:
        """Read the version of a folder; None where there is no manifest with a right seal.

        The other files are not looked at: that is done where they are needed. A manifest that is
        the same file as before is not read again.
        """
        found = _KNOWN.at(path)
        if found is None:
            return None
        return cls(found.hash, found.created, path, current, found.change, found.changes)

    @property
    def rank(self) -> tuple[datetime, int]:
        """What sorts versions by their age, also within one second."""
        return self.created, self.changes


@dataclass(frozen=True)
class _Told:
    """The little that lists of versions need of a manifest."""

    hash: str
    created: datetime
    change: Mapping[str, Any] | None
    changes: int


class _Known:
    """What manifests say, by their files: reading all of them for each page would take long."""

    def __init__(self, most: int) -> None:
        self._most, self._lock = most, threading.Lock()
        self._told: OrderedDict[Path, tuple[tuple[int, ...], _Told]] = OrderedDict()

    def at(self, folder: Path) -> _Told | None:
        """Return what the manifest of a folder says; None where its seal is not right."""
        path = folder / MANIFEST
        # Looked at before it is read: what is written meanwhile is then read again.
        is_now = _identity(path)
        with self._lock:
            before = self._told.get(path)
            if before is not None and before[0] == is_now:
                self._told.move_to_end(path)
                return before[1]
        manifest = _manifest(folder)
        with self._lock:
            self._told.pop(path, None)
            if manifest is None or is_now is None:
                return None
            changes = _changes(manifest)
            last = changes[-1] if changes else None
            told = _Told(manifest["sha256"], _created(manifest), last, len(changes))
            self._told[path] = (is_now, told)
            while len(self._told) > self._most:
                self._told.popitem(last=False)
        return told


_KNOWN = _Known(10_000)
"""Of this process; one entry takes about a kilobyte."""


def seal_of(folder: Path) -> str | None:
    """Return the hash of the bundle in a folder; None where there is none, or a changed one."""
    manifest = _manifest(folder)
    return None if manifest is None else str(manifest["sha256"])


def kept_versions(place: Path) -> Iterator[Version]:
    """Read the versions in a versions folder; what is no version is left out."""
    try:
        names = sorted(os.listdir(place))
    except OSError:  # nothing was ever kept, or nobody may look
        return
    for name in names:
        found = None if name.startswith(".") else Version.at(place / name, current=False)
        if found is not None and found.id == name:
            yield found


def copied(
    source: Path, names: Iterable[str], target: Path, *, same: Mapping[str, Path] | None = None
) -> None:
    """Copy files of a bundle into another folder, with their times and permissions."""
    for name in names:
        if same is not None and name in same:
            with suppress(OSError):  # another disk, or one that cannot share
                os.link(same[name], target / name)
                continue
        shutil.copy2(source / name, target / name)
        synced(target / name)
    take_rights(source, target)
    synced(target)


def files_alike(place: Path, files: Mapping[str, str]) -> dict[str, Path]:
    """Find big files in kept versions that are the same, byte for byte."""
    found: dict[str, Path] = {}
    for version in kept_versions(place):
        manifest = _manifest(version.path) or {"files": {}}
        for name, digest in manifest["files"].items():
            if name in _UNSHARED or name in found or files.get(name) != digest:
                continue
            with suppress(OSError):
                if sha256_of(version.path / name) == digest:
                    found[name] = version.path / name
    return found


def take_rights(source: Path, target: Path) -> None:
    """Give a file or folder the rights and, where we may, the owner of another."""
    told = source.stat()
    with suppress(OSError):
        os.chown(target, told.st_uid, told.st_gid)
    target.chmod(told.st_mode & 0o7777)


def is_copy(folder: Path, of: Path, manifest: Mapping[str, Any]) -> bool:
    """Whether a folder holds the same bundle as another, whose files are known to be right.

    Files that both share are not read again.
    """
    if seal_of(folder) != manifest["sha256"]:
        return False
    try:
        return all(
            (folder / name).samefile(of / name) or sha256_of(folder / name) == digest
            for name, digest in manifest["files"].items()
        )
    except OSError:
        return False


def version_named(place: Path, digest: str) -> Path:
    """Return the folder of a kept version; `BundleError` where it is not there any more."""
    path = place / digest[:SHORT]
    if not digest.isalnum() or seal_of(path) != digest:
        gone = "is not kept" if not path.is_dir() else "is damaged"
        raise BundleError(
            f"version {digest[:SHORT]} {gone} in {place}: choose another version, or pack the "
            "bundle again."
        )
    return path


def _identity(path: Path) -> tuple[int, ...] | None:
    """Return what changes when a file is replaced or written anew; None where there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return (
        found.st_dev, found.st_ino, found.st_mtime_ns, found.st_ctime_ns, found.st_size,
    )  # fmt: skip


def _manifest(folder: Path) -> dict[str, Any] | None:
    try:
        found = read_strictly(folder / MANIFEST)
        right = isinstance(found, dict) and sealed(found) == found
    except (OSError, ValueError, RecursionError):
        return None
    return found if right and isinstance(found.get("files"), dict) else None


def _changes(manifest: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    made = manifest.get("provenance")
    found = made.get("changes") if isinstance(made, dict) else None
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _created(manifest: Mapping[str, Any]) -> datetime:
    told: list[Any] = [each.get("at") for each in _changes(manifest)[-1:]]
    made = manifest.get("provenance")
    told += [made.get("created")] if isinstance(made, dict) else []
    for moment in told:
        with suppress(TypeError, ValueError):
            found = datetime.fromisoformat(moment)
            return found if found.tzinfo is not None else found.replace(tzinfo=UTC)
    return datetime.fromtimestamp(0, UTC)
