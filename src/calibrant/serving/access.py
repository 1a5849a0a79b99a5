"""Access control: API keys, roles and rate limits."""

from __future__ import annotations

import math
import time
from datetime import UTC, datetime
from http import HTTPStatus

from calibrant.serving.http.problems import Problem
from calibrant.serving.known_keys import KeyCache
from calibrant.serving.store_calls import within
from calibrant.store import Key
from calibrant.store.keys import KeyRing

__all__ = ["Access", "TokenBucket"]

_FLUSH_TIMEOUT = 3.0
"""Timeout in seconds for writing when keys were last used; a stopping service waits for it."""

_BURST_SHARE = 6.0
"""Burst size is the rate per minute divided by this: ten seconds of requests."""

_LONGEST_WAIT = 86_400.0
"""Upper bound of `Retry-After`, in seconds."""


class TokenBucket:
    """Rate limiter: `rate` requests per minute with bursts of ten seconds' worth.

    Examples
    --------
    >>> bucket = TokenBucket(60, clock=0.0)  # a burst of ten, then one per second
    >>> [bucket.wait(0.0) for _ in range(11)][-2:], bucket.wait(1.0)
    ([0.0, 1.0], 0.0)
    """

    def __init__(self, rate: float, clock: float) -> None:
        self._per_second = max(rate / 60, 1e-12)  # never zero
        self._capacity = max(1.0, rate / _BURST_SHARE)
        self._tokens, self._clock = self._capacity, clock

    def wait(self, clock: float) -> float:
        """Take a token and return 0, or return the seconds until the next one."""
        gained = (clock - self._clock) * self._per_second
        self._tokens, self._clock = min(self._capacity, self._tokens + gained), clock
        if self._tokens >= 1:
            self._tokens -= 1
            return 0.0
        return (1 - self._tokens) / self._per_second


class Access:
    """Checks the key, role and rate of a request; `workers` processes share a key's rate."""

    def __init__(self, keys: KeyRing, *, needed: bool, workers: int = 1) -> None:
        self._keys, self._needed, self._workers = keys, needed, workers
        self._cache = KeyCache(keys)
        self._buckets: dict[str, tuple[float, TokenBucket]] = {}
        self._used: dict[str, datetime] = {}

    async def admit(self, authorization: str | None, role: str | None) -> Key | None:
        """Return the key of a request, or None if it needs none; raise `Problem` if refused."""
        if authorization is None:
            if self._needed:
                raise _unauthorized(
                    "this service requires a key: send it as Authorization: Bearer cal_…."
                )
            return None
        scheme, _, token = authorization.partition(" ")
        key = None
        if scheme.lower() == "bearer":
            key = await self._cache.find(token.strip())
        if key is None:
            raise _unauthorized("the key is unknown or revoked: ask for a new one.")
        if role is not None and key.role not in (role, "admin"):
            raise Problem(
                HTTPStatus.FORBIDDEN,
                f"the key has role {key.role!r}, but {role!r} is required: use another key.",
            )
        self.take(key)
        return key

    async def flush(self) -> None:
        """Write when keys were last used; keep the times for the next flush if that fails."""
        used, self._used = self._used, {}
        if not used:
            return
        try:
            await within(_FLUSH_TIMEOUT, lambda: self._keys.used(used))
        except BaseException:  # including cancellation
            self._used = used | self._used
            raise

    def close(self) -> None:
        """Stop looking up keys."""
        self._cache.close()

    def take(self, key: Key) -> None:
        """Count a request of a key; raise `Problem` when its rate limit is exceeded."""
        self._used[key.id] = datetime.now(UTC)
        if key.rate is None:
            return
        clock = time.monotonic()
        rate, bucket = self._buckets.get(key.id, (None, None))
        if bucket is None or rate != key.rate:
            bucket = TokenBucket(key.rate / self._workers, clock)
            self._buckets[key.id] = (key.rate, bucket)
        wait = bucket.wait(clock)
        if wait > 0:
            raise Problem(
                HTTPStatus.TOO_MANY_REQUESTS,
                f"the key allows {key.rate:g} requests per minute: slow down.",
                headers={"Retry-After": str(math.ceil(min(wait, _LONGEST_WAIT)))},
            )


def _unauthorized(detail: str) -> Problem:
    return Problem(HTTPStatus.UNAUTHORIZED, detail, headers={"WWW-Authenticate": "Bearer"})
