"""Read and write `study.toml`, the settings of a study."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from calibrant.errors import InputError
from calibrant.files.atomic_write import write_atomically
from calibrant.study.settings.config import StudyConfig, check_names

_HEAD = """\
# The settings of a study. Run it again: calibrant train --config study.toml
# Paths are relative to the current folder, not to the folder of this file.
"""
_REMEDY = "name a TOML file that calibrant train wrote, or write one like it"


def read_config(path: str | Path) -> dict[str, Any]:
    r"""Read settings; invalid TOML and unknown settings raise `InputError`.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "study.toml"
    >>> _ = file.write_text('data = "tickets.csv"\nseeds = [0, 1]\n')
    >>> read_config(file)
    {'data': 'tickets.csv', 'seeds': [0, 1]}
    """
    path = Path(path)
    if not path.is_file():
        problem = "is not a file" if path.exists() else "does not exist"
        raise InputError(f"--config {path} {problem}: {_REMEDY}.")
    try:
        settings = tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    except PermissionError:
        raise InputError(f"--config {path} cannot be read: change its permissions.") from None
    except UnicodeDecodeError:
        raise InputError(f"--config {path} is not UTF-8 text: {_REMEDY}.") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(
            f"--config {path} is not valid TOML ({error}): fix it, or {_REMEDY}."
        ) from None
    check_names(settings, source=str(path))
    return settings


def write_config(config: StudyConfig, path: str | Path) -> Path:
    """Write settings atomically; `read_config` reads them.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "study.toml"
    >>> config = StudyConfig("tickets.csv", "reason", text="message", shares="7:2:1")
    >>> written = write_config(config, file)
    >>> StudyConfig.from_dict(read_config(written)) == config
    True
    """
    text = config_text(config)
    with write_atomically(path, name="study.toml") as draft:
        draft.write_text(text, encoding="utf-8", newline="\n")
    return Path(path)


def config_text(config: StudyConfig) -> str:
    """Return settings as TOML; a value that TOML cannot hold raises `InputError`."""
    content = config.to_dict()
    tables = {name: part for name, part in content.items() if isinstance(part, Mapping)}
    scalars = {name: part for name, part in content.items() if name not in tables}
    lines = [f"{_key(name)} = {_value(part)}" for name, part in scalars.items()]
    for name, table in tables.items():
        if table:
            lines += ["", f"[{_key(name)}]"]
            lines += [f"{_key(key)} = {_value(part)}" for key, part in table.items()]
    return _HEAD + "\n" + "\n".join(lines) + "\n"


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _quote(value)
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(_value(part) for part in value)}]"
    if isinstance(value, Mapping):
        parts = (f"{_key(key)} = {_value(part)}" for key, part in value.items())
        return f"{{{', '.join(parts)}}}"
    raise InputError(
        f"a setting must be text, a number, true, false or a list of these to be saved, got "
        f"{value!r}."
    )


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _quote(name)


def _quote(text: str) -> str:
    # TOML strings use the escapes of JSON, but DEL must be escaped too.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
