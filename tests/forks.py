"""Processes that do not import everything anew.

Most of the time of a short process goes into importing numpy, scikit-learn and torch. A server
imports them once and forks: what it starts is a process of its own, with its own arguments, folder,
environment, streams and signals. What is about the start itself (what is imported, what is
missing, how much memory it takes) or about the last words of Python needs a process from nothing.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import traceback
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

__all__ = ["COMMAND", "Forked", "fork", "serve"]

COMMAND = "from calibrant.cli.main import run; run()"
"""The command line."""

_ROOT = Path(__file__).parents[1]
_NUMBER = struct.Struct("=i")
_HEAVY = (
    "calibrant.bundle", "calibrant.cli.app", "calibrant.models.scorer", "calibrant.reports",
    "calibrant.study", "PIL.Image", "pandas", "plotly.graph_objects", "pyarrow.parquet",
    "scipy.optimize", "scipy.stats", "sklearn.isotonic", "sklearn.linear_model",
)  # fmt: skip


class Forked:
    """A process of the server, to be used as one of `subprocess`."""

    def __init__(self, status: int, stdout: int, stderr: int) -> None:
        self._status, self.returncode = status, None
        self.stdout = os.fdopen(stdout, encoding="utf-8")
        self.stderr = os.fdopen(stderr, encoding="utf-8")
        (self.pid,) = _NUMBER.unpack(os.read(status, _NUMBER.size))

    def send_signal(self, sign: int) -> None:
        if self.returncode is None:
            os.kill(self.pid, sign)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def wait(self, timeout: float) -> int:
        """Wait for the end; return the exit code, negative where a signal ended it."""
        if self.returncode is None:
            if not select.select([self._status], [], [], timeout)[0]:
                self.kill()
                raise TimeoutError(f"the process did not end within {timeout:g} s")
            (status,) = _NUMBER.unpack(os.read(self._status, _NUMBER.size))
            os.close(self._status)
            self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def communicate(self, timeout: float) -> tuple[str, str]:
        """Wait for the end; return what was written to both streams and not read yet."""
        with ThreadPoolExecutor(2) as pool:
            said = [pool.submit(stream.read) for stream in (self.stdout, self.stderr)]
            self.wait(timeout)
            out, err = (each.result() for each in said)
        self.stdout.close()
        self.stderr.close()
        return out, err


def fork(*words: Any, code: str = COMMAND, env: Mapping[str, str], cwd: Any = None) -> Forked:
    """Run code with these arguments in a process that has imported everything."""
    job = {"words": [*map(str, words)], "code": code, "env": dict(env), "cwd": str(cwd or ".")}
    pipes = [os.pipe() for _ in range(3)]
    ours, theirs = zip(*pipes, strict=True)
    job["cwd"] = str(Path(job["cwd"]).resolve())
    socket.send_fds(_server(), [json.dumps(job).encode()], theirs)
    for end in theirs:
        os.close(end)
    return Forked(*ours)


@cache
def _server() -> socket.socket:
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    path = os.pathsep.join([str(_ROOT / "src"), str(_ROOT)])
    command = [sys.executable, "-c", f"from tests.forks import serve; serve({there.fileno()})"]
    started = subprocess.Popen(
        command, cwd=_ROOT, env={**os.environ, "PYTHONPATH": path}, pass_fds=[there.fileno()],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    there.close()
    atexit.register(started.wait)
    atexit.register(here.close)  # first, and it ends the server
    return here


def serve(number: int) -> None:
    """Start a process for each job that comes."""
    with socket.socket(fileno=number) as jobs:
        for name in _HEAVY:
            import_module(name)
        gc.freeze()
        while True:
            job, streams, _, _ = socket.recv_fds(jobs, 1 << 20, 3)
            if not job:
                return
            keeper = os.fork()
            if keeper == 0:
                break
            for stream in streams:
                os.close(stream)
            _reap()
    _keep(*streams)
    code = _become(**json.loads(job))
    threading._shutdown()  # waits for pools, as an exit does
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # tearing down all that was imported takes seconds


def _reap() -> None:
    """Forget the keepers that have ended."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def _keep(status: int, stdout: int, stderr: int) -> None:
    """Fork once more and tell how that process ends; return in it."""
    child = os.fork()
    if child:
        os.close(stdout)
        os.close(stderr)
        os.write(status, _NUMBER.pack(child))
        os.write(status, _NUMBER.pack(os.waitpid(child, 0)[1]))
        os._exit(0)
    os.close(status)
    for stream, place in ((stdout, 1), (stderr, 2)):
        os.dup2(stream, place)
        os.close(stream)


def _become(words: list[str], code: str, env: dict[str, str], cwd: str) -> int:
    """Be the process: nothing of the server is used any more but what it has imported."""
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    sys.argv = ["calibrant", *words]
    try:
        exec(compile(code, "<process>", "exec"), {"__name__": "__main__"})
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0
