"""Devices are named or refused before anything starts."""

import pytest
from tests.sentences import assert_mentions, refuses
from tests.unit.training.runs import options

from calibrant.errors import InputError
from calibrant.training.devices import make_fabric
from calibrant.training.memory import explain_out_of_memory, fits


@pytest.mark.parametrize("device", ["tpu", "cuda:x", "gpu0", ""])
def test_an_unknown_device_is_refused(device):
    with refuses(InputError, "device", "'auto'", "'cpu'"):
        make_fabric(options(device=device))


def test_a_gpu_that_is_not_there_is_refused():
    with refuses(InputError, "device 'cuda:99'", "not available", "torch sees", "GPUs"):
        make_fabric(options(device="cuda:99"))


def test_half_precision_on_a_cpu_is_refused_with_what_works_there():
    with refuses(InputError, "needs", "GPU", "choose 'bf16-mixed'"):
        make_fabric(options(precision="16-mixed"))


def test_a_split_stays_on_the_cpu_whatever_its_size():
    import torch

    assert fits(10**15, torch.device("cpu"))


def test_a_batch_of_one_row_leaves_only_a_smaller_model():
    import torch

    from calibrant.errors import TrainingError

    with pytest.raises(TrainingError, match="try a smaller model"), explain_out_of_memory(1):
        raise torch.OutOfMemoryError("CUDA out of memory")
    with (
        refuses(TrainingError, "accumulate=2", "batch_size=50"),
        explain_out_of_memory(101),
    ):
        raise MemoryError


@pytest.mark.verify
def test_a_program_without_a_file_is_not_started_again():
    import subprocess
    import sys

    code = (
        "from tests.unit.training.runs import *\n"
        "from calibrant.training import train\n"
        "train(net(), blobs(99), blobs(99), options=options(devices=2))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False
    )
    assert_mentions(
        done.stderr.splitlines()[-1],
        "InputError",
        "devices=2 starts",
        "script again",
        "no script file",
        "torchrun",
    )


def test_what_is_wrong_is_told_before_processes_are_started():
    from tests.unit.training.runs import blobs, net

    from calibrant.training import train

    with refuses(InputError, "batch_size", "at least 18", "9 processes"):
        train(net(), blobs(99), blobs(99), options=options(batch_size=16, devices=9))
