"""Timing: contenders take turns in one process, so that drift of the machine hits all alike."""

from __future__ import annotations

import gc
import os
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

__all__ = ["Disagreement", "Run", "Size", "agree", "cores", "race"]

Size = Literal["full", "toy"]


class Disagreement(AssertionError):
    """Two contenders that should compute the same number did not."""


@dataclass(frozen=True)
class Run:
    """What a contender returned, and how long each of its turns took.

    Parameters
    ----------
    value : result of the warm-up call
    seconds : wall time of each timed call
    """

    value: Any
    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        """The time that is reported; ratios are ratios of medians."""
        return statistics.median(self.seconds)

    def to_dict(self) -> dict[str, float]:
        """Return the median and the spread, in seconds."""
        return {
            "median_s": round(self.median, 6),
            "fastest_s": round(min(self.seconds), 6),
            "slowest_s": round(max(self.seconds), 6),
            "rounds": len(self.seconds),
        }


def race(contenders: Mapping[str, Callable[[], Any]], rounds: int) -> dict[str, Run]:
    """Time each contender once per round, after a warm-up call that is not timed.

    Every other round goes through them backwards: a machine that slows down or speeds up
    during the run favours none of them.
    """
    values = {name: work() for name, work in contenders.items()}
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    order = list(contenders)
    for turn in range(rounds):
        for name in order if turn % 2 == 0 else reversed(order):
            seconds[name].append(_timed(contenders[name]))
    return {name: Run(values[name], tuple(seconds[name])) for name in contenders}


def agree(what: str, ours: float, theirs: float, tolerance: float) -> None:
    """Refuse to compare the speed of two computations with different results."""
    if not abs(ours - theirs) <= tolerance:
        raise Disagreement(f"{what}: {ours!r} against {theirs!r}, allowed {tolerance:g} apart.")


def cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _timed(work: Callable[[], Any]) -> float:
    gc.collect()
    gc.disable()
    try:
        start = time.perf_counter()
        work()
        return time.perf_counter() - start
    finally:
        gc.enable()
