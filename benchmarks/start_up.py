"""`import calibrant` and `calibrant --help` in under half a second, without heavy libraries."""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.child import measured
from benchmarks.harness import Size
from benchmarks.outcome import Outcome, within

__all__ = ["measure"]

ROUNDS = {"full": 7, "toy": 3}
LIMIT = 0.5
HEAVY = ("torch", "plotly", "matplotlib", "pandas", "sklearn")


def measure(size: Size) -> list[Outcome]:
    """Time both, with the bare interpreter beside them, and list the heavy modules they load."""
    python = sys.executable
    commands = {
        "import calibrant": [python, "-c", "import calibrant"],
        "calibrant --help": [*_calibrant(), "--help"],
        "bare interpreter": [python, "-c", "pass"],
    }
    seconds = _seconds(commands, ROUNDS[size])
    bare = statistics.median(seconds.pop("bare interpreter"))
    times = [
        within(
            f"`{name}` under 0.5 s",
            statistics.median(rounds),
            LIMIT,
            "s",
            {
                "rounds_s": [round(one, 4) for one in rounds],
                "bare_interpreter_s": round(bare, 4),
            },
        )
        for name, rounds in seconds.items()
    ]
    loaded = {
        "import calibrant": heavy_modules(["-c", "import calibrant"]),
        "calibrant --help": heavy_modules(["-m", "calibrant", "--help"]),
    }
    most = max(len(modules) for modules in loaded.values())
    goal = "neither loads " + ", ".join(HEAVY)
    return [*times, within(goal, most, 1, "modules", {"loaded": loaded})]


def _seconds(commands: Mapping[str, Sequence[str]], rounds: int) -> dict[str, list[float]]:
    """Time each command once per round; the first round warms the cache and is dropped."""
    turns = [
        {name: measured(command).seconds for name, command in commands.items()}
        for _ in range(rounds + 1)
    ]
    return {name: [turn[name] for turn in turns[1:]] for name in commands}


def heavy_modules(arguments: Sequence[str]) -> list[str]:
    """Return which of the heavy libraries a Python command imports."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *arguments], capture_output=True, text=True, check=True
    )
    lines = (line for line in done.stderr.splitlines() if line.startswith("import time:"))
    names = {line.rpartition("|")[2].strip().partition(".")[0] for line in lines}
    return sorted(names & set(HEAVY))


def _calibrant() -> list[str]:
    """Find the installed command beside the interpreter, or on the path."""
    command = shutil.which("calibrant", path=str(Path(sys.executable).parent))
    command = command or shutil.which("calibrant")
    return [command] if command else [sys.executable, "-m", "calibrant"]
