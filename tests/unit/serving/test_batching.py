"""Batches: requests of any size are joined and split in order, and none is lost or left waiting."""

import asyncio
import threading
import time
from types import SimpleNamespace

import pytest

from calibrant.serving.batching import Batcher, Expired, QueueFull

OPTIONS = {"max_queue": 1000, "max_batch": 8, "max_wait": 0.0, "timeout": 60.0}


def echo(batch):
    return [f"scored {asked}" for asked in batch]


def run(use, score=echo, write=list, **options):
    """Start a batcher, have `use` talk to it, stop it; return what `use` returns."""

    async def main():
        batcher = Batcher(score, write, **{**OPTIONS, **options})
        batcher.start()
        try:
            return await use(batcher)
        finally:
            assert await batcher.stop(30)

    return asyncio.run(main())


async def gathered(batcher, requests):
    tasks = [asyncio.create_task(batcher.submit(*each)) for each in requests]
    return await asyncio.gather(*tasks, return_exceptions=True)


async def take_turns():
    """Let the event loop run what is ready, and what that makes ready; no time passes."""
    for _ in range(10):
        await asyncio.sleep(0)


class Gate:
    """A score or write function that waits until it may go on, and remembers what it got."""

    def __init__(self, result=echo):
        self.result, self.seen = result, []
        self.entered, self.may_go = threading.Semaphore(0), threading.Semaphore(0)

    def __call__(self, batch):
        self.seen.append(list(batch))
        self.entered.release()
        assert self.may_go.acquire(timeout=30)
        return self.result(batch)


def test_every_request_gets_its_own_answer_whatever_the_sizes():
    sizes = [1, 3, 8, 2, 20, 1, 1, 1, 7, 5, 8, 9, 1] * 5

    def score(batch):
        return [[(name, i) for i in range(rows)] for name, rows in batch]

    async def use(batcher):
        return await gathered(batcher, [((n, rows), rows) for n, rows in enumerate(sizes)])

    found = run(use, score)
    assert found == [[(n, i) for i in range(rows)] for n, rows in enumerate(sizes)]


def test_batches_are_filled_in_order_and_never_beyond_their_limit():
    gate, told = Gate(), []
    sizes = [1, 3, 4, 1, 20, 2, 6, 1]

    async def use(batcher):
        first = asyncio.create_task(batcher.submit("first", 1))
        await asyncio.to_thread(gate.entered.acquire)  # the first is under way, the rest must wait
        rest = [asyncio.create_task(batcher.submit(n, rows)) for n, rows in enumerate(sizes)]
        await asyncio.sleep(0)
        assert batcher.depth == 1 + sum(sizes)
        for _ in range(10):
            gate.may_go.release()
        await asyncio.gather(first, *rest)
        return batcher.depth

    assert run(use, gate, on_batch=told.append) == 0
    # 20 rows are more than a batch may have, and go alone.
    assert gate.seen == [["first"], [0, 1, 2], [3], [4], [5, 6], [7]]
    assert told == [1, 8, 1, 20, 8, 1]


def test_the_first_row_waits_for_others_to_come():
    seen = []

    def score(batch):
        seen.append(len(batch))
        return echo(batch)

    async def use(batcher):
        one = asyncio.create_task(batcher.submit("a", 1))
        await take_turns()
        assert batcher.depth == 1
        return await asyncio.gather(one, batcher.submit("b", 1))

    # It would wait a minute, but two rows are all that a batch may have.
    assert run(use, score, max_wait=60.0, max_batch=2) == ["scored a", "scored b"]
    assert seen == [2]


def test_one_batch_is_scored_while_another_is_written():
    writing, scored, ready = Gate(list), [], threading.Semaphore(0)

    def score(batch):
        scored.append(list(batch))
        ready.release()
        return echo(batch)

    async def use(batcher):
        first = asyncio.create_task(batcher.submit("a", 1))
        await asyncio.to_thread(writing.entered.acquire)
        second = asyncio.create_task(batcher.submit("b", 1))
        for _ in range(2):
            assert await asyncio.to_thread(ready.acquire, timeout=30)
        assert scored == [["a"], ["b"]]
        assert not first.done()
        writing.may_go.release()
        writing.may_go.release()
        return await asyncio.gather(first, second)

    assert run(use, score, writing) == ["scored a", "scored b"]


def test_beyond_the_queue_a_request_is_turned_away_at_once():
    gate = Gate()

    async def use(batcher):
        first = asyncio.create_task(batcher.submit("a", 6))
        await asyncio.to_thread(gate.entered.acquire)
        second = asyncio.create_task(batcher.submit("b", 4))
        await asyncio.sleep(0)
        with pytest.raises(QueueFull):
            await batcher.submit("c", 1)
        assert batcher.depth == 10
        gate.may_go.release()
        gate.may_go.release()
        await asyncio.gather(first, second)
        gate.may_go.release()
        return await batcher.submit("d", 10)  # there is room again

    assert run(use, gate, max_queue=10) == "scored d"


def test_what_waited_too_long_is_given_up_and_not_scored(monkeypatch):
    gate, clock = Gate(), SimpleNamespace(now=0.0)
    clock.perf_counter = lambda: clock.now
    clock.monotonic = time.monotonic
    monkeypatch.setattr("calibrant.serving.batching.time", clock)

    async def use(batcher):
        first = asyncio.create_task(batcher.submit("a", 1))
        await asyncio.to_thread(gate.entered.acquire)
        late = asyncio.create_task(batcher.submit("late", 2))
        await asyncio.sleep(0)
        clock.now = 0.15
        soon = asyncio.create_task(batcher.submit("soon", 1))
        await asyncio.sleep(0)
        clock.now = 0.21
        gate.may_go.release()
        with pytest.raises(Expired):
            await late
        gate.may_go.release()
        return await asyncio.gather(first, soon)

    assert run(use, gate, timeout=0.2) == ["scored a", "scored soon"]
    assert gate.seen == [["a"], ["soon"]]


