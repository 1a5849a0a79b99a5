"""Versions of a bundle: changes of operating points, with earlier versions kept."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibrant.bundle.card.card import card_of
from calibrant.bundle.files import MANIFEST, sha256_of
from calibrant.bundle.loading import assemble_bundle, load_bundle
from calibrant.bundle.manifest import as_json, read_manifest, write_manifest
from calibrant.bundle.packing import CARD
from calibrant.bundle.versions.exchange import ASIDE, replace_folder, sync_to_disk
from calibrant.bundle.versions.kept_versions import (
    SHORT,
    Version,
    copy_files,
    copy_permissions,
    find_identical_files,
    find_version,
    is_copy,
    iter_versions,
    seal_of,
)
from calibrant.bundle.versions.lock import lock_versions
from calibrant.distribution import own_version
from calibrant.errors import BundleError, InputError, VersionConflict

if TYPE_CHECKING:
    from calibrant.bundle.bundle import Bundle
    from calibrant.bundle.points import BundlePoint

__all__ = ["Version", "Versions"]

_DRAFT = ".draft-"  # Prefix of drafts; leftovers of killed processes are removed

_Fill = Callable[[Path, Path], str]
"""Writes a version of the bundle in a folder (first) to a draft (second); returns its hash."""


class Versions:
    """The versions of one bundle, kept in `<folder>.versions/` next to it.

    A change is completed in a draft, which is then exchanged with the bundle's folder, atomically
    if the system supports it. Readers therefore load either the old or the new version. A killed
    process leaves one of them in the folder; on systems that need two renames, the old one may be
    left in the versions folder, from where the next change restores it.

    Parameters
    ----------
    folder : the folder of the bundle, or a link to it

    Examples
    --------
    >>> from calibrant.bundle import BundlePoint, load_bundle, pack
    >>> from calibrant.thresholds import precision, select
    >>> labels, logits = [0, 1] * 200, [-3.0, 3.0] * 200
    >>> points = [select(labels, logits=logits, hold=precision >= goal) for goal in (0.8, 0.9)]
    >>> folder = Path(tempfile.mkdtemp()) / "bundle"
    >>> first = pack(folder, points=points[:1]).manifest["sha256"]
    >>> versions, change = Versions(folder), {"by": "Ann", "reason": "fewer mistakes"}
    >>> second = versions.save_points(
    ...     [BundlePoint(points[1], "raw")], base=first, change=change, begin=lambda new_hash: None
    ... )
    >>> [(each.current, each.hash == first) for each in versions.all()]
    [(True, False), (False, True)]
    >>> versions.restore(first, base=second, begin=lambda new_hash: None) == first
    True
    >>> load_bundle(folder).manifest["sha256"] == first
    True
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder = Path(folder)

    @property
    def versions_folder(self) -> Path:
        """The folder of kept versions, which may not exist yet."""
        return _versions_folder(self._resolved())

    def all(self) -> list[Version]:
        """Return all versions, newest first, without a lock."""
        folder = self._resolved()
        current = Version.from_folder(folder, current=True)
        versions = [] if current is None else [current]
        earlier = iter_versions(_versions_folder(folder))
        versions += [each for each in earlier if current is None or each.hash != current.hash]
        return sorted(versions, key=lambda each: each.rank, reverse=True)

    def save_points(
        self,
        points: Sequence[BundlePoint],
        *,
        base: str,
        change: Mapping[str, Any],
        begin: Callable[[str], None],
        provenance: Mapping[str, Any] | None = None,
    ) -> str:
        """Replace the operating points of the bundle; return the hash of the new version.

        The model, the calibrator and all other files stay; the card is rewritten. The joint
        confidence of the new points is unknown here, so `confidence_together` is removed from the
        provenance unless `provenance` gives a new one: the card then adds up the error rates.

        Parameters
        ----------
        points : all points of the new version, in order
        base : hash of the version that they were chosen for
        change : description of the change, as JSON values; the card shows "what" (a sentence),
            "by" (a name) and "reason". The time and the base version are added
        begin : called with the new hash when the draft is complete, right before the exchange; if
            it raises, nothing changes
        provenance : entries that replace those of the old version
        """

        def fill(folder: Path, draft: Path) -> str:
            old = load_bundle(folder, device="cpu")
            entry = {**change, "at": _now(), "base": base, "calibrant": own_version()}
            new_provenance = {**old.provenance, **(provenance or {})}
            if "confidence_together" not in (provenance or {}):
                new_provenance.pop("confidence_together", None)
            earlier_changes = new_provenance.get("changes")
            new_provenance["changes"] = [
                *(earlier_changes if isinstance(earlier_changes, list) else []),
                entry,
            ]
            return _write_version(old, points, new_provenance, draft)

        return self._apply_change(base, begin, fill)

    def restore(self, hash: str, *, base: str, begin: Callable[[str], None]) -> str:
        """Restore a kept version byte for byte; return its hash.

        Parameters
        ----------
        hash : full hash of the version, 64 characters
        base : hash of the version to replace
        begin : as in `save_points`
        """
        if hash == base:
            raise InputError(f"version {hash[:SHORT]} is the current one: choose an earlier one.")

        def fill(folder: Path, draft: Path) -> str:
            version_folder = find_version(_versions_folder(folder), hash)
            manifest = read_manifest(version_folder)
            copy_files(version_folder, [*manifest["files"], MANIFEST], draft)
            load_bundle(draft, device="cpu")  # never restore a bundle that does not load
            return hash

        return self._apply_change(base, begin, fill)

    def _apply_change(self, base: str, begin: Callable[[str], None], fill: _Fill) -> str:
        folder = self._resolved()
        versions_folder = _versions_folder(folder)
        try:
            mode = _check_replaceable(folder)
            with lock_versions(versions_folder, mode=mode):
                _remove_leftovers(folder, versions_folder)
                _check_base(folder, base)
                with _keep_copy(folder, versions_folder, base), _draft(versions_folder) as draft:
                    new_hash = fill(folder, draft)
                    begin(new_hash)
                    old = replace_folder(draft, folder, refuse=lambda old: _check_base(old, base))
                    shutil.rmtree(old, ignore_errors=True)
                    sync_to_disk(folder.parent)
                return new_hash
        except OSError as error:
            raise BundleError(
                f"the bundle {self._folder} cannot be changed: {error.strerror or error}: check "
                f"the free space and the write permissions of {folder.parent}."
            ) from error

    def _resolved(self) -> Path:
        """Resolve links, so that the folder is changed and not the link to it."""
        try:
            return self._folder.resolve()
        except (OSError, RuntimeError) as error:
            raise BundleError(f"the bundle {self._folder} cannot be used: {error}.") from None


