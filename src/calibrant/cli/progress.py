"""Progress on stderr: a bar where somebody watches, a line now and then where a log is kept."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["progress", "status"]

_APART = 30.0  # seconds between lines of a log


@contextmanager
def progress(what: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
    """Lend a function to call with the number of rows that were done."""
    if not sys.stderr.isatty():
        yield lambda rows: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    counted = () if total is None else (TextColumn("{task.completed:,.0f} rows"),)
    columns = (TextColumn("{task.description}"), BarColumn(), *counted, TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda rows: bar.advance(task, rows)


@contextmanager
def status(what: str) -> Iterator[Callable[[str], None]]:
    """Lend a function to call with one line about what is being done; the last one is shown.

    In a log stand the first line after half a minute, and others at least half a minute apart.
    """
    if not sys.stderr.isatty():
        yield _now_and_then()
        return
    from rich.console import Console
    from rich.markup import escape

    with Console(stderr=True).status(escape(what)) as shown:
        yield lambda line: shown.update(escape(line))


def _now_and_then() -> Callable[[str], None]:
    last = time.monotonic()

    def tell(line: str) -> None:
        nonlocal last
        if time.monotonic() >= last + _APART:
            print(line, file=sys.stderr, flush=True)
            last = time.monotonic()

    return tell
