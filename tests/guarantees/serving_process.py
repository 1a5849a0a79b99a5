"""A real `calibrant serve` process: started by its command, killed and stopped by signals."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import httpx2
import psutil
from tests.unit.bundle.parts import point, temperature

from calibrant.bundle import Bundle, BundlePoint, pack

PATIENCE = 60.0
"""Seconds that anything may take before it counts as hung; nothing is measured by it."""

CALIBRANT = (sys.executable, "-m", "calibrant")
"""The command, run by this Python."""


def make_bundle(folder: Path, heat: float = 2.0) -> Bundle:
    """Pack a bundle without a model, so that a process starts fast; `heat` tells two apart."""
    return pack(
        folder,
        calibrator=temperature(heat),
        points=[BundlePoint(point(), "calibrated")],
        actions={"defect": "refund"},
        force=True,
    )


def wait_until(true, what: str, patience: float = PATIENCE, every: float = 0.02):
    """Ask again and again; return the first answer that is true."""
    until = time.monotonic() + patience
    while not (found := true()):
        if time.monotonic() > until:
            raise TimeoutError(f"{what} did not happen within {patience:g} s")
        time.sleep(every)
    return found


class Process:
    """A service in a process of its own, on a port that it keeps after a restart.

    Parameters
    ----------
    bundle : the folder that it serves
    db : address of the store
    folder : for what it says and for its temporary files
    options : further ones of the command
    program : what runs the command
    """

    def __init__(
        self, bundle: Path, db: str, folder: Path, *options: str,
        program: tuple[str, ...] = CALIBRANT,
    ) -> None:  # fmt: skip
        self._bundle, self._db, self._folder, self._options = bundle, db, folder, options
        self._program = program
        self._port, self._running = 0, None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    @property
    def pid(self) -> int:
        return self._running.pid

    @property
    def said(self) -> str:
        """All that went to the process's log, over all starts."""
        return (self._folder / "log.txt").read_text(encoding="utf-8")

    def start(self) -> None:
        """Start it and return when it answers."""
        self.begin()
        self._port = int(wait_until(self._told, "the start")["url"].rpartition(":")[2])
        wait_until(lambda: self.status("/healthz") == 200, "the first answer")

    def begin(self) -> None:
        """Start it and return at once."""
        self._folder.mkdir(exist_ok=True)
        command = [
            *self._program, "serve", str(self._bundle), "--db", self._db, "--port",
            str(self._port), "--json", *self._options,
        ]  # fmt: skip
        own = {k: v for k, v in os.environ.items() if not k.startswith(("CALIBRANT", "PROMETHEUS"))}
        own |= {"TMPDIR": str(self._folder), "OMP_NUM_THREADS": "1", "PYTHONFAULTHANDLER": "1"}
        with (
            (self._folder / "out.json").open("w") as out,
            (self._folder / "log.txt").open("a") as log,
        ):
            self._running = subprocess.Popen(
                command, stdout=out, stderr=log, env=own, start_new_session=True
            )

    def kill(self) -> None:
        """Kill the process and all that it started, as kill -9 does."""
        os.killpg(self._running.pid, signal.SIGKILL)
        self._running.wait()

    def kill_supervisor(self) -> None:
        """Kill only the process that was started, not its workers."""
        self._running.kill()
        self._running.wait()

    def workers(self) -> list[int]:
        """Return the ids of the processes that serve, beside the first one."""
        found = []
        for each in psutil.Process(self._running.pid).children():
            with suppress(psutil.Error):  # it may end meanwhile
                if "spawn_main" in " ".join(each.cmdline()):
                    found.append(each.pid)
        return found

    def stop(self) -> int:
        """Tell it to stop, and return its exit code."""
        self._running.terminate()
        return self._running.wait(PATIENCE)

    def status(self, path: str) -> int | None:
        """Return the status of an answer; None without one."""
        answer = self.get(path)
        return None if answer is None else answer.status_code

    def get(self, path: str) -> httpx2.Response | None:
        try:
            return httpx2.get(self.url + path, timeout=30, trust_env=False)
        except httpx2.HTTPError:
            return None

    def group(self) -> list[int]:
        """Return the ids of all processes that were started with it and still run."""
        found = []
        for each in psutil.process_iter():
            with suppress(ProcessLookupError, psutil.Error):
                if os.getpgid(each.pid) == self._running.pid and each.status() != "zombie":
                    found.append(each.pid)
        return found

    def _told(self) -> dict[str, object] | None:
        text = (self._folder / "out.json").read_text(encoding="utf-8")
        if self._running.poll() is not None:
            raise RuntimeError(f"the service did not start: {text} {self.said}")
        with suppress(ValueError):
            found = json.loads(text)
            return found if "url" in found else None
        return None

    def __enter__(self) -> "Process":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._running is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._running.pid, signal.SIGKILL)
            self._running.wait()
