"""The package as it is given away: its version and what it needs, installed or a checkout."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["is_installed", "own_requirements", "own_version"]

_NAME = "calibrant"
_UNKNOWN = "0+unknown"


@cache
def own_version() -> str:
    """Return the version, also where nothing is installed (`PYTHONPATH=src`).

    A checkout has it in `pyproject.toml`, beside `src`. What was copied out of both has none.

    Examples
    --------
    >>> own_version().count(".") >= 1
    True
    """
    return str(_installed() or _project().get("version") or _UNKNOWN)


def own_requirements() -> list[str]:
    """Return what it needs, extras too, as lines like "numpy>=1.26".

    Examples
    --------
    >>> any(line.startswith("numpy>=") for line in own_requirements())
    True
    """
    if is_installed():
        from importlib.metadata import requires

        return requires(_NAME) or []
    extras = _project().get("optional-dependencies", {})
    return [
        *_project().get("dependencies", []),
        *(line for part in extras.values() for line in part),
    ]


def is_installed() -> bool:
    """Say whether a package manager put this package here."""
    return _installed() is not None


def _installed() -> str | None:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(_NAME)
    except PackageNotFoundError:
        return None


@cache
def _project() -> dict[str, Any]:
    """Read the `pyproject.toml` of a checkout; empty where there is none, or another project's."""
    import tomllib

    path = Path(__file__).parents[2] / "pyproject.toml"
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))["project"]
        return dict(found) if found["name"] == _NAME else {}
    except (OSError, ValueError, LookupError, TypeError):
        return {}
