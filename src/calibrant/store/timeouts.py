"""A connection to PostgreSQL that gives up a server which does not answer.

The server ends a statement that takes too long, but one that hangs (its disk is dead, its machine
sleeps) does not; nor does the network, which still takes what is sent.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import Any

import psycopg

__all__ = ["PatientConnection"]

_LIMIT = 12.0
"""Seconds for an answer: a little more than the server's own limit for a statement."""


class PatientConnection(psycopg.Connection[Any]):
    """Waits for an answer, but not for ever: then it is closed, and the error says so.

    Attributes
    ----------
    limit : seconds for an answer, None for any time
    """

    limit: float | None = _LIMIT

    def wait(self, gen: Any, *args: Any, **options: Any) -> Any:
        """Wait until an exchange with the server is over."""
        if self.limit is not None:
            gen = self._watched(gen, self.limit)
        return super().wait(gen, *args, **options)

    def _watched(self, gen: Any, limit: float) -> Generator[Any, Any, Any]:
        """Pass on what an exchange waits for, until it is over or the time is."""
        until, ready = time.monotonic() + limit, None
        while True:
            try:
                waits_for = gen.send(ready)
            except StopIteration as end:
                return end.value
            ready = yield waits_for
            if not ready and time.monotonic() > until:
                self.pgconn.finish()
                raise psycopg.OperationalError(f"the server did not answer within {limit:g} s")
