"""The parts of a run: where they are put, saved and found again."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from calibrant.errors import InputError
from calibrant.training.batches import Rows
from calibrant.training.checkpoints import Checkpoints
from calibrant.training.devices import make_fabric, planned_world
from calibrant.training.early_stopping import Stopping
from calibrant.training.hooks import Hook, Run
from calibrant.training.loss_weighting import Weighing, weighing_of
from calibrant.training.memory import fits
from calibrant.training.optimisers import make_optimizer
from calibrant.training.options import TrainingOptions
from calibrant.training.records import EpochRecord, Trained
from calibrant.training.scoring import weight_type
from calibrant.training.sharding import batch_sizes
from calibrant.training.speed import compiled, in_fast_layout, lay_out_as_weights
from calibrant.training.split_checks import check_batches, learns_from_batches

__all__ = ["Job", "go_on", "keep", "save", "set_up", "trained"]


@dataclass
class Job:
    """What the functions of the loop hand around.

    Parameters
    ----------
    run : what hooks see too
    options : of the run
    module : the model itself; `run.model` is Fabric's wrapper around it
    forward : what a step calls: the model itself where the wrapper would do nothing
    optimizer : Fabric's wrapper of an optimiser
    train_rows, steer_rows : on the device, where they fit
    steps : optimiser steps per epoch
    stopping : the best epoch so far
    frozen : parts of the model that were in eval mode when it came, and stay so
    weights : of model and loss, all that the optimiser moves
    device, kind : where the model is, and the precision of its weights
    shard : rank and number of processes
    weighing : how much a part of a batch counts
    normed : whether a batch norm learns from the rows
    log_shift : what resampled train rows move the logits by; None where they are as they were
    """

    run: Run
    options: TrainingOptions
    module: nn.Module
    forward: nn.Module
    optimizer: Any
    train_rows: Rows
    steer_rows: Rows
    steps: int
    stopping: Stopping
    frozen: list[nn.Module]
    weights: list[nn.Parameter]
    device: torch.device
    kind: torch.dtype | None
    shard: tuple[int, int]
    weighing: Weighing
    normed: bool
    log_shift: Tensor | None


def set_up(
    model: nn.Module,
    loss: nn.Module,
    train_rows: Rows,
    steer_rows: Rows,
    options: TrainingOptions,
    log_shift: Tensor | None = None,
) -> Job:
    """Put model, loss, optimiser and rows where the run runs."""
    normed, world = learns_from_batches(model), planned_world(options)
    check_batches(normed, train_rows, steer_rows, options, world)
    if world > 1 and any(True for _ in loss.parameters()):
        raise InputError(
            "a loss with weights of its own cannot be trained on several processes: devices=1."
        )
    fabric = make_fabric(options)
    loss.to(fabric.device)
    weighing = weighing_of(loss, options.accumulate * fabric.world_size)
    frozen = [part for part in model.modules() if model.training and not part.training]
    weights = [*model.parameters(), *loss.parameters()]
    in_fast_layout(model)
    fast = compiled(model, options, fabric.device)
    wrapped, optimizer = fabric.setup(fast, make_optimizer(weights, options))
    if fits(train_rows.nbytes + steer_rows.nbytes, fabric.device):
        train_rows, steer_rows = train_rows.to(fabric.device), steer_rows.to(fabric.device)
    return Job(
        run=Run(model=wrapped, loss=loss, fabric=fabric),
        options=options,
        module=model,
        forward=model if _wrapper_is_idle(fabric, options) else wrapped,
        optimizer=optimizer,
        train_rows=train_rows,
        steer_rows=steer_rows,
        steps=_steps(len(train_rows), options.batch_size, fabric.world_size),
        stopping=Stopping(options),
        frozen=frozen,
        weights=weights,
        device=fabric.device,
        kind=weight_type(model),
        shard=(fabric.global_rank, fabric.world_size),
        weighing=weighing,
        normed=normed,
        log_shift=log_shift,
    )


def _steps(rows: int, size: int, world: int) -> int:
    """Return the steps of an epoch: rows left over may have gone into the last whole batch."""
    return len(batch_sizes(rows, size, shuffled=True, world=world))


def _wrapper_is_idle(fabric: Any, options: TrainingOptions) -> bool:
    """Whether the wrapper has neither a precision to change nor processes to wait for.

    In "64-true" it hands logits on in 32 bits, on one process as on several.
    """
    return fabric.world_size == 1 and options.precision == "32-true" and not options.compile


def keep(job: Job, record: EpochRecord) -> None:
    """Note the epoch, and keep its weights if they are the best."""
    job.run.records.append(record)
    if job.stopping.note(record):
        state = job.module.state_dict()
        job.stopping.best_weights = {name: _copied(value) for name, value in state.items()}


def save(job: Job, hooks: Sequence[Hook], checkpoints: Checkpoints) -> None:
    """Save what is needed to go on after the epoch; the last one is saved in any case."""
    run, stopping = job.run, job.stopping
    wanted = checkpoints.folder is not None and (checkpoints.due or _is_over(job))
    if wanted and run.fabric.is_global_zero:
        assert stopping.best_epoch is not None
        state = {
            "epoch": run.epoch,
            "step": run.step,
            "stop": run.stop,
            "model": job.module.state_dict(),
            "loss": run.loss.state_dict(),
            "optimizer": job.optimizer.state_dict(),
            "precision": run.fabric.strategy.precision.state_dict(),
            "stopping": stopping.state(),
            "records": [one.to_dict() for one in run.records],
            "hooks": {name: dict(hook.state_dict()) for name, hook in _by_name(hooks).items()},
        }
        checkpoints.save(run.epoch, state, stopping.best_epoch, stopping.best_weights)
    run.fabric.barrier()


def _is_over(job: Job) -> bool:
    return job.run.stop or job.stopping.enough or job.run.epoch + 1 == job.options.epochs


def _copied(value: Any) -> Any:
    """Copy a tensor to the CPU, or whatever else a model keeps in its state."""
    if isinstance(value, Tensor):
        return value.detach().to("cpu", copy=True)
    return copy.deepcopy(value)


def go_on(job: Job, hooks: Sequence[Hook], checkpoints: Checkpoints) -> None:
    """Take up a run where its newest checkpoint left it.

    Hooks need not be those of the last start: each takes up what one of its kind left.
    """
    state = checkpoints.newest()
    if state is None:
        return
    run, stopping = job.run, job.stopping
    stopping.load(state["stopping"])
    assert stopping.best_epoch is not None  # the first epoch always counts as the best so far
    stopping.best_weights = checkpoints.best(stopping.best_epoch)
    job.module.load_state_dict(state["model"])
    run.loss.load_state_dict(state["loss"])
    job.optimizer.load_state_dict(state["optimizer"])
    lay_out_as_weights(job.optimizer)
    run.fabric.strategy.precision.load_state_dict(state["precision"])
    run.records = [EpochRecord.from_dict(one) for one in state["records"]]
    run.epoch, run.step = state["epoch"] + 1, state["step"]
    run.stop = bool(state.get("stop", False))
    kept = state.get("hooks", {})
    for name, hook in _by_name(hooks).items():
        if name in kept:
            hook.load_state_dict(kept[name])


def _by_name(hooks: Sequence[Hook]) -> dict[str, Hook]:
    """Return hooks by their class, and by their number among those of one class."""
    found: dict[str, Hook] = {}
    for hook in hooks:
        kind = type(hook).__qualname__
        found[f"{kind} {sum(type(one) is type(hook) for one in found.values())}"] = hook
    return found


def trained(job: Job) -> Trained:
    """Return the finished run, with model and loss on the CPU."""
    run, stopping = job.run, job.stopping
    assert stopping.best_epoch is not None
    why: Literal["patience", "hook", "epochs"] = "hook" if run.stop else "epochs"
    if stopping.enough:
        why = "patience"
    return Trained(
        model=job.module.cpu().eval(),
        loss=run.loss.cpu(),
        records=tuple(run.records),
        best_epoch=stopping.best_epoch,
        why=why,
    )
