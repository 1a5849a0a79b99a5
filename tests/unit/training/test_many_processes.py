"""Two processes on the CPU train as one does."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from tests.sentences import refuses
from tests.unit.training.many_processes import run
from tests.unit.training.runs import blobs, options

from calibrant.errors import InputError
from calibrant.training.split_checks import check_batches


def started(command, out):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(command, env=environment, capture_output=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    return [json.loads((out / f"rank-{rank}.json").read_text()) for rank in (0, 1)]


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    out = tmp_path_factory.mktemp("two")
    command = [
        sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2",
        "-m", "tests.unit.training.many_processes", str(out), "1",
    ]  # fmt: skip
    return started(command, out)


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    out = tmp_path_factory.mktemp("alone")
    run(out, 1)
    return json.loads((out / "rank-0.json").read_text())


def test_two_processes_of_torchrun_end_with_the_same_weights_buffers_and_gammas(two):
    first, second = two
    assert first == second  # also the running means of batch norm, and all records
    assert first["world"] == 2


@pytest.mark.parametrize("kind", ["linear", "sum", "averaged"])
def test_two_processes_train_as_one_does_on_the_same_batches(two, alone, kind):
    ours, theirs = two[0][kind], alone[kind]
    # Sums of gradients are taken in another order, so numbers agree to rounding only.
    np.testing.assert_allclose(ours["weights"]["weight"], theirs["weights"]["weight"], rtol=1e-9)
    np.testing.assert_allclose(ours["gammas"], theirs["gammas"], rtol=1e-9)
    np.testing.assert_allclose(ours["edges"], theirs["edges"], rtol=1e-9)
    columns = slice(1, None) if kind == "sum" else slice(None)  # a sum is of fewer rows
    np.testing.assert_allclose(
        np.array(ours["records"])[:, columns], np.array(theirs["records"])[:, columns], rtol=1e-6
    )
    if kind == "averaged":
        assert ours["average"]["averaged"] == pytest.approx(theirs["average"]["averaged"], rel=1e-6)


def test_batch_norm_statistics_of_an_average_are_those_of_all_processes(two, alone):
    assert two[0]["averaged normed"] == two[1]["averaged normed"]
    for found in (two[0], alone):
        weights = {k: np.array(v) for k, v in found["averaged normed"]["weights"].items()}
        mean = blobs(320).features.double().numpy().mean(axis=0)
        expected = weights["0.weight"] @ mean + weights["0.bias"]  # of the first layer
        np.testing.assert_allclose(weights["1.running_mean"], expected, rtol=1e-6)


def test_two_devices_start_the_script_a_second_time_and_a_run_moves_between_numbers(tmp_path):
    out, folder = tmp_path / "out", tmp_path / "folder"
    out.mkdir()
    command = [sys.executable, "-m", "tests.unit.training.many_processes", str(out), "2", folder]
    first, second = started(command, out)
    assert first == second
    alone = tmp_path / "alone"
    alone.mkdir()
    run(alone, 1, str(folder))  # the finished run of two processes is read by one
    found = json.loads((alone / "rank-0.json").read_text())
    assert found["linear"] == first["linear"]


def test_every_process_must_get_rows():
    with refuses(InputError, "batch_size", "at least 4", "4 processes", "got 3"):
        check_batches(False, blobs(9), blobs(9), options(batch_size=3), 4)
    with refuses(InputError, "batch_size", "at least 8", "4 processes"):
        check_batches(True, blobs(9), blobs(9), options(batch_size=7), 4)
    with refuses(InputError, "steer split", "at least 4 rows", "4 processes"):
        check_batches(False, blobs(9), blobs(3), options(batch_size=8), 4)
