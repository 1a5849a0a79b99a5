"""`study.toml`: the settings of a study as a file that people read, change and run again."""

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

__all__ = ["config_text", "read_config", "write_config"]

_HEAD = """\
# The settings of a study. Run it again: calibrant train --config study.toml
# Paths are taken from the folder in which the command is run, not from that of this file.
"""
_MAKER = "name a toml file that calibrant train wrote, or write one like it"


def read_config(path: str | Path) -> dict[str, Any]:
    r"""Read settings; what is no toml, or no setting, is refused in one sentence.

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
        raise InputError(f"--config {path} {problem}: {_MAKER}.")
    try:
        found = tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    except PermissionError:
        raise InputError(f"--config {path} may not be read: ask for permission on it.") from None
    except UnicodeDecodeError:
        raise InputError(f"--config {path} is no UTF-8 text: {_MAKER}.") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(f"--config {path} is no toml ({error}): mend it, or {_MAKER}.") from None
    check_names(found, source=str(path))
    return found


def write_config(config: StudyConfig, path: str | Path) -> Path:
    """Write settings, whole or not at all; `read_config` gives them back.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "study.toml"
    >>> config = StudyConfig("tickets.csv", "reason", text="message", training={"epochs": 5})
    >>> written = write_config(config, file)
    >>> StudyConfig.from_dict(read_config(written)) == config
    True
    """
    text = config_text(config)
    with write_atomically(path, name="study.toml") as draft:
        draft.write_text(text, encoding="utf-8", newline="\n")
    return Path(path)


def config_text(config: StudyConfig) -> str:
    """Return what `write_config` writes; a setting that no toml file can hold is refused."""
    content = config.to_dict()
    tables = {name: part for name, part in content.items() if isinstance(part, Mapping)}
    plain = {name: part for name, part in content.items() if name not in tables}
    lines = [f"{_key(name)} = {_value(part)}" for name, part in plain.items()]
    for name, table in tables.items():
        if table:
            lines += ["", f"[{_key(name)}]"]
            lines += [f"{_key(key)} = {_value(part)}" for key, part in table.items()]
    return _HEAD + "\n" + "\n".join(lines) + "\n"


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(_value(part) for part in value)}]"
    if isinstance(value, Mapping):
        parts = (f"{_key(key)} = {_value(part)}" for key, part in value.items())
        return f"{{{', '.join(parts)}}}"
    raise InputError(
        f"a setting must be text, a number, true or false, or a list of these to be saved, got "
        f"{value!r}."
    )


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _quoted(name)


def _quoted(text: str) -> str:
    # A toml string has the escapes of JSON, and one character more that must be escaped.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
