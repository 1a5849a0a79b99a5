"""Access control: API keys, roles and rate limits."""

from __future__ import annotations

import asyncio
import hashlib
import math
import time
from collections import OrderedDict
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus

from calibrant.serving.http.problems import Problem
from calibrant.serving.store_calls import retrieve_exception, wait_shared, within
from calibrant.store import Key
from calibrant.store.keys import TOKEN, KeyRing

_VALID_FOR = 1.0  # Seconds that a look-up is valid; a revoked key may be accepted that long
_REFRESH_AFTER = 0.5  # Seconds after which a key in use is looked up again in the background
_TIMEOUT = 10.0  # Timeout of a look-up in seconds
_MAX_CACHED = 1_024  # Maximum number of cached keys, and of cached invalid tokens
_MAX_UNKNOWN = 256
"""Maximum number of unknown tokens waiting for a look-up; further requests get 503."""


@dataclass(frozen=True, slots=True)
class _LookUp:
    """Result of a look-up, and when it started."""

    key: Key | None
    at: float


class KeyCache:
    """Cached look-up of API keys, for use by one event loop at a time.

    Requests with the same token share one look-up. A key in use is refreshed before it expires, so
    that no request waits for it. Unknown tokens have a thread pool of their own, so that any number
    of invalid ones does not delay valid keys.
    """

    def __init__(self, keys: KeyRing) -> None:
        self._keys = keys
        self._good: OrderedDict[bytes, _LookUp] = OrderedDict()
        self._wrong: OrderedDict[bytes, _LookUp] = OrderedDict()
        self._pending: dict[bytes, asyncio.Task[Key | None]] = {}
        self._unknown_count = 0
        self._known_pool = ThreadPoolExecutor(2, "calibrant-keys")
        self._unknown_pool = ThreadPoolExecutor(2, "calibrant-unknown-keys")

    async def find(self, token: str) -> Key | None:
        """Return the key of a token, or None if it is unknown, wrong or revoked."""
        # The format is public: other tokens cannot be keys and need no look-up.
        if not TOKEN.fullmatch(token):
            return None
        digest = hashlib.sha256(token.encode()).digest()
        look_up = self._good.get(digest) or self._wrong.get(digest)
        age = float("inf") if look_up is None else time.monotonic() - look_up.at
        if look_up is not None and age < _VALID_FOR:
            if look_up.key is not None and age >= _REFRESH_AFTER:
                self._start_look_up(digest, token)
            return look_up.key
        return await wait_shared(self._start_look_up(digest, token), _TIMEOUT)

    def close(self) -> None:
        """Stop looking up keys."""
        for pool in (self._known_pool, self._unknown_pool):
            pool.shutdown(wait=False, cancel_futures=True)

    def _start_look_up(self, digest: bytes, token: str) -> asyncio.Task[Key | None]:
        """Return the pending look-up of a token, or start one."""
        task = self._pending.get(digest)
        if task is not None:
            return task
        known = digest in self._good
        if not known and self._unknown_count >= _MAX_UNKNOWN:
            raise Problem.busy("too many unknown keys are waiting for a look-up: try again.")
        task = asyncio.create_task(
            self._look_up(digest, token, self._known_pool if known else self._unknown_pool)
        )
        self._pending[digest] = task
        self._unknown_count += not known

        def finish(task: asyncio.Task[Key | None]) -> None:
            del self._pending[digest]
            self._unknown_count -= not known
            retrieve_exception(task)

        task.add_done_callback(finish)
        return task

    async def _look_up(self, digest: bytes, token: str, pool: Executor) -> Key | None:
        look_up = await asyncio.get_running_loop().run_in_executor(pool, self._check_token, token)
        self._good.pop(digest, None)
        self._wrong.pop(digest, None)
        cache = self._wrong if look_up.key is None else self._good
        cache[digest] = look_up
        while len(cache) > _MAX_CACHED:
            cache.popitem(last=False)
        return look_up.key

    def _check_token(self, token: str) -> _LookUp:
        begin = time.monotonic()  # a later revocation may be missed
        return _LookUp(self._keys.check(token), begin)


_FLUSH_TIMEOUT = 3.0
"""Timeout in seconds for writing when keys were last used; a stopping service waits for it."""


_BURST_SHARE = 6.0  # Burst size is the rate per minute divided by this: ten seconds of requests
_LONGEST_WAIT = 86_400.0  # Upper bound of `Retry-After`, in seconds


class TokenBucket:
    """Rate limiter: `rate` requests per minute with bursts of ten seconds' worth."""

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
