"""Run commands of the pages without importing everything again for each.

Most of the time of a short command goes into importing scipy, scikit-learn and torch. A server
imports them once and forks: each command is still a process of its own, with its own folder,
environment, output and exit code. What a start from nothing needs is shown by the first command
of each verb, which is started that way.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO

__all__ = ["CALIBRANT", "Start", "Warm", "cold", "serve"]

Start = Callable[[Sequence[str], Path, Mapping[str, str]], tuple[int, str]]
"""Runs `calibrant` with words in a folder and an environment: exit code and all that it printed."""

# As the installed command, whatever its place: usage lines then say `calibrant`.
CALIBRANT = (
    sys.executable,
    "-c",
    "import sys; sys.argv[0] = 'calibrant'; from calibrant.cli.main import run; run()",
)
_SERVER = (sys.executable, "-c", "from docs.warm import serve; serve()")
_ROOT = Path(__file__).resolve().parents[1]
_HEAVY = (
    "calibrant.cli.app",
    "calibrant.reports",
    "calibrant.study",
    "pyarrow.parquet",
    "scipy.optimize",
    "scipy.stats",
    "sklearn.isotonic",
    "sklearn.linear_model",
    "sklearn.model_selection",
    "plotly.graph_objects",
)


def cold(words: Sequence[str], folder: Path, env: Mapping[str, str]) -> tuple[int, str]:
    """Start `calibrant` from nothing; return its exit code and all that it printed."""
    done = subprocess.run(
        [*CALIBRANT, *words], cwd=folder, env=env, encoding="utf-8",
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout


class Warm:
    """Start each verb from nothing the first time, and from the server after that."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._seen: set[str] = set()
        self._server = subprocess.Popen(
            _SERVER, cwd=_ROOT, env=env, encoding="utf-8",
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip

    def __call__(
        self, words: Sequence[str], folder: Path, env: Mapping[str, str]
    ) -> tuple[int, str]:
        """Run a command like `cold`."""
        if words[0] not in self._seen:
            self._seen.add(words[0])
            return cold(words, folder, env)
        with tempfile.NamedTemporaryFile(encoding="utf-8", mode="r", newline=None) as out:
            job = {"words": list(words), "folder": str(folder), "env": dict(env), "out": out.name}
            _pipe(self._server.stdin).write(json.dumps(job) + "\n")
            _pipe(self._server.stdin).flush()
            code = int(_pipe(self._server.stdout).readline())
            return code, out.read()

    def close(self) -> None:
        """End the server."""
        _pipe(self._server.stdin).close()
        self._server.wait()
        _pipe(self._server.stdout).close()


def serve() -> None:
    """Read one command per line, run it in a fork, and write its exit code."""
    for name in _HEAVY:
        importlib.import_module(name)
    gc.freeze()
    for line in iter(sys.stdin.readline, ""):
        job = json.loads(line)
        child = os.fork()
        if child == 0:
            os._exit(_become(**job))  # tearing down all that was imported takes seconds
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


def _become(words: list[str], folder: str, env: dict[str, str], out: str) -> int:
    """Be the command: from here on nothing of the server is used but what it has imported."""
    nothing, target = os.open(os.devnull, os.O_RDONLY), os.open(out, os.O_WRONLY | os.O_APPEND)
    for source, stream in ((nothing, 0), (target, 1), (target, 2)):
        os.dup2(source, stream)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(env)
    sys.argv = ["calibrant", *words]
    from calibrant.cli.main import run

    try:
        run()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        code = 1
    threading._shutdown()  # waits for pools, as an exit does
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    return code


def _pipe(stream: IO[str] | None) -> IO[str]:
    assert stream is not None
    return stream
