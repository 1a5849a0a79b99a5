"""Files written whole or not at all, as text or strict JSON."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from calibrant.errors import InputError


def write_json(content: Mapping[str, Any], path: Path, *, name: str = "-o") -> None:
    """Write one strict JSON object; errors call the path `name`."""
    text = json.dumps(content, allow_nan=False, ensure_ascii=False, indent=2)
    with write_atomically(path, name=name) as draft:
        draft.write_text(f"{text}\n", encoding="utf-8", errors="backslashreplace")


def read_json(path: Path, *, what: str, maker: str, flag: str) -> Any:
    """Read strict JSON."""
    if not path.exists():
        raise InputError(f"{flag} {path} does not exist: name a file that {maker} wrote.")
    if not path.is_file():
        raise InputError(f"{flag} {path} is not a file: name a file that {maker} wrote.")
    try:
        return json.loads(path.read_text(encoding="utf-8"), parse_constant=_refuse)
    except PermissionError:
        raise InputError(f"{path} is not readable: check its permissions.") from None
    except (ValueError, RecursionError):
        raise InputError(
            f"{path} is not a saved {what}, because it is not valid JSON: name a file that {maker} "
            "wrote, or create it again."
        ) from None


def _refuse(word: str) -> None:
    raise ValueError(f"{word} is not JSON")


_STATUS = Path("/proc/self/status")


def umask() -> int:
    """Return the umask of this process.

    Python can only read it by setting it, which affects other threads; Linux also reports it in a
    file.
    """
    try:
        match = re.search(r"^Umask:\s*([0-7]+)$", _STATUS.read_text(encoding="utf-8"), re.MULTILINE)
    except OSError:
        match = None
    if match is not None:
        return int(match[1], 8)
    mask = os.umask(0o077)  # restrictive, for files that other threads create meanwhile
    os.umask(mask)
    return mask


def check_writable(path: str | os.PathLike[str], *, name: str = "path") -> Path:
    """Check up front that a file can be written to `path`."""
    path = Path(path)
    folder = path.parent
    if not folder.exists():
        raise InputError(f"{name} {path}: the folder {folder} does not exist: create it first.")
    if not folder.is_dir():
        raise InputError(f"{name} {path}: {folder} is a file, not a folder: choose another path.")
    if path.is_dir():
        raise InputError(f"{name} {path} is a folder: add a file name.")
    if path.exists() and not path.is_file():
        raise InputError(f"{name} {path} is a device or a pipe: use a regular file.")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(f"{name} {path}: the folder {folder} is not writable: choose another one.")
    return path


@contextmanager
def write_atomically(
    path: str | os.PathLike[str], *, name: str = "path", private: bool = False
) -> Iterator[Path]:
    """Yield a temporary file next to `path`, and move it to `path` on success.

    On failure (a full disk, an interruption), an existing file stays unchanged and the temporary
    file is removed.
    """
    path = check_writable(path, name=name)
    draft: Path | None = None
    try:
        # Keep the suffix, which selects the format.
        handle, temporary = tempfile.mkstemp(
            prefix=f".{path.name}.", suffix=path.suffix, dir=path.parent
        )
        draft = Path(temporary)
        os.close(handle)
        yield draft
        if not private:
            draft.chmod(0o666 & ~umask())  # mkstemp creates private files
        draft.replace(path)
    except OSError as error:
        raise InputError(
            f"{name} {path} cannot be written: {error.strerror or error}: "
            "free some space or choose another path."
        ) from error
    finally:
        if draft is not None:
            draft.unlink(missing_ok=True)
