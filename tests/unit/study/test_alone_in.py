"""One run at a time in the folder of a study: a second is refused, and no lock outlives its run."""

import builtins
import errno
import os
import signal
import subprocess
import sys

import pytest
from tests.sentences import refuses
from tests.unit.study.runs import text_config

from calibrant.errors import InputError
from calibrant.files.lock import LOCK, exclusive_folder
from calibrant.study import run_study
from calibrant.study.demo import DemoSize, run_demo

HOLDER = (
    "import sys, time\n"
    "from pathlib import Path\n"
    "from calibrant.files.lock import exclusive_folder\n"
    "with exclusive_folder(Path(sys.argv[1])):\n"
    "    print('held', flush=True)\n"
    "    time.sleep(600)\n"
)


@pytest.fixture
def holder(tmp_path):
    """Start a process that is at work in a folder."""
    command = [sys.executable, "-c", HOLDER, str(tmp_path / "run")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.wait(timeout=60)


def test_a_second_run_is_refused_before_anything_is_read(holder, tmp_path, monkeypatch):
    monkeypatch.setattr("calibrant.study.study.read_study_rows", None)  # it is not reached
    config = text_config(tmp_path)
    with refuses(InputError, "another run", "/run", "wait"):
        run_study(config, tmp_path / "run")
    with refuses(InputError, "another run"):
        run_demo(tmp_path / "run", size=DemoSize(logs=10, golden=10, fresh=10))
    assert os.listdir(tmp_path / "run") == [LOCK]


def test_a_killed_run_leaves_no_lock(holder, tmp_path):
    holder.send_signal(signal.SIGKILL)
    holder.wait(timeout=60)
    assert (tmp_path / "run" / LOCK).exists()
    with exclusive_folder(tmp_path / "run"):
        pass
    assert os.listdir(tmp_path / "run") == []


def test_a_run_that_put_nothing_there_leaves_no_folder(tmp_path):
    config = text_config(tmp_path, actions={"nothing": "refund"})
    with refuses(InputError, "not among", "classes"):
        run_study(config, tmp_path / "runs" / "mine")
    assert not (tmp_path / "runs").exists()
    (tmp_path / "kept").mkdir()
    with refuses(InputError, "not among", "classes"):
        run_study(config, tmp_path / "kept" / "mine")
    assert os.listdir(tmp_path / "kept") == []


def test_a_run_that_is_just_ending_is_waited_for(tmp_path, monkeypatch):
    first = exclusive_folder(tmp_path / "run")
    first.__enter__()
    monkeypatch.setattr("time.sleep", lambda s: s and first.__exit__(None, None, None))
    with exclusive_folder(tmp_path / "run"):
        assert os.listdir(tmp_path / "run") == [LOCK]


def test_a_place_that_is_no_folder_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    told = r"--out .*file cannot be created \(File exists\)"
    with pytest.raises(InputError, match=told), exclusive_folder(tmp_path / "file"):
        raise AssertionError


def test_without_locks_of_files_nothing_is_guarded(tmp_path, monkeypatch):
    def refuse(handle, how):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", refuse)
    with exclusive_folder(tmp_path / "a"), exclusive_folder(tmp_path / "a"):
        pass
    monkeypatch.undo()
    own = builtins.__import__

    def without(name, *more):
        if name == "fcntl":
            raise ImportError(name)
        return own(name, *more)

    monkeypatch.setattr(builtins, "__import__", without)
    with exclusive_folder(tmp_path / "b"), exclusive_folder(tmp_path / "b"):
        pass
