"""Version and requirements of the package, installed or run from a source checkout."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

_NAME = "calibrant"
_UNKNOWN_VERSION = "0+unknown"


@cache
def own_version() -> str:
    """Return the version of the installed package, or that of the checkout (`PYTHONPATH=src`).

    A checkout has it in `pyproject.toml`, beside `src`. A copy of the sources alone has none.
    """
    return str(_installed_version() or _read_project().get("version") or _UNKNOWN_VERSION)


def own_requirements() -> list[str]:
    """Return the requirements, including those of extras, as lines like "numpy>=1.26"."""
    if is_installed():
        from importlib.metadata import requires

        return requires(_NAME) or []
    extras = _read_project().get("optional-dependencies", {})
    return [
        *_read_project().get("dependencies", []),
        *(line for part in extras.values() for line in part),
    ]


def is_installed() -> bool:
    """Return whether the package is installed."""
    return _installed_version() is not None


def _installed_version() -> str | None:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(_NAME)
    except PackageNotFoundError:
        return None


@cache
def _read_project() -> dict[str, Any]:
    """Return the project table of the checkout's `pyproject.toml`, or an empty one."""
    import tomllib

    path = Path(__file__).parents[2] / "pyproject.toml"
    try:
        project = tomllib.loads(path.read_text(encoding="utf-8"))["project"]
        return dict(project) if project["name"] == _NAME else {}
    except (OSError, ValueError, LookupError, TypeError):
        return {}
