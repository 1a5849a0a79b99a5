"""Who may do what: keys, roles and rates."""

from __future__ import annotations

import math
import time
from datetime import UTC, datetime
from http import HTTPStatus

from calibrant.serving.http.problems import Problem
from calibrant.serving.known_keys import KnownKeys
from calibrant.serving.store_calls import within
from calibrant.store import Key
from calibrant.store.keys import KeyRing

__all__ = ["Access", "Bucket"]

_PATIENCE = 3.0
"""Seconds for the database to note when keys were used: a service that stops waits for it."""

_BURST = 6.0
"""A key may use up this part of a minute's requests at once: ten seconds' worth."""

_A_DAY = 86_400.0
"""Seconds that a client is told to wait at most, however low its rate."""


class Bucket:
    """Lets requests pass at a steady rate, with a small store for bursts.

    Parameters
    ----------
    rate : requests per minute
    clock : seconds, when it was made

    Examples
    --------
    >>> bucket = Bucket(60, clock=0.0)  # ten at once, then one a second
    >>> [bucket.wait(0.0) for _ in range(11)][-2:], bucket.wait(1.0)
    ([0.0, 1.0], 0.0)
    """

    def __init__(self, rate: float, clock: float) -> None:
        self._per_second = max(rate / 60, 1e-12)  # never none at all
        self._most = max(1.0, rate / _BURST)
        self._left, self._clock = self._most, clock

    def wait(self, clock: float) -> float:
        """Take one request out; return 0, or the seconds to wait where there is none."""
        gained = (clock - self._clock) * self._per_second
        self._left, self._clock = min(self._most, self._left + gained), clock
        if self._left >= 1:
            self._left -= 1
            return 0.0
        return (1 - self._left) / self._per_second


class Access:
    """Checks the key of a request, its role and its rate.

    Parameters
    ----------
    keys : the keys on record
    needed : whether a request without a key is refused
    workers : processes that share a key's rate
    """

    def __init__(self, keys: KeyRing, *, needed: bool, workers: int = 1) -> None:
        self._keys, self._needed, self._workers = keys, needed, workers
        self._known = KnownKeys(keys)
        self._buckets: dict[str, tuple[float, Bucket]] = {}
        self._used: dict[str, datetime] = {}

    async def admit(self, authorization: str | None, role: str | None) -> Key | None:
        """Return the key of a request, or None where none is needed; refuse it as a `Problem`."""
        if authorization is None:
            if self._needed:
                raise _unknown("this service needs a key: send it as Authorization: Bearer cal_….")
            return None
        scheme, _, token = authorization.partition(" ")
        key = None
        if scheme.lower() == "bearer":
            key = await self._known.find(token.strip())
        if key is None:
            raise _unknown("the key is not known, or was revoked: ask for a new one.")
        if role is not None and key.role not in (role, "admin"):
            raise Problem(
                HTTPStatus.FORBIDDEN,
                f"the key has the role {key.role!r}, but this needs {role!r}: use another key.",
            )
        self.take(key)
        return key

    async def flush(self) -> None:
        """Put on record when keys were last used; what cannot be written now is kept for later."""
        used, self._used = self._used, {}
        if not used:
            return
        try:
            await within(_PATIENCE, lambda: self._keys.used(used))
        except BaseException:  # also a task that is told to end
            self._used = used | self._used
            raise

    def close(self) -> None:
        """Look up no more keys."""
        self._known.close()

    def take(self, key: Key) -> None:
        """Count a request of a key; refuse it as a `Problem` where its rate is used up."""
        self._used[key.id] = datetime.now(UTC)
        if key.rate is None:
            return
        clock = time.monotonic()
        rate, bucket = self._buckets.get(key.id, (None, None))
        if bucket is None or rate != key.rate:
            bucket = Bucket(key.rate / self._workers, clock)
            self._buckets[key.id] = (key.rate, bucket)
        wait = bucket.wait(clock)
        if wait > 0:
            raise Problem(
                HTTPStatus.TOO_MANY_REQUESTS,
                f"the key allows {key.rate:g} requests a minute: slow down.",
                headers={"Retry-After": str(math.ceil(min(wait, _A_DAY)))},
            )


def _unknown(detail: str) -> Problem:
    return Problem(HTTPStatus.UNAUTHORIZED, detail, headers={"WWW-Authenticate": "Bearer"})