def test_one_request_that_cannot_be_scored_takes_no_other_with_it():
    gate = Gate(echo)

    def score(batch):
        if batch == ["first"]:
            return gate(batch)
        if "bad" in batch:
            raise ZeroDivisionError("cannot score that")
        return echo(batch)

    async def use(batcher):
        first = asyncio.create_task(batcher.submit("first", 1))
        await asyncio.to_thread(gate.entered.acquire)
        rest = asyncio.create_task(gathered(batcher, [("a", 1), ("bad", 1), ("b", 2)]))
        await take_turns()
        assert batcher.depth == 5
        gate.may_go.release()
        return [await first, *await rest]

    first, a, bad, b = run(use, score)
    assert (first, a, b) == ("scored first", "scored a", "scored b")
    assert isinstance(bad, ZeroDivisionError)


def test_what_could_not_be_written_is_told_to_all_and_the_next_is_written():
    failures = [OSError("disk full")]

    def write(scored):
        if failures:
            raise failures.pop()
        return scored

    async def use(batcher):
        with pytest.raises(OSError, match="disk full"):
            await batcher.submit("a", 3)
        assert batcher.depth == 0
        return await batcher.submit("a", 3)

    assert run(use, write=write) == "scored a"


def test_an_answer_may_be_an_exception_of_one_request():
    def write(scored):
        return [KeyError(each) if each == "scored b" else each for each in scored]

    async def use(batcher):
        return await gathered(batcher, [("a", 1), ("b", 1), ("c", 1)])

    a, b, c = run(use, write=write)
    assert (a, c) == ("scored a", "scored c")
    assert isinstance(b, KeyError)


def test_a_client_that_went_away_harms_nobody():
    gate = Gate()

    async def use(batcher):
        gone = asyncio.create_task(batcher.submit("gone", 1))
        await asyncio.to_thread(gate.entered.acquire)
        gone.cancel()
        stays = asyncio.create_task(batcher.submit("stays", 1))
        for _ in range(2):
            gate.may_go.release()
        assert await stays == "scored stays"
        return batcher.depth

    assert run(use, gate) == 0
    assert gate.seen == [["gone"], ["stays"]]


def test_one_that_cannot_be_scored_leaves_the_others_in_one_commit():
    gate, written = Gate(), []

    def score(batch):
        if "bad" in batch:
            raise ValueError("cannot be scored")
        return gate(batch)

    def write(scored):
        written.append(list(scored))
        return list(scored)

    async def use(batcher):
        first = asyncio.create_task(batcher.submit("first", 1))
        await asyncio.to_thread(gate.entered.acquire)
        rest = [asyncio.create_task(batcher.submit(name, 1)) for name in ("a", "bad", "b", "c")]
        await asyncio.sleep(0)
        for _ in range(5):
            gate.may_go.release()
        return await asyncio.gather(first, *rest, return_exceptions=True)

    found = run(use, score, write)
    assert [type(each) for each in found] == [str, str, ValueError, str, str]
    assert written == [["scored first"], ["scored a", "scored b", "scored c"]]


def test_stopping_answers_what_waits_and_takes_no_more():
    gate = Gate()

    async def main():
        batcher = Batcher(gate, list, **OPTIONS)
        batcher.start()
        tasks = [asyncio.create_task(batcher.submit(n, 3)) for n in range(5)]
        await asyncio.to_thread(gate.entered.acquire)
        stopping = asyncio.create_task(batcher.stop(30))
        await take_turns()
        assert batcher._stopping
        with pytest.raises(QueueFull):
            await batcher.submit("late", 1)
        for _ in range(5):
            gate.may_go.release()
        return await asyncio.gather(*tasks), await stopping

    answers, ended = asyncio.run(main())
    assert answers == [f"scored {n}" for n in range(5)]
    assert ended


def test_stopping_says_where_it_did_not_end_in_time():
    gate = Gate()

    async def main():
        batcher = Batcher(gate, list, **OPTIONS)
        batcher.start()
        task = asyncio.create_task(batcher.submit("a", 1))
        await asyncio.to_thread(gate.entered.acquire)
        in_time = await batcher.stop(0.01)
        gate.may_go.release()
        return in_time, await task, await batcher.stop(30)

    assert asyncio.run(main()) == (False, "scored a", True)


def test_what_waits_for_a_database_that_hangs_is_given_up_and_the_next_is_written(monkeypatch):
    monkeypatch.setattr("calibrant.serving.batching._SWEEP_EVERY", 0.01)
    may_write, written = threading.Event(), []

    def write(scored):
        assert may_write.wait(30)
        written.extend(scored)
        return scored

    async def use(batcher):
        found = await asyncio.gather(
            *(batcher.submit(name, 1) for name in range(40)), return_exceptions=True
        )
        assert {type(each) for each in found} == {Expired}
        may_write.set()
        while batcher.depth:
            await asyncio.sleep(0.01)
        batcher._timeout = 60.0  # what comes next is not in a hurry
        return await batcher.submit("next", 1)

    assert run(use, write=write, timeout=0.05) == "scored next"
    # Those that were on their way are on record all the same, those that waited are not.
    assert 1 <= len(written) - 1 < 40
