"""Time and peak memory of a command, measured from a small process of its own.

Linux counts what the parent held at the moment of starting a child towards the child's peak, so a
large process cannot measure a small one. `measured` therefore starts this file as a bare
interpreter, which starts the command and reports on it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Child", "measured"]


@dataclass(frozen=True)
class Child:
    """A finished command.

    Parameters
    ----------
    seconds : wall time from start to end
    peak_bytes : largest resident memory of the command or one of its own children
    output : what it wrote to standard output
    """

    seconds: float
    peak_bytes: int
    output: str


def measured(command: Sequence[str]) -> Child:
    """Run a command, and raise what it wrote to standard error if it fails."""
    done = subprocess.run(
        [sys.executable, "-I", "-S", __file__, *command],
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(command[:6])} failed:\n{done.stderr}")
    output, _, last = done.stdout.rstrip("\n").rpartition("\n")
    seconds, peak = json.loads(last)
    return Child(seconds, peak, output)


def _report(command: Sequence[str]) -> int:
    """Run the command with its output passed through, then print [seconds, peak bytes]."""
    import resource
    import time

    start = time.perf_counter()
    code = subprocess.run(command, check=False).returncode
    seconds = time.perf_counter() - start
    unit = 1 if sys.platform == "darwin" else 1024
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * unit
    print("\n" + json.dumps([seconds, peak]), flush=True)
    return code


if __name__ == "__main__":
    sys.exit(_report(sys.argv[1:]))
