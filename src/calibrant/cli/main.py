"""Entry point of the command `calibrant`.

The app is imported inside `run`, so that Ctrl-C is handled while Typer is being imported.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from calibrant.cli import interruption

if TYPE_CHECKING:
    from typer import Typer

    from calibrant.cli.app import app

__all__ = ["app", "run"]


def run(load: Callable[[], Typer] | None = None) -> None:
    """Run the command line of this process: `calibrant`, or the app that `load` returns."""
    try:
        _replace_closed_streams()
        interruption.install()
        (load or _calibrant)()()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)


def _calibrant() -> Typer:
    from calibrant.cli.app import app

    return app


def _replace_closed_streams() -> None:
    """Replace a stdout or stderr that the shell closed (`>&-`) by the null device."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115


def __getattr__(name: str) -> Any:
    if name == "app":
        from calibrant.cli.app import app

        return app
    raise AttributeError(f"module 'calibrant.cli.main' has no attribute {name!r}")
