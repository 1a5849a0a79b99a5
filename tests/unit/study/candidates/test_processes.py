"""Processes beside this one: deaf to Ctrl-C from their first moment."""

import json
import os
import signal
import subprocess
import sys

import pytest
from tests.unit.study.runs import text_config

from calibrant.study.candidates.processes import forward_progress


def blocked(messages):
    """Tell which signals this process does not hear."""
    messages.put(str(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, set())))


def test_ctrl_c_is_the_parents_from_the_start_and_the_parent_still_hears_it():
    told = []
    with forward_progress(told.append) as (context, messages):
        process = context.Process(target=blocked, args=(messages,))
        process.start()
        assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, set())
        process.join()
    assert told == ["True"]
    assert process.exitcode == 0
    assert process.pid != os.getpid()


SCRIPT = """
import json, sys
from calibrant.study import StudyConfig, run_study
run_study(StudyConfig.from_dict(json.loads(sys.argv[1])), sys.argv[2])
"""


@pytest.mark.verify
@pytest.mark.parametrize("processes", [{"jobs": 2, "seeds": (0, 1)}, {"devices": 2}], ids=str)
def test_a_script_without_a_main_guard_ends_with_an_error_that_names_it(tmp_path, processes):
    (tmp_path / "script.py").write_text(SCRIPT)
    config = json.dumps(text_config(tmp_path, candidates=("ce",), **processes).to_dict())
    command = [sys.executable, str(tmp_path / "script.py"), config, str(tmp_path / "run")]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert ended.returncode == 1
    errors = [line for line in ended.stderr.splitlines() if line.startswith("calibrant.errors.")]
    assert len(errors) >= 2  # one of a new process, and one of the script itself
    assert all('call run_study under `if __name__ == "__main__":`' in line for line in errors)
    assert "TrainingError" in errors[-1]
    assert not list(tmp_path.rglob("bundle"))
