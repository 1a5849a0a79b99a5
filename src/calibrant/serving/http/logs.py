"""Logging to stderr: time, level and process on each line, repeats suppressed."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["RepeatFilter", "log_to_stderr"]

_LOGGERS = ("calibrant.serving", "uvicorn")

_EVERY = 10.0
"""Seconds in which a message is log_to_stderr once."""

_MAX_TRACKED = 200
"""Maximum number of distinct messages tracked; beyond it, messages are grouped by format."""


class RepeatFilter(logging.Filter):
    """Logging filter that passes a message once in ten seconds and counts the others.

    An unavailable database fails every request, and one line is enough. A record that passes has
    `left_out`, the number of suppressed records since the last one.

    Examples
    --------
    >>> limit, record = RepeatFilter(), logging.makeLogRecord({"msg": "no database"})
    >>> [limit.filter(record) for _ in range(3)]
    [True, False, False]
    """

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._counts: dict[tuple[int, str], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether to write a record."""
        now = time.monotonic()
        with self._lock:
            kind = record.levelno, record.getMessage()
            if kind not in self._counts and len(self._counts) >= _MAX_TRACKED:
                self._forget(now)
                if len(self._counts) >= _MAX_TRACKED:
                    kind = record.levelno, str(record.msg)
            since, count = self._counts.get(kind, (float("-inf"), 0))
            if now - since < _EVERY:
                self._counts[kind] = since, count + 1
                return False
            self._counts[kind] = now, 0
        record.left_out = count
        return True

    def _forget(self, now: float) -> None:
        """Drop old messages without suppressed repeats."""
        self._counts = {
            kind: (since, count)
            for kind, (since, count) in self._counts.items()
            if now - since < (_EVERY if count == 0 else 10 * _EVERY)
        }


class _LineFormatter(logging.Formatter):
    """Formats a record as a line: UTC time, level, process, message."""

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
def log_to_stderr() -> Iterator[None]:
    """Write the logs of the service and uvicorn to stderr inside the block."""
    handler = logging.StreamHandler()
    handler.setFormatter(_LineFormatter())
    handler.addFilter(RepeatFilter())
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    for logger in loggers:
        logger.addHandler(handler)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeHandler(handler)
