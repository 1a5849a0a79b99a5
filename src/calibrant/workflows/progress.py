"""Progress of a workflow: silent in the library, a bar on the command line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

Progress = Callable[[str, int | None], AbstractContextManager[Callable[[int], None]]]
"""Called with a label and the expected number of rows; yields a function to call with rows done."""


@contextmanager
def no_progress(what: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """Report nothing."""
    yield lambda rows: None
