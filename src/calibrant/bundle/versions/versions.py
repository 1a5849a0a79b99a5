"""Versions of a bundle: its points change while it serves, and every earlier version is kept."""

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
from calibrant.bundle.loading import assembled, load_bundle
from calibrant.bundle.manifest import as_json, read_manifest, write_manifest
from calibrant.bundle.packing import CARD
from calibrant.bundle.versions.exchange import ASIDE, synced, take_place
from calibrant.bundle.versions.kept_versions import (
    SHORT,
    Version,
    copied,
    files_alike,
    is_copy,
    kept_versions,
    seal_of,
    take_rights,
    version_named,
)
from calibrant.bundle.versions.lock import alone
from calibrant.distribution import own_version
from calibrant.errors import BundleError, InputError, VersionConflict

if TYPE_CHECKING:
    from calibrant.bundle.bundle import Bundle
    from calibrant.bundle.points import BundlePoint

__all__ = ["Version", "Versions"]

_DRAFT = ".draft-"
"""How names of folders begin that are being made; what a killed process left is removed."""

_Fill = Callable[[Path, Path], str]
"""Fills a draft (second) with a version of the bundle in a folder (first); returns its hash."""


class Versions:
    """The versions of one bundle, kept in `<folder>.versions/` beside it.

    A change is made whole in a draft first; then the draft and the bundle's folder change places,
    in one step where the system can. So whoever loads the bundle gets the old version or the new
    one. A process that is killed leaves one of both at the folder; on systems that need two renames
    the old one may be left in the versions folder, from where the next change puts it back.

    Parameters
    ----------
    folder : of the bundle; where it is a link, the folder that it leads to is changed

    Examples
    --------
    >>> from calibrant.bundle import BundlePoint, load_bundle, pack
    >>> from calibrant.thresholds import precision, select
    >>> labels, logits = [0, 1] * 200, [-3.0, 3.0] * 200
    >>> points = [select(labels, logits=logits, hold=precision >= goal) for goal in (0.8, 0.9)]
    >>> folder = Path(tempfile.mkdtemp()) / "bundle"
    >>> first = pack(folder, points=points[:1]).manifest["sha256"]
    >>> versions, told = Versions(folder), {"by": "Ann", "reason": "fewer mistakes"}
    >>> second = versions.save_points(
    ...     [BundlePoint(points[1], "raw")], base=first, told=told, begin=lambda made: None
    ... )
    >>> [(each.current, each.hash == first) for each in versions.all()]
    [(True, False), (False, True)]
    >>> versions.restore(first, base=second, begin=lambda made: None) == first
    True
    >>> load_bundle(folder).manifest["sha256"] == first
    True
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder = Path(folder)

    @property
    def place(self) -> Path:
        """The folder that keeps them, which need not be there yet."""
        return _place(self._resolved())

    def all(self) -> list[Version]:
        """Return every version, the newest first; nothing is written and no lock is needed."""
        folder = self._resolved()
        current = Version.at(folder, current=True)
        found = [] if current is None else [current]
        kept = kept_versions(_place(folder))
        found += [each for each in kept if current is None or each.hash != current.hash]
        return sorted(found, key=lambda each: each.rank, reverse=True)

    def save_points(
        self,
        points: Sequence[BundlePoint],
        *,
        base: str,
        told: Mapping[str, Any],
        begin: Callable[[str], None],
        provenance: Mapping[str, Any] | None = None,
    ) -> str:
        """Put a version with other operating points in the bundle's place; return its hash.

        Model, calibrator and all other files stay; the card is written anew. What the points
        promise together is not known here, so `confidence_together` of the provenance is dropped
        where `provenance` does not give a new one: the card then counts all doubts together.

        Parameters
        ----------
        points : all points of the new version, in their order
        base : hash of the version that they were chosen for
        told : about the change, as JSON has it; the card shows "what" (a sentence), "by" (a name)
            and "reason". When it was, and what it was before, are added
        begin : called with the new hash when all is ready, right before folders change places;
            where it raises, nothing is changed
        provenance : entries that take the place of those of the old version
        """

        def fill(folder: Path, draft: Path) -> str:
            old = load_bundle(folder, device="cpu")
            change = {**told, "at": _now(), "base": base, "calibrant": own_version()}
            made = {**old.provenance, **(provenance or {})}
            if "confidence_together" not in (provenance or {}):
                made.pop("confidence_together", None)
            before = made.get("changes")
            made["changes"] = [*(before if isinstance(before, list) else []), change]
            return _write_version(old, points, made, draft)

        return self._changed(base, begin, fill)

    def restore(self, hash: str, *, base: str, begin: Callable[[str], None]) -> str:
        """Put a kept version in the bundle's place, byte for byte; return its hash.

        Parameters
        ----------
        hash : of the version, all 64 characters
        base : hash of the version that is to be replaced
        begin : as in `save_points`
        """
        if hash == base:
            raise InputError(f"version {hash[:SHORT]} is the bundle's own: choose an earlier one.")

        def fill(folder: Path, draft: Path) -> str:
            kept = version_named(_place(folder), hash)
            manifest = read_manifest(kept)
            copied(kept, [*manifest["files"], MANIFEST], draft)
            load_bundle(draft, device="cpu")  # what could not be loaded is not put there
            return hash

        return self._changed(base, begin, fill)

    def _changed(self, base: str, begin: Callable[[str], None], fill: _Fill) -> str:
        folder = self._resolved()
        place = _place(folder)
        try:
            mode = _checked_mode(folder)
            with alone(place, mode=mode):
                _tidy(folder, place)
                _check_base(folder, base)
                with _kept(folder, place, base), _draft(place) as draft:
                    made = fill(folder, draft)
                    begin(made)
                    old = take_place(draft, folder, refuse=lambda old: _check_base(old, base))
                    shutil.rmtree(old, ignore_errors=True)
                    synced(folder.parent)
                return made
        except OSError as error:
            raise BundleError(
                f"the bundle {self._folder} cannot be changed: {error.strerror or error}: see that "
                f"there is room and that {folder.parent} and what is in it may be written."
            ) from error

    def _resolved(self) -> Path:
        """Follow links, so that the folder changes and not the link to it."""
        try:
            return self._folder.resolve()
        except (OSError, RuntimeError) as error:
            raise BundleError(f"the bundle {self._folder} cannot be used: {error}.") from None


def _place(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.versions")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _checked_mode(folder: Path) -> int:
    """Refuse, before anything is written, a folder that cannot be replaced; return its rights."""
    with suppress(FileNotFoundError):  # the folder we were in is gone
        here = Path.cwd()
        if folder in (here, *here.parents):
            raise BundleError(
                f"the bundle {folder} cannot be replaced while this process stands in it: start it "
                "from another folder."
            )
    if os.path.ismount(folder):
        raise BundleError(
            f"the bundle {folder} cannot be replaced, for it is a mount of its own: mount the "
            "folder above it instead."
        )
    for place in (folder.parent, folder):
        if place.is_dir() and not os.access(place, os.W_OK | os.X_OK):
            raise BundleError(
                f"the bundle {folder} cannot be changed, for {place} is not writable: have it made "
                "writable for this user."
            )
    return folder.stat().st_mode & 0o7777 if folder.is_dir() else 0o777


def _tidy(folder: Path, place: Path) -> None:
    """Remove what a killed process left; a bundle that it had just set aside is put back."""
    for path in sorted(place.glob(f"{_DRAFT}*")):
        if path.name.endswith(ASIDE) and not folder.exists():
            os.rename(path, folder)
        else:
            shutil.rmtree(path, ignore_errors=True)


def _check_base(folder: Path, base: str) -> None:
    found = seal_of(folder)
    if found is None:
        found = str(read_manifest(folder)["sha256"])  # says what is wrong
    if found != base:
        raise VersionConflict(
            f"the bundle is version {found[:SHORT]} by now, and not {base[:SHORT]} any more: look "
            "at it again, then repeat the change."
        )


@contextmanager
def _kept(folder: Path, place: Path, base: str) -> Iterator[None]:
    """Keep a copy of the bundle; it goes again where the bundle was not changed after all."""
    manifest = read_manifest(folder)
    others = sorted({each.name for each in folder.iterdir()} - {MANIFEST, *manifest["files"]})
    if others:
        raise BundleError(
            f"the bundle {folder} also holds '{others[0]}', which is not the bundle's and would be "
            "lost: move it away first."
        )
    path = place / base[:SHORT]
    there = is_copy(path, folder, manifest)
    if not there:
        with _draft(place) as draft:
            same = files_alike(place, manifest["files"])
            copied(folder, [*manifest["files"], MANIFEST], draft, same=same)
            shutil.rmtree(path, ignore_errors=True)  # a damaged one
            os.rename(draft, path)
            synced(place)
    try:
        yield
    except BaseException:
        if not there and seal_of(folder) == base:
            shutil.rmtree(path, ignore_errors=True)
        raise


@contextmanager
def _draft(place: Path) -> Iterator[Path]:
    draft = Path(tempfile.mkdtemp(prefix=_DRAFT, dir=place))
    try:
        yield draft
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _write_version(
    old: Bundle, points: Sequence[BundlePoint], provenance: Mapping[str, Any], draft: Path
) -> str:
    """Fill a draft with a bundle that has other points, and return its hash."""
    content = as_json(
        {
            **old.manifest,
            "operating_points": [each.to_dict() for each in points],
            "provenance": provenance,
        }
    )
    made = assembled(content, old.path, old.scorer)
    try:
        text = card_of(made, content["provenance"].get("card"))
    except (AttributeError, LookupError, TypeError) as error:
        raise BundleError(
            f"the provenance of the bundle {old.path} lacks a part that its card tells "
            f"({type(error).__name__}): pack it again."
        ) from error
    copied(old.path, [name for name in content["files"] if name != CARD], draft)
    (draft / CARD).write_text(text, encoding="utf-8", errors="backslashreplace")
    content["files"][CARD] = sha256_of(draft / CARD)
    write_manifest(content, draft)
    for name in (CARD, MANIFEST):
        take_rights(old.path / name, draft / name)
        synced(draft / name)
    synced(draft)
    found = seal_of(draft)
    if found is None or not is_copy(draft, old.path, {**content, "sha256": found}):
        raise BundleError(f"a version of {old.path} was not written whole: try again.")
    return found
