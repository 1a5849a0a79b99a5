"""Reproductions at small size: each whole command on two cores in under ten minutes."""

from __future__ import annotations

import sys
import tempfile

from benchmarks.child import measured
from benchmarks.harness import Size
from benchmarks.outcome import Outcome, within

__all__ = ["measure"]

LIMIT = 600.0
NAMES = (
    "bigmart",
    "return-reasons-binary",
    "return-reasons-multi",
    "it-tickets",
    "womens-clothing",
    "clinc150",
    "adafocal-ablations",
)
SIZES = {"full": ("small", NAMES), "toy": ("toy", ("bigmart", "adafocal-ablations"))}


def measure(size: Size) -> list[Outcome]:
    """Time each command, two runs at a time; at toy size those of made-up rows."""
    run_size, names = SIZES[size]
    outcomes = []
    for name in names:
        with tempfile.TemporaryDirectory() as out:
            command = [sys.executable, "-m", "reproductions", name, "--size", run_size]
            taken = measured([*command, "--jobs", "2", "--out", out])
        goal = f"`python -m reproductions {name} --size {run_size}` under 10 minutes on two cores"
        peak = {"peak_mib": round(taken.peak_bytes / 2**20)}
        outcomes.append(within(goal, taken.seconds, LIMIT, "s", peak))
    return outcomes
