"""Kept versions of a bundle: folders that share large files by hard links."""

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

from calibrant.bundle.files import MANIFEST, read_strict_json, sha256_of
from calibrant.bundle.manifest import read_manifest, seal_manifest
from calibrant.bundle.versions.exchange import sync_to_disk
from calibrant.errors import BundleError

SHORT = 12  # Number of hash characters in a version id

_UNSHARED = (MANIFEST, "card.md")
"""Small files that differ between versions: copied, so that an edit affects one version only."""


@dataclass(frozen=True)
class Version:
    """One version of a bundle.

    Parameters
    ----------
    hash : hash of the manifest
    created : time of packing or, for a changed bundle, of the change
    path : the folder
    current : whether it is the version in the bundle's folder
    change : description of the change that created it; None if it was packed
    changes : number of changes since packing
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
        """The manifest, read on every access; raises `BundleError` if it is damaged."""
        return read_manifest(self.path)

    @classmethod
    def from_folder(cls, path: Path, *, current: bool) -> Self | None:
        """Read the version in a folder; None without a manifest with a valid hash.

        Other files are not checked. An unchanged manifest is not read again.
        """
        info = _INFO_CACHE.get(path)
        if info is None:
            return None
        return cls(info.hash, info.created, path, current, info.change, info.changes)

    @property
    def rank(self) -> tuple[datetime, int]:
        """Sort key by age, also within one second."""
        return self.created, self.changes


@dataclass(frozen=True)
class _VersionInfo:
    """The part of a manifest needed to list versions."""

    hash: str
    created: datetime
    change: Mapping[str, Any] | None
    changes: int


class _InfoCache:
    """Cache of version information by manifest file."""

    def __init__(self, most: int) -> None:
        self._most, self._lock = most, threading.Lock()
        self._entries: OrderedDict[Path, tuple[tuple[int, ...], _VersionInfo]] = OrderedDict()

    def get(self, folder: Path) -> _VersionInfo | None:
        """Return the version information of a folder; None if its hash is invalid."""
        path = folder / MANIFEST
        # Taken before reading, so that a concurrent write causes another read.
        identity = _identity(path)
        with self._lock:
            before = self._entries.get(path)
            if before is not None and before[0] == identity:
                self._entries.move_to_end(path)
                return before[1]
        manifest = _manifest(folder)
        with self._lock:
            self._entries.pop(path, None)
            if manifest is None or identity is None:
                return None
            changes = _changes(manifest)
            last = changes[-1] if changes else None
            info = _VersionInfo(manifest["sha256"], _created(manifest), last, len(changes))
            self._entries[path] = (identity, info)
            while len(self._entries) > self._most:
                self._entries.popitem(last=False)
        return info


_INFO_CACHE = _InfoCache(10_000)  # Cache of this process; an entry takes about a kilobyte


def seal_of(folder: Path) -> str | None:
    """Return the hash of the bundle in a folder; None without one, or if it was modified."""
    manifest = _manifest(folder)
    return None if manifest is None else str(manifest["sha256"])


def iter_versions(folder: Path) -> Iterator[Version]:
    """Yield the versions in a versions folder, ignoring anything else."""
    try:
        names = sorted(os.listdir(folder))
    except OSError:  # no versions, or no permission
        return
    for name in names:
        version = (
            None if name.startswith(".") else Version.from_folder(folder / name, current=False)
        )
        if version is not None and version.id == name:
            yield version


def copy_files(
    source: Path, names: Iterable[str], target: Path, *, same: Mapping[str, Path] | None = None
) -> None:
    """Copy files of a bundle to another folder, with times and permissions."""
    for name in names:
        if same is not None and name in same:
            with suppress(OSError):  # another disk, or no hard links
                os.link(same[name], target / name)
                continue
        shutil.copy2(source / name, target / name)
        sync_to_disk(target / name)
    copy_permissions(source, target)
    sync_to_disk(target)


def find_identical_files(folder: Path, files: Mapping[str, str]) -> dict[str, Path]:
    """Find large files in kept versions that are identical."""
    identical: dict[str, Path] = {}
    for version in iter_versions(folder):
        manifest = _manifest(version.path) or {"files": {}}
        for name, digest in manifest["files"].items():
            if name in _UNSHARED or name in identical or files.get(name) != digest:
                continue
            with suppress(OSError):
                if sha256_of(version.path / name) == digest:
                    identical[name] = version.path / name
    return identical


def copy_permissions(source: Path, target: Path) -> None:
    """Copy the permissions and, if allowed, the owner of a file or folder."""
    status = source.stat()
    with suppress(OSError):
        os.chown(target, status.st_uid, status.st_gid)
    target.chmod(status.st_mode & 0o7777)


def is_copy(folder: Path, original: Path, manifest: Mapping[str, Any]) -> bool:
    """Return whether a folder is a copy of a bundle whose files were checked.

    Files shared by hard link are not read again.
    """
    if seal_of(folder) != manifest["sha256"]:
        return False
    try:
        return all(
            (folder / name).samefile(original / name) or sha256_of(folder / name) == digest
            for name, digest in manifest["files"].items()
        )
    except OSError:
        return False


def find_version(folder: Path, digest: str) -> Path:
    """Return the folder of a kept version; raise `BundleError` if it no longer exists."""
    path = folder / digest[:SHORT]
    if not digest.isalnum() or seal_of(path) != digest:
        problem = "is not kept" if not path.is_dir() else "is damaged"
        raise BundleError(
            f"version {digest[:SHORT]} {problem} in {folder}: choose another version, or pack the "
            "bundle again."
        )
    return path


def _identity(path: Path) -> tuple[int, ...] | None:
    """Return an identity that changes when a file does; None without the file."""
    try:
        status = path.stat()
    except OSError:
        return None
    return (
        status.st_dev, status.st_ino, status.st_mtime_ns, status.st_ctime_ns, status.st_size,
    )  # fmt: skip


def _manifest(folder: Path) -> dict[str, Any] | None:
    try:
        manifest = read_strict_json(folder / MANIFEST)
        is_valid = isinstance(manifest, dict) and seal_manifest(manifest) == manifest
    except (OSError, ValueError, RecursionError):
        return None
    return manifest if is_valid and isinstance(manifest.get("files"), dict) else None


def _changes(manifest: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    provenance = manifest.get("provenance")
    changes = provenance.get("changes") if isinstance(provenance, dict) else None
    return [each for each in changes if isinstance(each, dict)] if isinstance(changes, list) else []


def _created(manifest: Mapping[str, Any]) -> datetime:
    times: list[Any] = [each.get("at") for each in _changes(manifest)[-1:]]
    provenance = manifest.get("provenance")
    times += [provenance.get("created")] if isinstance(provenance, dict) else []
    for moment in times:
        with suppress(TypeError, ValueError):
            parsed = datetime.fromisoformat(moment)
            return parsed if parsed.tzinfo is not None else parsed.replace(tzinfo=UTC)
    return datetime.fromtimestamp(0, UTC)
