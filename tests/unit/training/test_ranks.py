"""Processes that train one network begin and end together."""

import json
import os
import signal
import time

import numpy as np
import pytest
import torch
from tests.sentences import refuses
from tests.unit.training.many_processes import line
from tests.unit.training.runs import blobs, options

from calibrant.errors import InputError, TrainingError
from calibrant.losses import AdaFocalLoss
from calibrant.training import Hook, train
from calibrant.training.ranks import explain_lost_ranks, run_on_ranks


class Until(Hook):
    """Stop the run before an epoch as a kill does, without a word."""

    def __init__(self, epoch, rank=None):
        self.epoch, self.rank = epoch, rank

    def on_epoch_start(self, run):
        if run.epoch == self.epoch and self.rank in (None, run.fabric.global_rank):
            os.kill(os.getpid(), signal.SIGKILL)


def work(out, folder, stop=None, rank=None, accumulate=1):
    """Train on the ranks that this process is one of, and write down what came of it.

    Of 327 rows the last batch has 7: ranks have 4 and 3 of them, and weights make these count
    unalike.
    """
    torch.set_num_threads(1)
    chosen = options(
        epochs=4, batch_size=32, optimizer="sgd", learning_rate=0.1, momentum=0.9, patience=None,
        precision="64-true", accumulate=accumulate,
    )  # fmt: skip
    hooks = [] if stop is None else [Until(stop, rank)]
    loss = AdaFocalLoss(n_bins=5, update_every=3, weight=[1.0, 3.0, 0.5])
    done = train(
        line(), blobs(327), blobs(101, seed=1), loss=loss, folder=folder, options=chosen,
        hooks=hooks,
    )  # fmt: skip
    found = {
        "weights": done.model.weight.tolist(),
        "gammas": done.loss.gammas.tolist(),
        "records": [[record.loss, record.nll] for record in done.records],
    }
    own = os.environ.get("RANK", "0")
    (out / f"rank-{own}.json").write_text(json.dumps(found))


def read(out, rank=0):
    return json.loads((out / f"rank-{rank}.json").read_text())


def refuse(rank):
    if os.environ["RANK"] == str(rank):
        raise InputError("labels must be whole numbers.")
    time.sleep(60)


def break_down():
    raise ZeroDivisionError("division by zero")


def same(ours, theirs):
    for name in ("weights", "gammas", "records"):
        np.testing.assert_allclose(ours[name], theirs[name], rtol=1e-6)


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    out = tmp_path_factory.mktemp("alone")
    work(out, None)
    return read(out)


def test_a_run_of_two_goes_on_alone_and_a_run_of_one_goes_on_with_two(tmp_path, alone):
    with pytest.raises(TrainingError):
        run_on_ranks(work, (tmp_path, tmp_path / "two", 2), 2)
    work(tmp_path, tmp_path / "two")  # epochs 0 and 1 by two, 2 and 3 by one
    same(read(tmp_path), alone)
    (tmp_path / "rank-0.json").unlink()
    with refuses(TrainingError, "process", "0 of 1", "killed", "SIGKILL", "perhaps"):
        run_on_ranks(work, (tmp_path, tmp_path / "one", 2), 1)
    run_on_ranks(work, (tmp_path, tmp_path / "one", None, None, 2), 2)
    first, second = read(tmp_path, 0), read(tmp_path, 1)
    assert first == second  # gammas to the bit
    same(first, alone)


def test_a_rank_that_dies_ends_the_others_with_one_sentence(tmp_path):
    with pytest.raises(
        TrainingError, match=r"another process of this run ended|process 1 of 2 was"
    ):
        run_on_ranks(work, (tmp_path, tmp_path / "run", 1, 1), 2)
    run_on_ranks(work, (tmp_path, tmp_path / "run"), 2)
    assert len(read(tmp_path)["records"]) == 4


def test_what_a_rank_raises_is_raised_here_and_nobody_is_waited_for():
    with refuses(InputError, "labels", "whole numbers"):
        run_on_ranks(refuse, (1,), 2)
    with refuses(TrainingError, "ZeroDivisionError", "division", "zero"):
        run_on_ranks(break_down, (), 1)


def test_only_what_tells_of_a_lost_rank_is_translated(monkeypatch):
    lost = "[../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [::1]:1"
    told = refuses(TrainingError, "run again", "resume", "last checkpoint")
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    with told, explain_lost_ranks():
        raise RuntimeError(lost)
    monkeypatch.undo()
    with pytest.raises(RuntimeError, match="closed by peer"), explain_lost_ranks():
        raise RuntimeError(lost)  # alone, it is of something else
    with pytest.raises(RuntimeError, match="mat1 and mat2"), explain_lost_ranks():
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")


def test_more_devices_than_gpus_are_refused(monkeypatch):
    from calibrant.training.devices import make_fabric

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    with refuses(
        InputError, "devices=4 needs 4", "GPUs", "torch sees 1", "at most 1", "device='cpu'"
    ):
        make_fabric(options(device="cuda", devices=4))
