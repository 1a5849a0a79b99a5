"""Whose token it is: looked up once for many requests, and believed for a second."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import OrderedDict
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass

from calibrant.serving.http.problems import Problem
from calibrant.serving.store_calls import noted, shared
from calibrant.store import Key
from calibrant.store.keys import TOKEN, KeyRing

__all__ = ["KnownKeys"]

_FRESH = 1.0
"""Seconds that a look-up is believed: so long a revoked key may still be let in."""

_RENEWED = 0.5
"""Seconds after which a known key is looked up again, while requests still go by the old answer."""

_PATIENCE = 10.0
"""Seconds for the database to say whose token it is."""

_REMEMBERED = 1_024
"""Keys that are remembered, and as many tokens that are none."""

_STRANGERS = 256
"""Tokens nobody knows yet that may wait to be looked up: more are told to come again."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """What a look-up found, and when it began."""

    key: Key | None
    at: float


class KnownKeys:
    """Finds the keys of tokens; belongs to one event loop at a time.

    Requests with the same token share one look-up. A key in use is looked up again before its time
    is over, so that no request waits for it. Tokens that were never good wait in a line of their
    own: made-up ones, however many, hold up no key that is known.

    Parameters
    ----------
    keys : the keys on record
    """

    def __init__(self, keys: KeyRing) -> None:
        self._keys = keys
        self._good: OrderedDict[bytes, _Seen] = OrderedDict()
        self._wrong: OrderedDict[bytes, _Seen] = OrderedDict()
        self._asking: dict[bytes, asyncio.Task[Key | None]] = {}
        self._strangers = 0
        self._of_known = ThreadPoolExecutor(2, "calibrant-keys")
        self._of_strangers = ThreadPoolExecutor(2, "calibrant-strangers")

    async def find(self, token: str) -> Key | None:
        """Return the key of a token; None where it is unknown, wrong or revoked."""
        # The form is public: nothing else can be a key, and needs no look-up.
        if not TOKEN.fullmatch(token):
            return None
        digest = hashlib.sha256(token.encode()).digest()
        seen = self._good.get(digest) or self._wrong.get(digest)
        age = float("inf") if seen is None else time.monotonic() - seen.at
        if seen is not None and age < _FRESH:
            if seen.key is not None and age >= _RENEWED:
                self._ask(digest, token)
            return seen.key
        return await shared(self._ask(digest, token), _PATIENCE)

    def close(self) -> None:
        """Look up nothing more."""
        for pool in (self._of_known, self._of_strangers):
            pool.shutdown(wait=False, cancel_futures=True)

    def _ask(self, digest: bytes, token: str) -> asyncio.Task[Key | None]:
        """Return the look-up of a token: the one under way, or a new one."""
        task = self._asking.get(digest)
        if task is not None:
            return task
        known = digest in self._good
        if not known and self._strangers >= _STRANGERS:
            raise Problem.busy("too many keys that are not known wait to be looked up: try again.")
        task = asyncio.create_task(
            self._look_up(digest, token, self._of_known if known else self._of_strangers)
        )
        self._asking[digest] = task
        self._strangers += not known

        def ended(task: asyncio.Task[Key | None]) -> None:
            del self._asking[digest]
            self._strangers -= not known
            noted(task)

        task.add_done_callback(ended)
        return task

    async def _look_up(self, digest: bytes, token: str, pool: Executor) -> Key | None:
        seen = await asyncio.get_running_loop().run_in_executor(pool, self._checked, token)
        self._good.pop(digest, None)
        self._wrong.pop(digest, None)
        kept = self._wrong if seen.key is None else self._good
        kept[digest] = seen
        while len(kept) > _REMEMBERED:
            kept.popitem(last=False)
        return seen.key

    def _checked(self, token: str) -> _Seen:
        begin = time.monotonic()  # what is revoked after this moment may not be seen
        return _Seen(self._keys.check(token), begin)
