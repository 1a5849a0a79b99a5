"""PostgreSQL connection with a response timeout.

The server cancels slow statements, but not if it hangs itself, and the network does not notice.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import Any

import psycopg

__all__ = ["TimeoutConnection"]

_LIMIT = 12.0
"""Response timeout in seconds, slightly above the statement timeout of the server."""


class TimeoutConnection(psycopg.Connection[Any]):
    """Connection that is closed with an error after `limit` seconds without a response."""

    limit: float | None = _LIMIT

    def wait(self, gen: Any, *args: Any, **options: Any) -> Any:
        """Wait for an exchange with the server, up to the limit."""
        if self.limit is not None:
            gen = self._with_timeout(gen, self.limit)
        return super().wait(gen, *args, **options)

    def _with_timeout(self, gen: Any, limit: float) -> Generator[Any, Any, Any]:
        """Run an exchange with a deadline."""
        until, ready = time.monotonic() + limit, None
        while True:
            try:
                waits_for = gen.send(ready)
            except StopIteration as end:
                return end.value
            ready = yield waits_for
            if not ready and time.monotonic() > until:
                self.pgconn.finish()
                raise psycopg.OperationalError(f"the server did not respond within {limit:g} s")
