"""Servers as processes: started, waited for, weighed, and stopped with all they started."""

from __future__ import annotations

import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import IO, Self

import psutil

__all__ = ["Server", "free_port"]

READY = 120.0
STOP = 30.0


class Server:
    """A command that listens on a port; a context manager.

    Parameters
    ----------
    command : what to start
    port : where it will listen
    environment : all environment variables of the process; None for those of this one
    """

    def __init__(
        self, command: Sequence[str], port: int, environment: Mapping[str, str] | None = None
    ) -> None:
        self.command, self.port = list(command), port
        self._environment = environment
        self._output: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  # until the end
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            self.command,
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=subprocess.STDOUT,
            env=None if self._environment is None else dict(self._environment),
        )
        try:
            self._wait()
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop()
        if error is not None:
            error.add_note(f"{' '.join(self.command[:6])} wrote:\n{self.output()}")

    def resident(self) -> int:
        """Return the resident memory of the process and all it started, in bytes."""
        return sum(each.memory_info().rss for each in self._family())

    def output(self) -> str:
        """Return the end of what the server wrote."""
        self._output.seek(0)
        return self._output.read().decode(errors="replace")[-3000:]

    def _wait(self) -> None:
        assert self._process is not None
        until = time.monotonic() + READY
        while time.monotonic() < until:
            if self._process.poll() is not None:
                break
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1):
                return
            time.sleep(0.05)
        raise RuntimeError(f"{' '.join(self.command[:6])} did not start:\n{self.output()}")

    def _family(self) -> list[psutil.Process]:
        assert self._process is not None
        parent = psutil.Process(self._process.pid)
        return [parent, *parent.children(recursive=True)]

    def _stop(self) -> None:
        """Ask the server to end, and end by force what has not ended after a while."""
        assert self._process is not None
        try:
            family = self._family()
        except psutil.NoSuchProcess:
            family = []
        self._process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(STOP)
        for each in family:
            with suppress(psutil.NoSuchProcess):
                each.kill()
        self._process.wait()


def free_port() -> int:
    """Return a port of this machine that nobody listens on."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])
