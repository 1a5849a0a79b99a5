"""Long computations of pages: few at a time, and nobody waits for ever."""

import asyncio
import threading

import pytest

from calibrant.serving.console.shell.page_pool import Workshop
from calibrant.serving.http.problems import Problem


@pytest.fixture
def workshop():
    made = Workshop(threads=1, most=2)
    yield made
    made.close()


def test_what_goes_wrong_inside_comes_out(workshop):
    def broken():
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        asyncio.run(workshop.do(10.0, broken))
    assert asyncio.run(workshop.do(10.0, lambda: 17)) == 17


def test_beyond_its_room_others_are_told_to_come_again(workshop):
    gate = threading.Event()

    async def several():
        waiting = [asyncio.create_task(workshop.do(10.0, gate.wait)) for _ in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(Problem, match="computes other pages") as caught:
            await workshop.do(10.0, gate.wait)
        gate.set()
        assert await asyncio.gather(*waiting) == [True, True]
        return caught.value

    problem = asyncio.run(several())
    assert problem.status == 503
    assert "Retry-After" in problem.headers


def test_what_waited_too_long_is_never_begun(workshop):
    gate, begun = threading.Event(), []

    async def several():
        first = asyncio.create_task(workshop.do(10.0, gate.wait))
        await asyncio.sleep(0)
        with pytest.raises(Problem, match="takes long to compute"):
            await workshop.do(0.01, lambda: begun.append("late"))
        gate.set()
        await first
        await workshop.do(10.0, lambda: begun.append("next"))

    asyncio.run(several())
    assert begun == ["next"]
