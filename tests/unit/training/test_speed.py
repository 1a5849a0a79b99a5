"""What makes a network fast changes nothing that it learns."""

import os
import subprocess
import sys

import pytest
import torch
from tests.sentences import refuses
from tests.unit.training.runs import blobs, net, options, same_weights
from torch import nn

from calibrant.errors import InputError
from calibrant.training import ArrayRows, Hook, train
from calibrant.training.speed import (
    compile_model,
    explain_failed_compilation,
    tuned_convolutions,
    use_channels_last,
)


def image_net():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Linear(8, 3),
    )  # fmt: skip


def images(n, seed=0):
    draw = torch.Generator().manual_seed(seed)
    labels = torch.arange(n) % 3
    return ArrayRows(torch.randn(n, 3, 6, 6, generator=draw) + labels.view(-1, 1, 1, 1), labels)


def test_weights_of_images_get_their_channels_together_and_keep_their_values():
    model, twin = image_net(), image_net()
    laid = use_channels_last(model)
    assert laid[0].weight.is_contiguous(memory_format=torch.channels_last)
    assert same_weights(laid, twin)
    rows = images(5).features
    torch.testing.assert_close(laid.eval()(rows), twin.eval()(rows), rtol=1e-5, atol=1e-6)


def test_networks_without_images_are_left_as_they_are():
    model = net()
    assert use_channels_last(model) is model
    with tuned_convolutions(model):
        assert not torch.backends.cudnn.benchmark


def test_convolutions_are_tuned_in_a_run_and_not_after_it():
    seen = []

    class Look(Hook):
        def on_epoch_start(self, run):
            seen.append(torch.backends.cudnn.benchmark)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(image_net(), images(30), images(30, 1), options=options(), hooks=[Look()])
    assert seen == [True]
    assert not torch.backends.cudnn.benchmark


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_a_run_on_images_goes_on_to_the_same_bits(tmp_path, optimizer):
    class Stop(Hook):
        def on_epoch_start(self, run):
            if run.epoch == 2:
                raise KeyboardInterrupt

    class Last(Hook):
        def on_epoch_end(self, run, record):
            self.weights = {k: v.clone() for k, v in run.model.state_dict().items()}

    def run(folder, hook):
        chosen = options(optimizer=optimizer, learning_rate=0.02, epochs=6)
        rows, steer = images(60), images(30, 1)
        return train(image_net(), rows, steer, options=chosen, hooks=[hook], folder=folder)

    whole = run(tmp_path / "whole", last := Last())
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "cut", Stop())
    cut = run(tmp_path / "cut", last_of_cut := Last())
    # Of the last epoch, which was made after the stop; the best may be an earlier one.
    assert all(torch.equal(value, last_of_cut.weights[k]) for k, value in last.weights.items())
    assert [one.nll for one in whole.records] == [one.nll for one in cut.records]


def test_a_compiled_network_learns_what_the_plain_one_learns(tmp_path):
    class Keep(Hook):
        def __init__(self):
            self.logits = []

        def on_batch_end(self, run, logits, labels):
            self.logits.append(logits)

    found = []
    for compile in (False, True):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 3))
        chosen = options(epochs=2, optimizer="sgd", compile=compile)
        keep = Keep()
        done = train(model, blobs(70), blobs(50, seed=1), options=chosen, hooks=[keep])
        found.append((done, keep))
    (plain, seen), (fast, seen_fast) = found
    assert list(fast.model.state_dict()) == list(plain.model.state_dict())
    for name, value in plain.model.state_dict().items():
        torch.testing.assert_close(fast.model.state_dict()[name], value, rtol=1e-4, atol=1e-5)
    for one, other in zip(seen_fast.logits, seen.logits, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def test_only_images_on_a_gpu_without_parts_replay_whole_steps(monkeypatch):
    asked = []
    monkeypatch.setattr(torch, "compile", lambda model, **how: asked.append(how) or model)
    gpu, cpu = torch.device("cuda"), torch.device("cpu")
    compile_model(image_net(), options(compile=True), gpu)
    compile_model(image_net(), options(compile=True, accumulate=2), gpu)
    compile_model(image_net(), options(compile=True), cpu)
    compile_model(net(), options(compile=True), gpu)
    compile_model(net(), options(), gpu)
    assert asked == [
        {"dynamic": False, "mode": "reduce-overhead"}, {"dynamic": False}, {"dynamic": False},
        {"dynamic": None},
    ]  # fmt: skip


def test_a_machine_that_cannot_compile_is_told_in_one_sentence(tmp_path):
    code = (
        "from tests.unit.training.runs import *\n"
        "from calibrant.training import train\n"
        "from calibrant.errors import TrainingError\n"
        "try:\n"
        "    train(net(), blobs(99), blobs(99), options=options(compile=True))\n"
        "except TrainingError as error:\n"
        "    print(error)\n"
    )
    there = {"CXX": str(tmp_path / "no-compiler"), "TORCHINDUCTOR_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=True,
        env={**os.environ, **there, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
    )  # fmt: skip
    assert done.stdout.startswith("torch.compile could not compile the network (")
    assert "compile=False" in done.stdout
    assert done.stdout.count("\n") == 1


def test_other_errors_are_not_taken_for_failed_compilation():
    with pytest.raises(ValueError, match="mine"), explain_failed_compilation():
        raise ValueError("mine")
    with refuses(InputError, "compile", "True", "False", "got 'yes'"):
        options(compile="yes")
