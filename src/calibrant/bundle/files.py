"""Files of a bundle: hashes and atomic writing of folders."""

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
from calibrant.files.atomic_write import umask

MANIFEST = "manifest.json"  # Name of the manifest file


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file, or of the names and contents of all files in a folder.

    Hidden files and folders, created by other tools, and broken links are ignored.
    """
    if path.is_dir():
        return _sha256_of_folder(path)
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_strict_json(path: Path) -> Any:
    """Read strict JSON, without NaN and Infinity; raise ValueError or RecursionError."""

    def refuse(word: str) -> None:
        raise ValueError(f"{word} is not JSON")

    return json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse)


def is_plain_name(name: str) -> bool:
    """Return whether a name is a plain file name other than the manifest."""
    return name not in ("", ".", "..", MANIFEST) and not set(name) & set("/\\\0")


def manifest_identity(folder: Path) -> tuple[int, ...] | None:
    """Return an identity that changes when the manifest of a folder does; None without one."""
    try:
        status = os.stat(folder / MANIFEST)
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size


def bundle_files(folder: Path) -> set[str] | None:
    """Return the file names listed in a folder's manifest, or None if it is not a bundle.

    Nothing else is checked, so damaged bundles and bundles of a newer format count as well.
    """
    try:
        manifest = read_strict_json(folder / MANIFEST)
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(manifest, dict) or not {"format", "scorer", "files"} <= set(manifest):
        return None
    return {MANIFEST, *manifest["files"]} if isinstance(manifest["files"], dict) else None


def check_folder(
    path: str | os.PathLike[str], *, force: bool = False, name: str = "folder"
) -> Path:
    """Check up front that a bundle can be written to `path`."""
    shown = Path(path)
    target = _resolve_target(shown, name)
    parent = target.parent
    if not parent.is_dir():
        problem = "is a file, not a folder" if parent.exists() else "does not exist"
        remedy = "choose another path" if parent.exists() else "create it first"
        raise InputError(f"{name} {shown}: the folder {shown.parent} {problem}: {remedy}.")
    if target.exists() and not target.is_dir():
        raise InputError(f"{name} {shown} is a file: a bundle is a folder, so choose another name.")
    if not os.access(parent, os.W_OK | os.X_OK):
        raise InputError(f"{name} {shown}: the folder {shown.parent} is not writable.")
    if target.is_dir():
        _check_replaceable(shown, target, force=force, name=name)
    return target


@contextmanager
def write_folder_atomically(
    path: str | os.PathLike[str], *, force: bool = False, name: str = "folder"
) -> Iterator[Path]:
    """Yield a temporary folder next to `path`, and move it to `path` on success.

    On failure (a full disk, an interruption), an existing folder stays unchanged and the temporary
    folder is removed.
    """
    target = check_folder(path, force=force, name=name)
    draft: Path | None = None
    try:
        draft = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
        yield draft
        _apply_umask(draft)
        _move_into_place(draft, target)
    except OSError as error:
        raise InputError(
            f"{name} {path} cannot be written: {error.strerror or error}: "
            "free some space or choose another path."
        ) from error
    finally:
        if draft is not None:
            shutil.rmtree(draft, ignore_errors=True)


def _sha256_of_folder(folder: Path) -> str:
    digest, seen = hashlib.sha256(), set()
    for path, folders, names in os.walk(folder, followlinks=True):
        folder_path = Path(path)
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        if folder_path.resolve() in seen:  # a circular link
            folders.clear()
        seen.add(folder_path.resolve())
        for name in sorted(name for name in names if not name.startswith(".")):
            file = folder_path / name
            if not file.is_file():  # a broken link, or a pipe
                continue
            entry = f"{file.relative_to(folder).as_posix()}\0{sha256_of(file)}\n"
            digest.update(entry.encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def _resolve_target(shown: Path, name: str) -> Path:
    """Resolve links, so that the folder is replaced and not the link to it."""
    try:
        target = shown.resolve()
        here = target == Path.cwd()
    except (OSError, RuntimeError) as error:
        raise InputError(f"{name} {shown} cannot be used: {error}: choose another path.") from None
    if here:
        raise InputError(f"{name} {shown} is the current folder: choose another one.")
    return target


def _check_replaceable(shown: Path, target: Path, *, force: bool, name: str) -> None:
    """Reject the replacement of anything but an empty folder or, with `force`, a bundle."""
    try:
        present = {entry.name for entry in target.iterdir()}
    except OSError as error:
        raise InputError(f"{name} {shown} cannot be read: {error.strerror}.") from None
    if not present:
        return
    bundle_names = bundle_files(target)
    if bundle_names is None:
        raise InputError(
            f"{name} {shown} is a folder with other files, not a bundle: choose another name."
        )
    if not force:
        how = "--force" if name.startswith("-") else "force=True"
        raise InputError(f"{name} {shown} is an existing bundle: add {how} to replace it.")
    others = sorted(present - bundle_names)
    if others:
        raise InputError(
            f"{name} {shown} also contains '{others[0]}', which is not part of the bundle and "
            "would be lost: move it first."
        )


def _move_into_place(draft: Path, target: Path) -> None:
    """Move the draft to its target; an existing folder is removed only after that."""
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


def _apply_umask(draft: Path) -> None:
    """Apply the umask, because mkdtemp and some libraries create private files."""
    mask = umask()
    draft.chmod(0o777 & ~mask)
    for file in draft.iterdir():
        file.chmod(0o666 & ~mask)