def _versions_folder(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.versions")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _check_replaceable(folder: Path) -> int:
    """Check up front that a folder can be replaced; return its permissions."""
    with suppress(FileNotFoundError):  # the current folder was removed
        here = Path.cwd()
        if folder in (here, *here.parents):
            raise BundleError(
                f"the bundle {folder} cannot be replaced, because it contains the current folder: "
                "start the process from another folder."
            )
    if os.path.ismount(folder):
        raise BundleError(
            f"the bundle {folder} cannot be replaced, because it is a mount point: mount the "
            "parent folder instead."
        )
    for place in (folder.parent, folder):
        if place.is_dir() and not os.access(place, os.W_OK | os.X_OK):
            raise BundleError(
                f"the bundle {folder} cannot be changed, because {place} is not writable: make it "
                "writable for this user."
            )
    return folder.stat().st_mode & 0o7777 if folder.is_dir() else 0o777


def _remove_leftovers(folder: Path, versions_folder: Path) -> None:
    """Remove leftovers of killed processes; restore a bundle that was moved aside."""
    for path in sorted(versions_folder.glob(f"{_DRAFT}*")):
        if path.name.endswith(ASIDE) and not folder.exists():
            os.rename(path, folder)
        else:
            shutil.rmtree(path, ignore_errors=True)


def _check_base(folder: Path, base: str) -> None:
    current = seal_of(folder)
    if current is None:
        current = str(read_manifest(folder)["sha256"])  # raises the specific error
    if current != base:
        raise VersionConflict(
            f"the bundle is now version {current[:SHORT]}, not {base[:SHORT]}: review it, "
            "then repeat the change."
        )


@contextmanager
def _keep_copy(folder: Path, versions_folder: Path, base: str) -> Iterator[None]:
    """Keep a copy of the bundle, and remove it if the change fails."""
    manifest = read_manifest(folder)
    others = sorted({each.name for each in folder.iterdir()} - {MANIFEST, *manifest["files"]})
    if others:
        raise BundleError(
            f"the bundle {folder} also contains '{others[0]}', which is not part of the bundle and "
            "would be lost: move it first."
        )
    path = versions_folder / base[:SHORT]
    is_kept = is_copy(path, folder, manifest)
    if not is_kept:
        with _draft(versions_folder) as draft:
            same = find_identical_files(versions_folder, manifest["files"])
            copy_files(folder, [*manifest["files"], MANIFEST], draft, same=same)
            shutil.rmtree(path, ignore_errors=True)  # a damaged copy
            os.rename(draft, path)
            sync_to_disk(versions_folder)
    try:
        yield
    except BaseException:
        if not is_kept and seal_of(folder) == base:
            shutil.rmtree(path, ignore_errors=True)
        raise


@contextmanager
def _draft(versions_folder: Path) -> Iterator[Path]:
    draft = Path(tempfile.mkdtemp(prefix=_DRAFT, dir=versions_folder))
    try:
        yield draft
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _write_version(
    old: Bundle, points: Sequence[BundlePoint], provenance: Mapping[str, Any], draft: Path
) -> str:
    """Write a bundle with new points to a draft, and return its hash."""
    content = as_json(
        {
            **old.manifest,
            "operating_points": [each.to_dict() for each in points],
            "provenance": provenance,
        }
    )
    bundle = assemble_bundle(content, old.path, old.scorer)
    try:
        text = card_of(bundle, content["provenance"].get("card"))
    except (AttributeError, LookupError, TypeError) as error:
        raise BundleError(
            f"the provenance of the bundle {old.path} lacks a part that its card needs "
            f"({type(error).__name__}): pack it again."
        ) from error
    copy_files(old.path, [name for name in content["files"] if name != CARD], draft)
    (draft / CARD).write_text(text, encoding="utf-8", errors="backslashreplace")
    content["files"][CARD] = sha256_of(draft / CARD)
    write_manifest(content, draft)
    for name in (CARD, MANIFEST):
        copy_permissions(old.path / name, draft / name)
        sync_to_disk(draft / name)
    sync_to_disk(draft)
    new_hash = seal_of(draft)
    if new_hash is None or not is_copy(draft, old.path, {**content, "sha256": new_hash}):
        raise BundleError(f"a version of {old.path} was not written completely: try again.")
    return new_hash
