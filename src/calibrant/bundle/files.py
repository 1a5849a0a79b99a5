"""Files of a bundle: their hashes, and a folder that is written whole or not at all."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from calibrant.errors import InputError
from calibrant.files.umask import umask

__all__ = [
    "MANIFEST",
    "bundle_files",
    "check_folder",
    "is_plain_name",
    "manifest_identity",
    "read_strictly",
    "sha256_of",
    "whole_folder",
]

MANIFEST = "manifest.json"
"""The file that tells what all the others are."""


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file's bytes; of a folder that of the names and bytes of its files.

    Files and folders whose names begin with a dot do not count: other tools leave them there.
    Neither do links to nothing.

    Examples
    --------
    >>> file = Path(tempfile.mkdtemp()) / "a.txt"
    >>> _ = file.write_bytes(b"abc")
    >>> sha256_of(file)[:16]
    'ba7816bf8f01cfea'
    """
    if path.is_dir():
        return _sha256_of_folder(path)
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_strictly(path: Path) -> Any:
    """Read JSON without NaN and Infinity; raise ValueError or RecursionError where it is not."""

    def refuse(word: str) -> None:
        raise ValueError(f"{word} is not JSON")

    return json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse)


def is_plain_name(name: str) -> bool:
    """Whether a name is that of a file right in the folder, other than the manifest.

    Examples
    --------
    >>> is_plain_name("report.html"), is_plain_name("../report.html")
    (True, False)
    """
    return name not in ("", ".", "..", MANIFEST) and not set(name) & set("/\\\0")


def manifest_identity(folder: Path) -> tuple[int, ...] | None:
    """Return what changes when a folder's manifest is replaced or written anew; None without one.

    Examples
    --------
    >>> manifest_identity(Path(tempfile.mkdtemp())) is None
    True
    """
    try:
        found = os.stat(folder / MANIFEST)
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size


def bundle_files(folder: Path) -> set[str] | None:
    """Return the names of the files that a folder's manifest lists, None where it is no bundle.

    Nothing else is checked: a damaged bundle and one of a newer format are bundles too.
    """
    try:
        found = read_strictly(folder / MANIFEST)
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or not {"format", "scorer", "files"} <= set(found):
        return None
    return {MANIFEST, *found["files"]} if isinstance(found["files"], dict) else None


def check_folder(
    path: str | os.PathLike[str], *, force: bool = False, name: str = "folder"
) -> Path:
    """Check, before any work is done, that a bundle can be written at `path`.

    Examples
    --------
    >>> check_folder("no_such_folder/bundle", name="-o")
    Traceback (most recent call last):
    ...
    calibrant.errors.InputError: -o no_such_folder/bundle: the folder no_such_folder does not ...
    """
    shown = Path(path)
    target = _target(shown, name)
    parent = target.parent
    if not parent.is_dir():
        problem = "is a file, not a folder" if parent.exists() else "does not exist"
        remedy = "choose another place" if parent.exists() else "create it first"
        raise InputError(f"{name} {shown}: the folder {shown.parent} {problem}: {remedy}.")
    if target.exists() and not target.is_dir():
        raise InputError(f"{name} {shown} is a file: a bundle is a folder, so choose another name.")
    if not os.access(parent, os.W_OK | os.X_OK):
        raise InputError(f"{name} {shown}: the folder {shown.parent} is not writable.")
    if target.is_dir():
        _check_replaceable(shown, target, force=force, name=name)
    return target


@contextmanager
def whole_folder(
    path: str | os.PathLike[str], *, force: bool = False, name: str = "folder"
) -> Iterator[Path]:
    """Lend a temporary folder beside `path` and move it there when all went well.

    Whatever goes wrong (a full disk, an interruption), nothing is left behind and what stood at
    `path` before still stands there.

    Examples
    --------
    >>> place = Path(tempfile.mkdtemp())
    >>> with whole_folder(place / "bundle") as draft:
    ...     _ = (draft / "a.txt").write_text("done")
    >>> [str(p.relative_to(place)) for p in sorted(place.rglob("*"))]
    ['bundle', 'bundle/a.txt']
    """
    target = check_folder(path, force=force, name=name)
    draft: Path | None = None
    try:
        draft = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
        yield draft
        _open_up(draft)
        _move(draft, target)
    except OSError as error:
        raise InputError(
            f"{name} {path} cannot be written: {error.strerror or error}: "
            "make room there or choose another place."
        ) from error
    finally:
        if draft is not None:
            shutil.rmtree(draft, ignore_errors=True)


def _sha256_of_folder(folder: Path) -> str:
    whole, seen = hashlib.sha256(), set()
    for place, folders, names in os.walk(folder, followlinks=True):
        here = Path(place)
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        if here.resolve() in seen:  # a link back
            folders.clear()
        seen.add(here.resolve())
        for name in sorted(name for name in names if not name.startswith(".")):
            if not (here / name).is_file():  # a link to nothing, or a pipe that would never end
                continue
            told = f"{(here / name).relative_to(folder).as_posix()}\0{sha256_of(here / name)}\n"
            whole.update(told.encode("utf-8", "surrogateescape"))
    return whole.hexdigest()


def _target(shown: Path, name: str) -> Path:
    """Follow links, so that what is replaced is the folder and not the link to it."""
    try:
        target = shown.resolve()
        here = target == Path.cwd()
    except (OSError, RuntimeError) as error:
        raise InputError(f"{name} {shown} cannot be used: {error}: choose another place.") from None
    if here:
        raise InputError(f"{name} {shown} is the folder you are in: name a new one.")
    return target


def _check_replaceable(shown: Path, target: Path, *, force: bool, name: str) -> None:
    """Refuse to replace anything but an empty folder or, when told to, a bundle."""
    try:
        there = {entry.name for entry in target.iterdir()}
    except OSError as error:
        raise InputError(f"{name} {shown} cannot be read: {error.strerror}.") from None
    if not there:
        return
    own = bundle_files(target)
    if own is None:
        raise InputError(
            f"{name} {shown} is a folder with files that are not a bundle: choose another name."
        )
    if not force:
        how = "--force" if name.startswith("-") else "force=True"
        raise InputError(f"{name} {shown} is a bundle already: add {how} to replace it.")
    others = sorted(there - own)
    if others:
        raise InputError(
            f"{name} {shown} also holds '{others[0]}', which is not the bundle's and would be "
            "lost: move it away first."
        )


def _move(draft: Path, target: Path) -> None:
    """Put the draft at its place; what stood there goes only once the new one stands."""
    if not target.exists():
        draft.rename(target)
        return
    old = Path(tempfile.mkdtemp(prefix=f".{target.name}.old.", dir=target.parent))
    moved = old / target.name
    try:
        target.rename(moved)
        draft.rename(target)
    except BaseException:
        if moved.exists() and not target.exists():
            moved.rename(target)
        raise
    finally:
        with suppress(OSError):
            shutil.rmtree(old)


def _open_up(draft: Path) -> None:
    """Let others read: mkdtemp and some libraries make what only the owner may."""
    closed = umask()
    draft.chmod(0o777 & ~closed)
    for file in draft.iterdir():
        file.chmod(0o666 & ~closed)
