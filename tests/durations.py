"""Time per test file: the slowest are listed, and a file that costs too much fails `make test`.

A file is reported by wall time, and fails by processor time (its own and that of the processes it
waited for), because a busy machine makes the first longer, and the second hardly. On a slower
machine, or one whose cores are shared, a fixed loop is timed before and after, and the limit grows
with it. Files of the tier `verify` run whole sites and thousands of draws: they are reported only.
"""

import json
import os
import time
from collections import defaultdict

import pytest

REPORTED = 20.0
FAILED = 60.0
LISTED = 25
LOOP, USUAL = 2_000_000, 0.15
"""Additions that are timed, and the seconds that they take on the machine of the limits."""


def pytest_addoption(parser):
    parser.addoption("--time-record", help="write the time of every test file to this JSON file")


def _processor_seconds():
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _slowness():
    """Return how many times longer than usual a fixed loop takes, at least 1."""
    start, total = time.process_time(), 0
    for i in range(LOOP):
        total += i
    return max(1.0, (time.process_time() - start) / USUAL)


class FileTimes:
    """Sums of seconds per test file, over all workers."""

    def __init__(self, config):
        self.record = config.getoption("--time-record")
        self.limited = config.getoption("--tier") == "test"
        self.wall = defaultdict(float)
        self.processor = defaultdict(float)
        self.cases = defaultdict(int)
        self.slowness = _slowness() if self.limited else 1.0

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item, call):
        started = getattr(item, "_processor_started", None)
        report = yield
        now = _processor_seconds()
        report.processor = 0.0 if started is None else now - started
        item._processor_started = now
        return report

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item):
        item._processor_started = _processor_seconds()

    def pytest_runtest_logreport(self, report):
        path = report.nodeid.split("::")[0]
        self.wall[path] += report.duration
        self.processor[path] += getattr(report, "processor", 0.0)
        self.cases[path] += report.when == "call"

    def too_slow(self):
        """Return the files of the first tier that take too much processor time."""
        limit = FAILED * self.slowness
        slow = (path for path, seconds in self.processor.items() if seconds > limit)
        return sorted(slow) if self.limited else []

    def pytest_sessionfinish(self, session):
        if hasattr(session.config, "workerinput"):
            return
        if self.record:
            table = {
                path: [round(self.wall[path], 2), round(self.processor[path], 2), self.cases[path]]
                for path in sorted(self.wall, key=self.wall.get, reverse=True)
            }
            with open(self.record, "w") as file:
                json.dump(table, file, indent=0)
        if self.limited:
            self.slowness = max(self.slowness, _slowness())
        if self.too_slow() and session.exitstatus == 0:
            session.exitstatus = 1

    def pytest_terminal_summary(self, terminalreporter):
        slow = [path for path, seconds in self.wall.items() if seconds > REPORTED]
        if not slow:
            return
        terminalreporter.section(f"test files over {REPORTED:.0f} s (passed, processor, cases)")
        for path in sorted(slow, key=self.wall.get, reverse=True)[:LISTED]:
            times = f"{self.wall[path]:7.1f} {self.processor[path]:7.1f} {self.cases[path]:5d}"
            terminalreporter.line(f"{times}  {path}")
        for path in self.too_slow():
            terminalreporter.line(
                f"FAILED {path} takes over {FAILED:.0f} s of processor time: share what it builds, "
                "split it, or move it to the tier of `make verify`",
                red=True,
            )


def pytest_configure(config):
    config.pluginmanager.register(FileTimes(config), "file-times")
