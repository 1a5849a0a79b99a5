"""Two processes on the CPU train as one does."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from tests.unit.training.many_processes import run


def started(command, out):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(command, env=environment, capture_output=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    return [json.loads((out / f"rank-{rank}.json").read_text()) for rank in (0, 1)]


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    out = tmp_path_factory.mktemp("alone")
    run(out, 1)
    return json.loads((out / "rank-0.json").read_text())


def test_two_processes_of_torchrun_hold_identical_gammas_and_those_of_one(tmp_path, alone):
    command = [
        sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2",
        "-m", "tests.unit.training.many_processes", str(tmp_path), "1",
    ]  # fmt: skip
    first, second = started(command, tmp_path)
    assert first["world"] == second["world"] == 2
    assert first["gammas"] == second["gammas"]
    assert first["weights"] == second["weights"]
    # Sums of gradients are taken in another order, so weights agree to rounding only.
    np.testing.assert_allclose(first["weights"], alone["weights"], rtol=1e-9)
    np.testing.assert_allclose(first["gammas"], alone["gammas"], rtol=1e-9)
    np.testing.assert_allclose(first["edges"], alone["edges"], rtol=1e-9)
    np.testing.assert_allclose(
        np.array(first["records"])[:, 1:], np.array(alone["records"])[:, 1:], rtol=1e-6
    )


def test_two_devices_start_the_script_a_second_time_and_a_run_moves_between_numbers(tmp_path):
    out, folder = tmp_path / "out", tmp_path / "folder"
    out.mkdir()
    command = [sys.executable, "-m", "tests.unit.training.many_processes", str(out), "2", folder]
    first, second = started(command, out)
    assert first["weights"] == second["weights"]
    alone = tmp_path / "alone"
    alone.mkdir()
    run(alone, 1, str(folder))  # the finished run of two processes is read by one
    assert json.loads((alone / "rank-0.json").read_text())["weights"] == first["weights"]
