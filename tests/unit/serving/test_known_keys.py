"""Whose token it is: one look-up for many requests, renewed in time, and strangers wait apart."""

import asyncio
import threading
from types import SimpleNamespace

import pytest

from calibrant.errors import StoreUnavailable
from calibrant.serving import access as known_keys
from calibrant.serving.access import KeyCache
from calibrant.serving.http.problems import Problem
from calibrant.store import Store


class Ring:
    """Keys whose look-ups are counted, and wait where they are told to."""

    def __init__(self, *good):
        self.good = {token: f"key {i}" for i, token in enumerate(good)}
        self.asked = []
        self.held = {}  # tokens that wait for their event

    def check(self, token):
        self.asked.append(token)
        if token in self.held:
            assert self.held[token].wait(60)
        found = self.good.get(token)
        if isinstance(found, Exception):
            raise found
        return found


def token(i):
    return f"cal_abcdefghijkl_{i:064x}"


GOOD = token(1)


@pytest.fixture
def clock(monkeypatch):
    made = SimpleNamespace(now=1000.0)
    made.monotonic = lambda: made.now
    monkeypatch.setattr(known_keys, "time", made)
    return made


@pytest.fixture
def known():
    made = KeyCache(Ring(GOOD))
    yield made
    for event in made._keys.held.values():
        event.set()
    made.close()


async def settled(known):
    """Wait for look-ups that nobody waits for."""
    while known._pending:
        await asyncio.wait(set(known._pending.values()))
        await asyncio.sleep(0)


def test_requests_at_once_share_a_look_up(known):
    async def many():
        return await asyncio.gather(*(known.find(GOOD) for _ in range(64)))

    assert asyncio.run(many()) == ["key 0"] * 64
    assert known._keys.asked == [GOOD]


def test_who_leaves_takes_the_look_up_of_others_with_him_not(known):
    known._keys.held[GOOD] = threading.Event()

    async def two():
        first = asyncio.create_task(known.find(GOOD))
        second = asyncio.create_task(known.find(GOOD))
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.sleep(0)
        known._keys.held[GOOD].set()
        return await second

    assert asyncio.run(two()) == "key 0"
    assert known._keys.asked == [GOOD]


@pytest.mark.parametrize(
    "given",
    ["", "x", GOOD[:-1], GOOD + "0", GOOD.upper(), f"{GOOD}\n", "cal_\ud800", "x" * 100_000],
)
def test_what_cannot_be_a_token_is_not_looked_up(known, given):
    assert asyncio.run(known.find(given)) is None
    assert known._keys.asked == []


def test_what_the_store_makes_is_a_token(tmp_path):
    with Store.open(tmp_path / "calibrant.db") as store:
        key, made = store.keys.add("shop", "predict")
        known = KeyCache(store.keys)
        assert asyncio.run(known.find(made)) == key
        known.close()


def test_an_answer_is_believed_for_a_moment_and_a_key_renewed_while_requests_go_on(known, clock):
    ring = known._keys

    async def use():
        assert await known.find(GOOD) == "key 0"
        clock.now += 0.4
        assert await known.find(GOOD) == "key 0"
        await settled(known)
        assert ring.asked == [GOOD]
        ring.held[GOOD] = threading.Event()  # from now on a look-up takes its time
        clock.now += 0.2
        assert await known.find(GOOD) == "key 0"  # and nobody waits for it
        assert await known.find(GOOD) == "key 0"
        ring.held[GOOD].set()
        await settled(known)
        assert ring.asked == [GOOD] * 2
        clock.now += 0.45
        assert await known.find(GOOD) == "key 0"
        assert ring.asked == [GOOD] * 2

    asyncio.run(use())


def test_a_revoked_key_ends_with_its_second_or_with_the_look_up_before(known, clock):
    async def use():
        assert await known.find(GOOD) == "key 0"
        known._keys.good.clear()
        clock.now += 0.6
        assert await known.find(GOOD) == "key 0"
        await settled(known)
        assert await known.find(GOOD) is None
        known._keys.good[token(2)] = "key 2"
        assert await known.find(token(2)) == "key 2"
        known._keys.good.clear()
        clock.now += 1.0
        assert await known.find(token(2)) is None

    asyncio.run(use())


def test_a_look_up_that_began_before_is_believed_from_its_beginning(known, clock):
    """What was revoked while the database was slow must not be let in a second longer."""
    ring = known._keys
    ring.held[GOOD] = threading.Event()

    async def use():
        waiting = asyncio.create_task(known.find(GOOD))
        while not ring.asked:
            await asyncio.sleep(0.001)
        clock.now += 0.9
        ring.held[GOOD].set()
        assert await waiting == "key 0"
        clock.now += 0.2
        await known.find(GOOD)

    asyncio.run(use())
    assert ring.asked == [GOOD] * 2


def test_a_token_that_is_none_is_looked_up_once_a_second(known, clock):
    for _ in range(3):
        assert asyncio.run(known.find(token(9))) is None
    clock.now += 0.9
    asyncio.run(known.find(token(9)))
    assert known._keys.asked == [token(9)]
    clock.now += 0.1
    asyncio.run(known.find(token(9)))
    assert known._keys.asked == [token(9)] * 2


def test_strangers_hold_up_no_key_that_is_known(known, clock, monkeypatch):
    monkeypatch.setattr(known_keys, "_MAX_UNKNOWN", 10)
    strangers = [token(i) for i in range(100, 110)]
    known._keys.held = {each: threading.Event() for each in strangers}

    async def use():
        await known.find(GOOD)
        clock.now += 5.0
        flood = [asyncio.create_task(known.find(each)) for each in strangers]
        await asyncio.sleep(0.01)
        assert await asyncio.wait_for(known.find(GOOD), 30) == "key 0"
        with pytest.raises(Problem) as caught:  # one more has to come again
            await known.find(token(200))
        assert caught.value.status == 503
        assert caught.value.headers == {"Retry-After": "1"}
        for event in known._keys.held.values():
            event.set()
        assert await asyncio.gather(*flood) == [None] * 10
        assert await known.find(token(200)) is None

    asyncio.run(use())


def test_what_is_remembered_has_an_end_and_wrong_tokens_push_out_no_key(known, monkeypatch):
    monkeypatch.setattr(known_keys, "_MAX_CACHED", 4)

    async def use():
        await known.find(GOOD)
        for i in range(100, 110):
            await known.find(token(i))
        await known.find(GOOD)

    asyncio.run(use())
    assert len(known._wrong) == 4
    assert known._keys.asked.count(GOOD) == 1


def test_a_database_that_fails_is_told_and_asked_again(known):
    known._keys.good[GOOD] = StoreUnavailable("away.")
    with pytest.raises(StoreUnavailable, match="away"):
        asyncio.run(known.find(GOOD))
    known._keys.good[GOOD] = "key"
    assert asyncio.run(known.find(GOOD)) == "key"


def test_a_database_that_hangs_is_told(known, monkeypatch):
    monkeypatch.setattr(known_keys, "_TIMEOUT", 0.01)
    known._keys.held[GOOD] = threading.Event()
    with pytest.raises(StoreUnavailable, match="did not respond within"):
        asyncio.run(known.find(GOOD))
