"""Write a file whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from calibrant.errors import InputError
from calibrant.files.umask import umask

__all__ = ["check_writable", "whole_file"]


def check_writable(path: str | os.PathLike[str], *, name: str = "path") -> Path:
    """Check, before any work is done, that a file can be written at `path`.

    Examples
    --------
    >>> check_writable("no_such_folder/report.html", name="--html")
    Traceback (most recent call last):
    ...
    calibrant.errors.InputError: --html no_such_folder/report.html: the folder no_such_folder ...
    """
    path = Path(path)
    folder = path.parent
    if not folder.exists():
        raise InputError(f"{name} {path}: the folder {folder} does not exist: create it first.")
    if not folder.is_dir():
        raise InputError(f"{name} {path}: {folder} is a file, not a folder: choose another place.")
    if path.is_dir():
        raise InputError(f"{name} {path} is a folder: add the name of a file in it.")
    if path.exists() and not path.is_file():
        raise InputError(f"{name} {path} is a device or a pipe: give the name of a plain file.")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(f"{name} {path}: the folder {folder} is not writable: choose another one.")
    return path


@contextmanager
def whole_file(
    path: str | os.PathLike[str], *, name: str = "path", private: bool = False
) -> Iterator[Path]:
    """Lend a temporary file beside `path` and move it there when all went well.

    Whatever goes wrong (a full disk, an interruption), nothing is left behind and what stood at
    `path` before still stands there.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> with whole_file(folder / "a.txt") as draft:
    ...     _ = draft.write_text("done")
    >>> [p.name for p in folder.iterdir()]
    ['a.txt']
    """
    path = check_writable(path, name=name)
    draft: Path | None = None
    try:
        # The suffix stays: writers choose the format by it.
        handle, made = tempfile.mkstemp(
            prefix=f".{path.name}.", suffix=path.suffix, dir=path.parent
        )
        draft = Path(made)
        os.close(handle)
        yield draft
        if not private:
            draft.chmod(0o666 & ~umask())  # mkstemp makes files that only their owner may read
        draft.replace(path)
    except OSError as error:
        raise InputError(
            f"{name} {path} cannot be written: {error.strerror or error}: "
            "make room there or choose another place."
        ) from error
    finally:
        if draft is not None:
            draft.unlink(missing_ok=True)
