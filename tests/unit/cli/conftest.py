"""What the tests of the command line share."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.few_draws import few_draws
from tests.forks import fork
from typer.testing import CliRunner

from calibrant.cli.main import app

SOURCE = Path(__file__).parents[3] / "src"


@pytest.fixture
def cli(monkeypatch):
    """Run the real command line in this process, with rough intervals.

    As many draws as users get are made where the command line is a process: `spawn`, the README
    and the pages of the documentation, which show intervals and floors.
    """
    for name in [name for name in os.environ if name.startswith("CALIBRANT_")]:
        monkeypatch.delenv(name)
    with few_draws():
        yield lambda *words, **extra: CliRunner().invoke(app, [str(w) for w in words], **extra)


@pytest.fixture
def spawn():
    """Start the command line as a process of its own."""

    def start(*words, code=None, **extra):
        head = [sys.executable, "-m", "calibrant"] if code is None else [sys.executable, "-c", code]
        env = {**without_settings(), **extra.pop("env", {})}
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        return subprocess.Popen([*head, *map(str, words)], env=env, **{**pipes, **extra})

    return start


@pytest.fixture
def forked():
    """Start code as a process of its own that need not import everything anew."""
    return lambda *words, **extra: fork(*words, env=without_settings(), **extra)


def without_settings():
    """Return the environment of processes."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("CALIBRANT_")}
    return {**env, "PYTHONPATH": str(SOURCE)}


@pytest.fixture
def scores(tmp_path):
    """Write a binary score file in a folder of its own."""
    rng = np.random.default_rng(0)
    probs = rng.uniform(0.02, 0.98, 300).round(4)
    labels = (rng.random(300) < probs).astype(int)
    place = rng.choice(["north", "south"], 300)
    folder = tmp_path / "in"
    folder.mkdir()
    file = folder / "scores.csv"
    rows = (f"{y},{p},{g}" for y, p, g in zip(labels, probs, place, strict=True))
    file.write_text("\n".join(["label,prob,place", *rows]) + "\n")
    return file
