"""The versions of a bundle that are kept: their folders, which share big files with each other."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from calibrant.bundle.exchange import synced
from calibrant.bundle.files import MANIFEST, read_strictly, sha256_of
from calibrant.bundle.manifest import sealed
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
    manifest : everything that its manifest says
    """

    hash: str
    created: datetime
    path: Path
    current: bool
    manifest: Mapping[str, Any] = field(repr=False, compare=False)

    @property
    def id(self) -> str:
        """The first 12 characters of the hash."""
        return self.hash[:SHORT]

    @property
    def change(self) -> Mapping[str, Any] | None:
        """What was told of the change that made it; None where it was packed."""
        found = _changes(self.manifest)
        return found[-1] if found else None

    @classmethod
    def at(cls, path: Path, *, current: bool) -> Self | None:
        """Read the version of a folder; None where there is no manifest with a right seal.

        The other files are not looked at: that is done where they are needed.
        """
        manifest = _manifest(path)
        if manifest is None:
            return None
        return cls(manifest["sha256"], _created(manifest), path, current, manifest)

    @property
    def rank(self) -> tuple[datetime, int]:
        """What sorts versions by their age, also within one second."""
        return self.created, len(_changes(self.manifest))


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
    """Put files of a bundle into another folder; bytes, times and rights are those of the source.

    Parameters
    ----------
    source, names, target : which files, and where they go
    same : for names, files of kept versions with the same bytes, which are shared where the disk
        can. The folder that serves shares nothing: others may write into its files
    """
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
    """Find big files in kept versions that are the same, byte for byte.

    Parameters
    ----------
    place : the versions folder
    files : names and hashes
    """
    found: dict[str, Path] = {}
    for version in kept_versions(place):
        for name, digest in version.manifest["files"].items():
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
