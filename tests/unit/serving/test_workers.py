"""Several processes: one that ends is replaced, all get SIGHUP, and all end together."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from tests.sentences import assert_mentions

from calibrant.serving.run import Workers, handle_signals

FOLDER = "CALIBRANT_TEST_WORKERS"


def work(listener):
    """Leave a file as a sign of life, another for each SIGHUP, and one at the end."""
    folder, own = Path(os.environ[FOLDER]), os.getpid()
    stopped = threading.Event()
    signal.signal(signal.SIGHUP, lambda *_: (folder / f"hup-{own}").touch())
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    assert listener.getsockname()[1] > 0
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN  # Ctrl-C is the parent's business
    (folder / f"up-{own}").touch()
    while not stopped.wait(0.01):
        pass
    (folder / f"end-{own}").touch()


def deaf(listener):
    """Do not end when told to."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    (Path(os.environ[FOLDER]) / f"up-{os.getpid()}").touch()
    time.sleep(600)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv(FOLDER, str(tmp_path))
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(tmp_path))
    return tmp_path


def pids(folder, kind):
    return {int(file.name.partition("-")[2]) for file in folder.glob(f"{kind}-*")}


def until(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def run(use, target=work, count=2, drain=30.0):
    """Run workers while `use` does its part in a thread; then stop them."""
    faults = []

    def using():
        try:
            use()
        except BaseException as error:
            faults.append(error)
        finally:
            workers.stop()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        workers = Workers(count, target, listener, stop_timeout=drain)
        thread = threading.Thread(target=using)
        thread.start()
        workers.run()
        thread.join()
    assert not faults


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.verify
def test_they_are_told_of_sighup_replaced_and_ended(folder, caplog):
    def use():
        until(lambda: len(pids(folder, "up")) == 2)
        first = pids(folder, "up")
        os.kill(os.getpid(), signal.SIGHUP)
        until(lambda: pids(folder, "hup") == first)
        gone = min(first)
        (folder / f"gauge_livesum_{gone}.db").touch()  # what waited in it
        os.kill(gone, signal.SIGKILL)
        until(lambda: len(pids(folder, "up")) == 3)
        assert alive(max(first))
        assert not (folder / f"gauge_livesum_{gone}.db").exists()

    before = signal.getsignal(signal.SIGHUP)
    run(use)
    assert signal.getsignal(signal.SIGHUP) is before
    assert len(pids(folder, "end")) == 2
    assert not any(alive(pid) for pid in pids(folder, "up"))
    assert caplog.text.count("exited with -9: starting another") == 1


@pytest.mark.verify
def test_one_that_does_not_end_is_killed(folder, monkeypatch, caplog):
    monkeypatch.setattr("calibrant.serving.run._KILL_AFTER", 0.0)
    run(lambda: until(lambda: len(pids(folder, "up")) == 1), deaf, count=1, drain=0.05)
    assert not any(alive(pid) for pid in pids(folder, "up"))
    assert_mentions(caplog.text, "did not exit in time", "killed")


PARENT = """
import multiprocessing, os, sys, threading, time
from calibrant.serving.run import stop_with_parent

def child(folder):
    gone = threading.Event()
    stop_with_parent(gone.set)
    open(f"{folder}/up-{os.getpid()}", "w").close()
    gone.wait(60)
    open(f"{folder}/end-{os.getpid()}", "w").close()

if __name__ == "__main__":
    stop_with_parent(lambda: sys.exit("nobody is above"))
    multiprocessing.get_context("spawn").Process(target=child, args=(sys.argv[1],)).start()
    time.sleep(60)
"""


@pytest.mark.verify
def test_a_process_ends_when_its_parent_was_killed(folder):
    script = folder / "parent.py"
    script.write_text(PARENT)
    parent = subprocess.Popen([sys.executable, script, folder])
    try:
        until(lambda: len(pids(folder, "up")) == 1)
    finally:
        parent.kill()
        parent.wait()
    until(lambda: pids(folder, "end") == pids(folder, "up"))


def test_signals_are_handled_and_given_back():
    names = (signal.SIGHUP, signal.SIGUSR1)
    before = [signal.getsignal(name) for name in names]
    seen = []
    with handle_signals(lambda number, frame: seen.append(number), *names):
        for name in names:
            signal.raise_signal(name)
    assert seen == [signal.SIGHUP, signal.SIGUSR1]
    assert [signal.getsignal(name) for name in names] == before


def test_also_after_an_error():
    before = signal.getsignal(signal.SIGHUP)
    with pytest.raises(ValueError, match="broke"), handle_signals(signal.SIG_IGN, signal.SIGHUP):
        raise ValueError("broke")
    assert signal.getsignal(signal.SIGHUP) is before
