"""What only a GPU can show; skipped where torch sees none."""

import math

import numpy as np
import pytest
import torch
from tests.unit.training.runs import blobs, net
from torch import nn

from calibrant.errors import TrainingError
from calibrant.losses import as_loss, losses
from calibrant.training import ArrayRows, TrainingOptions, predict_logits, train

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU here")

NEEDS = {"cost_sensitive": "costs=[[0,1,1],[1,0,1],[1,1,0]]"}
WHOLE_BATCH = {"mmce", "soft_f1"}  # they look at a batch as a whole and may wait for the GPU


def made(name):
    options = NEEDS.get(name)
    text = name if options is None else f"{name}:{options}"
    return as_loss(text, class_counts=[50, 30, 20]).cuda()


@pytest.mark.parametrize("name", sorted(set(losses()) - WHOLE_BATCH))
def test_a_loss_never_waits_for_the_gpu(name):
    loss = made(name)
    logits = torch.randn(512, 3, device="cuda", requires_grad=True)
    labels = torch.randint(0, 3, (512,), device="cuda")
    loss(logits, labels).backward()  # first use may set things up
    torch.cuda.set_sync_debug_mode("error")
    try:
        loss(logits, labels).backward()
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("name", sorted(losses()))
def test_gradients_under_autocast_are_finite_and_those_of_the_cpu(name, dtype):
    draw = torch.Generator().manual_seed(0)
    for scale in (1.0, 1e2, 1e4):
        logits = (torch.randn(256, 3, generator=draw) * scale).to(dtype)
        labels = torch.randint(0, 3, (256,), generator=draw)
        there = logits.cuda().requires_grad_()
        with torch.autocast("cuda", dtype=torch.float16):
            value = made(name)(there, labels.cuda())
        value.backward()
        here = logits.clone().requires_grad_()
        expected = made(name).cpu()(here, labels)
        expected.backward()
        assert there.grad.isfinite().all()
        assert float(value.detach()) == pytest.approx(float(expected.detach()), rel=2e-3, abs=1e-6)
        torch.testing.assert_close(there.grad.cpu(), here.grad, rtol=2e-2, atol=1e-5)


@pytest.mark.parametrize("precision", ["32-true", "bf16-mixed", "16-mixed"])
def test_training_learns_on_the_gpu_in_each_precision(precision):
    chosen = TrainingOptions(epochs=10, batch_size=64, learning_rate=0.01, precision=precision)
    steer = blobs(300, seed=1)
    trained = train(net(), blobs(1000), steer, loss="adafocal", options=chosen)
    assert trained.records[trained.best_epoch].accuracy > 0.8
    probs = predict_logits(trained.model, steer)
    assert np.mean(probs.argmax(1) == steer.labels.numpy()) > 0.8
    assert all(math.isfinite(record.loss) for record in trained.records)


def test_a_run_goes_on_after_a_stop(tmp_path):
    short = TrainingOptions(epochs=6, batch_size=64, learning_rate=0.01, precision="16-mixed")

    def run(folder, hooks=()):
        return train(
            net(), blobs(500), blobs(200, seed=1), loss="adafocal", options=short, folder=folder,
            hooks=hooks,
        )  # fmt: skip

    whole = run(tmp_path / "whole")

    from calibrant.training import Hook

    class Stop(Hook):
        def on_epoch_start(self, run):
            if run.epoch == 3:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "cut", [Stop()])
    again = run(tmp_path / "cut")
    assert len(again.records) == 6
    for name, value in whole.model.state_dict().items():
        torch.testing.assert_close(again.model.state_dict()[name], value, rtol=1e-4, atol=1e-5)


def test_running_out_of_memory_names_the_batch_size_to_try():
    class Huge(nn.Module):
        def __init__(self):
            super().__init__()
            self.line = nn.Linear(3, 3)

        def forward(self, x):
            if self.training:
                torch.empty(2**40, device=x.device)
            return self.line(x)

    with pytest.raises(TrainingError, match=r"ran out of memory.*batch_size=32"):
        train(Huge(), blobs(100), blobs(100, seed=1), options=TrainingOptions(batch_size=64))


def test_a_split_too_large_for_the_device_stays_on_the_host(monkeypatch):
    monkeypatch.setattr("calibrant.training.job.fits", lambda *_: False)
    rows = ArrayRows(*[getattr(blobs(500), part) for part in ("features", "labels")])
    chosen = TrainingOptions(epochs=3, batch_size=64, learning_rate=0.01)
    assert train(net(), rows, blobs(200, seed=1), options=chosen).records[-1].accuracy > 0.7
