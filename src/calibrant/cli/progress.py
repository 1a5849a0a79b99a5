"""Progress on stderr: a bar on a terminal, occasional lines in a log."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from calibrant.cli import interruption

_LOG_INTERVAL = 30.0  # seconds between lines of a log


@contextmanager
def progress(what: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
    """Yield a function to call with the number of finished rows; it ends an interrupted command."""
    if not sys.stderr.isatty():
        yield lambda rows: interruption.check()
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    counted = () if total is None else (TextColumn("{task.completed:,.0f} rows"),)
    columns = (TextColumn("{task.description}"), BarColumn(), *counted, TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)

        def advance(rows: int) -> None:
            interruption.check()
            bar.advance(task, rows)

        yield advance


@contextmanager
def status(what: str) -> Iterator[Callable[[str], None]]:
    """Yield a function to call with a status line; a log gets one at most every half minute."""
    if not sys.stderr.isatty():
        yield _log_reporter()
        return
    from rich.console import Console
    from rich.markup import escape

    with Console(stderr=True).status(escape(what)) as shown:
        yield lambda line: shown.update(escape(line))


def _log_reporter() -> Callable[[str], None]:
    last = time.monotonic()

    def report(line: str) -> None:
        nonlocal last
        if time.monotonic() >= last + _LOG_INTERVAL:
            print(line, file=sys.stderr, flush=True)
            last = time.monotonic()

    return report
