"""The log of a service: each line with its time, level and process, and no floods."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["Sparing", "logged"]

_LOGGERS = ("calibrant.serving", "uvicorn")

_EVERY = 10.0
"""Seconds in which the same is said once."""

_APART = 200
"""Messages that are told apart in that time; beyond them, those of one kind count as the same."""


class Sparing(logging.Filter):
    """Lets the same message pass once in ten seconds, and counts the others.

    A database that is away fails every request: one line says as much as a thousand. A record
    that passes has `left_out`, how many like it did not since the last.

    Examples
    --------
    >>> sparing, record = Sparing(), logging.makeLogRecord({"msg": "the database is away"})
    >>> [sparing.filter(record) for _ in range(3)]
    [True, False, False]
    """

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._said: dict[tuple[int, str], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Tell whether a record is to be written."""
        now = time.monotonic()
        with self._lock:
            kind = record.levelno, record.getMessage()
            if kind not in self._said and len(self._said) >= _APART:
                self._forget(now)
                if len(self._said) >= _APART:
                    kind = record.levelno, str(record.msg)
            since, count = self._said.get(kind, (float("-inf"), 0))
            if now - since < _EVERY:
                self._said[kind] = since, count + 1
                return False
            self._said[kind] = now, 0
        record.left_out = count
        return True

    def _forget(self, now: float) -> None:
        """Drop what was said long ago and left nothing out."""
        self._said = {
            kind: said
            for kind, said in self._said.items()
            if now - said[0] < (_EVERY if said[1] == 0 else 10 * _EVERY)
        }


class _Line(logging.Formatter):
    """Writes a record as a line: the time in UTC, the level, the process, what is said."""

    converter = time.gmtime  # type: ignore[assignment]
    default_msec_format = "%s.%03dZ"

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(process)d %(message)s")
        self.datefmt = None
        self.default_time_format = "%Y-%m-%dT%H:%M:%S"

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        left_out = getattr(record, "left_out", 0)
        return super().formatMessage(record) + (f" ({left_out} more like it)" if left_out else "")


@contextmanager
def logged() -> Iterator[None]:
    """Have what the service and uvicorn log written to stderr, while it lasts."""
    handler = logging.StreamHandler()
    handler.setFormatter(_Line())
    handler.addFilter(Sparing())
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    for each in loggers:
        each.addHandler(handler)
    try:
        yield
    finally:
        for each in loggers:
            each.removeHandler(handler)
