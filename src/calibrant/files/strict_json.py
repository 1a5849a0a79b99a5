"""Strict JSON files, written atomically."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from calibrant.errors import InputError


def write_json(content: Mapping[str, Any], path: Path, *, name: str = "-o") -> None:
    """Write one strict JSON object; errors call the path `name`."""
    from calibrant.files.atomic_write import write_atomically

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
