"""Worker pool for slow pages: few computations at a time, and no request waits forever."""

import asyncio
import threading

import pytest
from tests.sentences import refuses

from calibrant.serving.console.shell.page_pool import PagePool
from calibrant.serving.http.problems import Problem


@pytest.fixture
def pool():
    pool = PagePool(threads=1, max_pending=2)
    yield pool
    pool.close()


def test_an_error_in_the_computation_is_raised(pool):
    def fail():
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        asyncio.run(pool.run(10.0, fail))
    assert asyncio.run(pool.run(10.0, lambda: 17)) == 17


def test_a_full_pool_refuses_further_computations(pool):
    gate = threading.Event()

    async def fill():
        waiting = [asyncio.create_task(pool.run(10.0, gate.wait)) for _ in range(2)]
        await asyncio.sleep(0)
        with refuses(Problem, "busy", "other pages", "reload") as caught:
            await pool.run(10.0, gate.wait)
        gate.set()
        assert await asyncio.gather(*waiting) == [True, True]
        return caught.value

    problem = asyncio.run(fill())
    assert problem.status == 503
    assert "Retry-After" in problem.headers


def test_a_computation_that_waited_too_long_never_starts(pool):
    gate, started = threading.Event(), []

    async def wait_too_long():
        first = asyncio.create_task(pool.run(10.0, gate.wait))
        await asyncio.sleep(0)
        with refuses(Problem, "too long", "reload"):
            await pool.run(0.01, lambda: started.append("late"))
        gate.set()
        await first
        await pool.run(10.0, lambda: started.append("next"))

    asyncio.run(wait_too_long())
    assert started == ["next"]
