"""The event loop waits for the store, but not for ever, and asks it once at a time."""

import asyncio
import threading
from types import SimpleNamespace

import pytest
from tests.sentences import refuses

from calibrant.errors import StoreError, StoreUnavailable
from calibrant.serving import store_calls as waiting
from calibrant.serving.store_calls import Readiness, within


def test_what_a_call_returns_or_raises_comes_through():
    assert asyncio.run(within(30, lambda: "found")) == "found"
    with pytest.raises(ZeroDivisionError):
        asyncio.run(within(30, lambda: 1 / 0))


def test_a_call_that_takes_too_long_is_unavailable_and_goes_on():
    may_end, ended = threading.Event(), threading.Event()

    def call():
        may_end.wait(30)
        ended.set()

    async def main():
        with refuses(StoreUnavailable, "not respond within 0.05", "0.05 s"):
            await within(0.05, call)
        may_end.set()

    asyncio.run(main())
    assert ended.wait(30)


def test_a_call_that_finds_no_free_thread_is_unavailable_and_never_made():
    may_end, made = threading.Event(), []

    async def main():
        loop = asyncio.get_running_loop()
        holding = [loop.run_in_executor(None, may_end.wait, 30) for _ in range(100)]
        with pytest.raises(StoreUnavailable):
            await within(0.05, lambda: made.append(1))
        may_end.set()
        await asyncio.gather(*holding)

    asyncio.run(main())
    assert made == []


@pytest.fixture
def slow(monkeypatch):
    """Return a store whose check waits, and counts how often it is asked."""
    monkeypatch.setattr(waiting, "_READY_TIMEOUT", 0.05)
    made = SimpleNamespace(asked=0, may_end=threading.Event(), error=None)

    def check():
        made.asked += 1
        made.may_end.wait(30)
        if made.error is not None:
            raise made.error

    made.check = check
    return made


def test_many_who_ask_a_store_that_hangs_hold_one_thread(slow):
    async def main():
        readiness = Readiness(slow)
        asked = [readiness.check() for _ in range(50)]
        found = await asyncio.gather(*asked, return_exceptions=True)
        assert {type(each) for each in found} == {StoreUnavailable}
        assert slow.asked == 1
        slow.may_end.set()
        for _ in range(2):
            await readiness.check()
        assert slow.asked <= 3

    asyncio.run(main())


def test_what_is_wrong_with_a_store_is_told_to_all_who_ask(slow, caplog):
    slow.error = StoreError("the store is full.")

    async def main():
        readiness = Readiness(slow)
        with pytest.raises(StoreUnavailable):
            await readiness.check()  # nobody waits any more for what it will say
        slow.may_end.set()
        found = await asyncio.gather(*(readiness.check() for _ in range(5)), return_exceptions=True)
        assert {str(each) for each in found} == {"the store is full."}

    asyncio.run(main())
    assert "never retrieved" not in caplog.text
