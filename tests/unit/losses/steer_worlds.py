"""Steer splits whose calibration is known, and the work of one process among several."""

import torch
import torch.distributed as dist

from calibrant.errors import InputError
from calibrant.losses import AdaFocalLoss, CalFocalLoss


def world(n=3000, k=5, *, sharpness=1.0, seed=0, dtype=torch.float64):
    """Labels drawn from a known posterior; logits that are `sharpness` times too sure of it."""
    draw = torch.Generator().manual_seed(seed)
    logits = 1.5 * torch.randn(n, k, generator=draw, dtype=torch.float64)
    labels = torch.multinomial(logits.softmax(-1), 1, generator=draw).squeeze(-1)
    return (sharpness * logits).to(dtype), labels


def losses():
    return {
        "robust": AdaFocalLoss(n_bins=7),
        "paper": AdaFocalLoss(n_bins=7, mode="paper"),
        "bin": CalFocalLoss("bin", n_bins=7),
        "sample": CalFocalLoss("sample", n_bins=7),
    }


def taught(loss, shard=slice(None)):
    """Three updates; returns all that the loss keeps."""
    for seed in range(3):
        logits, labels = world(701, sharpness=2.0, seed=seed, dtype=torch.float32)
        loss.update(logits[shard], labels[shard])
    return loss.state_dict()


def one_of_two(rank, folder, cut):
    """Be process `rank` of two, with rows before or after `cut`; write down what came of it."""
    torch.set_num_threads(1)
    meet = f"file://{folder}/meet"
    dist.init_process_group("gloo", init_method=meet, rank=rank, world_size=2)
    try:
        shard = slice(None, cut) if rank == 0 else slice(cut, None)
        found = {name: taught(loss, shard) for name, loss in losses().items()}
        found["nothing here"] = _without_rows(rank)
        found["refused"] = _refused(rank)
        torch.save(found, f"{folder}/{rank}.pt")
    finally:
        dist.destroy_process_group()


def _without_rows(rank):
    """The second process has nothing, and does not even know the number of classes."""
    loss = AdaFocalLoss(n_bins=7)
    logits, labels = world(300)
    if rank == 1:
        logits, labels = torch.empty(0, 0), labels[:0]
    loss.update(logits, labels)
    return loss.state_dict()


def _refused(rank):
    """The second process has a broken row; neither may wait, and neither may learn."""
    loss = AdaFocalLoss(n_bins=7)
    logits, labels = world(300)
    if rank == 1:
        logits[3, 1] = torch.nan
    try:
        loss.update(logits, labels)
    except InputError as error:
        return str(error), loss.state_dict()
    raise AssertionError("the broken row was taken")
