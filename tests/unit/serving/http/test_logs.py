"""The log: lines with their time, level and process, and no floods."""

import io
import logging
import os
import re

import pytest

from calibrant.serving import run as logs
from calibrant.serving.run import RepeatFilter, log_to_stderr

LINE = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"
log = logging.getLogger("calibrant.serving")


@pytest.fixture
def clock(monkeypatch):
    made = type("Clock", (), {"now": 1000.0})()
    monkeypatch.setattr(logs.time, "monotonic", lambda: made.now)
    return made


@pytest.fixture
def lines(monkeypatch):
    """Return what is written while a service runs."""
    stream = io.StringIO()
    monkeypatch.setattr("sys.stderr", stream)
    with log_to_stderr():
        yield lambda: stream.getvalue().splitlines()


def test_a_line_says_when_how_bad_and_which_process(lines):
    log.warning("the database is %s", "away")
    logging.getLogger("uvicorn.error").error("uvicorn has it too")
    first, second = lines()
    assert re.fullmatch(f"{LINE} WARNING {os.getpid()} the database is away", first)
    assert re.fullmatch(f"{LINE} ERROR {os.getpid()} uvicorn has it too", second)


def test_the_same_is_said_once_in_ten_seconds_and_then_how_often(lines, clock):
    for i in range(100):
        log.warning("the database is away")
        log.warning("number %d", i % 2)
        clock.now += 0.09
    said = [line.split(" ", 3)[3] for line in lines()]
    assert said == ["the database is away", "number 0", "number 1"]
    clock.now += 1.0
    log.warning("the database is away")
    clock.now += 10.0
    log.warning("the database is away")
    said = [line.split(" ", 3)[3] for line in lines()]
    assert said[3:] == ["the database is away (99 more like it)", "the database is away"]


def test_a_traceback_comes_after_the_count(lines, clock):
    for _ in range(2):
        for _ in range(3):
            try:
                raise ZeroDivisionError("of ours")
            except ZeroDivisionError:
                log.exception("POST failed")
        clock.now += 20.0
    text = "\n".join(lines())
    assert text.count("Traceback") == 2
    assert "POST failed (2 more like it)\nTraceback" in text


def test_messages_that_a_stranger_makes_up_are_no_flood_either(lines, clock):
    for i in range(5_000):
        log.error("%s failed", f"GET /{i}")
    assert len(lines()) == logs._MAX_TRACKED + 1
    for step in range(1, 50):
        clock.now += 11.0
        for i in range(300):
            log.error("%s failed", f"GET /{step}/{i}")
    (handler,) = [
        each for each in log.handlers if any(isinstance(f, RepeatFilter) for f in each.filters)
    ]
    assert len(handler.filters[0]._counts) <= logs._MAX_TRACKED + 1


def test_other_handlers_hear_everything(lines, caplog):
    for _ in range(3):
        log.warning("the database is away")
    assert len(lines()) == 1
    assert caplog.messages == ["the database is away"] * 3


def test_afterwards_the_loggers_are_as_before():
    before = [list(logging.getLogger(name).handlers) for name in logs._LOGGERS]
    with log_to_stderr():
        assert len(log.handlers) == len(before[0]) + 1
    assert [logging.getLogger(name).handlers for name in logs._LOGGERS] == before
