"""The training loop, read top to bottom."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from calibrant.errors import TrainingError
from calibrant.losses import as_loss
from calibrant.losses.names import LossLike
from calibrant.training.batches import Rows
from calibrant.training.checkpoints import Checkpoints, fingerprint_of
from calibrant.training.devices import make_fabric
from calibrant.training.hooks import Hook, Run
from calibrant.training.memory import fits, naming_out_of_memory
from calibrant.training.optimisers import learning_rate_at, make_optimizer, set_learning_rate
from calibrant.training.options import TrainingOptions
from calibrant.training.progress import ProgressBar
from calibrant.training.records import EpochRecord, Trained
from calibrant.training.scoring import gathered, score, share_buffers
from calibrant.training.seeds import row_order, seed_epoch
from calibrant.training.split_checks import check_splits, class_counts
from calibrant.training.steering import steer_figures
from calibrant.training.stopping import Stopping

__all__ = ["train"]

_SCORED = (
    1024  # rows scored at a time, at least: no gradients are kept, so more fit than in training
)


def train(
    model: nn.Module,
    train_rows: Rows,
    steer_rows: Rows,
    *,
    loss: LossLike = "ce",
    options: TrainingOptions | None = None,
    hooks: Sequence[Hook] = (),
    folder: str | Path | None = None,
    progress: bool = False,
) -> Trained:
    """Train a model on one split, steered by another.

    Each epoch takes one pass over the train split, then scores the steer split: its figures choose
    the epoch that is kept and end the run, and a steered loss (AdaFocal) learns from it. So steer
    rows are spent: fit calibrators and thresholds on others.

    With a folder, everything needed to go on is saved after every epoch; calling again with the
    same folder goes on there, and on a CPU ends with the same weights to the bit, however the run
    was stopped.

    Parameters
    ----------
    model : a Module with `model(*inputs)` giving (b, K) logits; it is trained in place
    train_rows, steer_rows : `ArrayRows`, `TextRows` or anything else that deals out batches
    loss : a name like "adafocal" or "focal:gamma=3", a function of (logits, labels) or a Module
    options : see `TrainingOptions`
    hooks : see `Hook`
    folder : where checkpoints go; None to keep none
    progress : whether to draw a bar on stderr

    Examples
    --------
    >>> import torch
    >>> from calibrant.training import ArrayRows, TrainingOptions, train
    >>> draw = torch.Generator().manual_seed(0)
    >>> features = torch.randn(300, 2, generator=draw)
    >>> rows = ArrayRows(features, (features[:, 0] > 0).long())
    >>> options = TrainingOptions(epochs=20, learning_rate=0.05)
    >>> trained = train(torch.nn.Linear(2, 2), rows, rows, loss="focal:gamma=1", options=options)
    >>> trained.records[trained.best_epoch].accuracy > 0.95
    True
    """
    options = TrainingOptions() if options is None else options
    n_classes = check_splits(model, train_rows, steer_rows)
    module = as_loss(loss, class_counts=class_counts(train_rows, n_classes))
    prints = {}
    if folder is not None:
        splits = {"train": train_rows, "steer": steer_rows}
        prints = fingerprint_of(options, model, module, splits)
    checkpoints = Checkpoints(folder, prints)
    with _own_randomness(), naming_out_of_memory(options.batch_size):
        job = _set_up(model, module, train_rows, steer_rows, options)
        if progress:
            hooks = (*hooks, ProgressBar(options.epochs, job.steps))
        try:
            return _run(job, hooks, checkpoints)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(_interrupted(job, checkpoints)) from None
        finally:
            for hook in hooks:
                hook.close()


@dataclass
class _Job:
    """The parts of a run that the functions below hand around."""

    run: Run
    options: TrainingOptions
    optimizer: Any  # Fabric's wrapper of an optimiser
    train_rows: Rows
    steer_rows: Rows
    steps: int
    stopping: Stopping

    @property
    def shard(self) -> tuple[int, int]:
        return self.run.fabric.global_rank, self.run.fabric.world_size


def _set_up(
    model: nn.Module,
    loss: nn.Module,
    train_rows: Rows,
    steer_rows: Rows,
    options: TrainingOptions,
) -> _Job:
    """Put model, loss, optimiser and rows where the run runs."""
    fabric = make_fabric(options)
    device = fabric.device
    loss.to(device)
    parameters = [*model.parameters(), *loss.parameters()]
    wrapped, optimizer = fabric.setup(model, make_optimizer(parameters, options))
    if fits(train_rows.nbytes + steer_rows.nbytes, device):
        train_rows, steer_rows = train_rows.to(device), steer_rows.to(device)
    return _Job(
        run=Run(model=wrapped, loss=loss, fabric=fabric),
        options=options,
        optimizer=optimizer,
        train_rows=train_rows,
        steer_rows=steer_rows,
        steps=math.ceil(len(train_rows) / options.batch_size),
        stopping=Stopping(options),
    )


def _run(job: _Job, hooks: Sequence[Hook], checkpoints: Checkpoints) -> Trained:
    """Run all epochs, then restore the best."""
    run = job.run
    _go_on(job, checkpoints)
    for hook in hooks:
        hook.on_train_start(run)
    while run.epoch < job.options.epochs and not job.stopping.enough:
        started = time.perf_counter()
        for hook in hooks:
            hook.on_epoch_start(run)
        mean_loss = _train_epoch(job, hooks)
        record = _steer_epoch(job, hooks, mean_loss, started)
        _keep(job, record, checkpoints)
        for hook in hooks:
            hook.on_epoch_end(run, record)
        run.epoch += 1
    run.model.load_state_dict(job.stopping.best_weights)
    for hook in hooks:
        hook.on_train_end(run)
    return _trained(job)


def _train_epoch(job: _Job, hooks: Sequence[Hook]) -> float:
    """Take one pass over the train split and return the mean loss of its batches."""
    run, options = job.run, job.options
    seed_epoch(options.seed, run.epoch, job.shard[0])
    if callable(told := getattr(run.loss, "set_epoch", None)):
        told(run.epoch)
    run.model.train()
    watching = [hook for hook in hooks if type(hook).on_batch_end is not Hook.on_batch_end]
    every = getattr(run.loss, "update_every", None)
    losses: list[Tensor] = []
    order = row_order(options.seed, run.epoch)
    batches = job.train_rows.batches(options.batch_size, generator=order, shard=job.shard)
    for number, (_, inputs, labels) in enumerate(batches):
        set_learning_rate(job.optimizer, learning_rate_at(options, run.epoch + number / job.steps))
        logits, loss = _step(job, inputs, labels)
        losses.append(loss)
        run.step += 1
        for hook in watching:
            hook.on_batch_end(run, logits, labels)
        if every and run.step % every == 0:
            _steer_loss(job, *_score_steer(job, hooks))
    return _mean(job, losses)


def _step(job: _Job, inputs: tuple[Tensor, ...], labels: Tensor) -> tuple[Tensor, Tensor]:
    """Take one optimiser step on a batch; return its logits and its loss, detached."""
    run, device = job.run, job.run.fabric.device
    logits = run.model(*(part.to(device, non_blocking=True) for part in inputs))
    loss = run.loss(logits, labels.to(device, non_blocking=True))
    run.fabric.backward(loss)
    if job.options.clip is not None:
        run.fabric.clip_gradients(
            run.model, job.optimizer, max_norm=job.options.clip, error_if_nonfinite=False
        )
    job.optimizer.step()
    job.optimizer.zero_grad()
    return logits.detach(), loss.detach()


def _steer_epoch(job: _Job, hooks: Sequence[Hook], mean_loss: float, started: float) -> EpochRecord:
    """Score the steer split, let a steered loss learn from it, and measure the epoch."""
    run = job.run
    logits, labels = _score_steer(job, hooks)
    figures = steer_figures(*gathered(_unshifted(run.loss, logits), labels))
    _steer_loss(job, logits, labels)
    return EpochRecord(
        epoch=run.epoch,
        loss=mean_loss,
        learning_rate=job.optimizer.param_groups[0]["lr"],
        seconds=time.perf_counter() - started,
        gammas=_gammas(run.loss),
        **asdict(figures),
    )


def _score_steer(job: _Job, hooks: Sequence[Hook]) -> tuple[Tensor, Tensor]:
    """Return logits and labels of this process's part of the steer split."""
    run = job.run
    share_buffers(run.model, run.fabric.world_size)
    size = max(job.options.batch_size, _SCORED)
    logits, labels = score(run.model, job.steer_rows, size, run.fabric.device, job.shard)
    for hook in hooks:
        hook.on_steer(run, logits, labels)
    return logits, labels


def _unshifted(loss: nn.Module, logits: Tensor) -> Tensor:
    """Take off what class weights or priors in the loss move the logits by.

    An epoch is to be judged by probabilities for the frequencies that the data have.
    """
    told = getattr(loss, "log_shift", None)
    shift = told() if callable(told) else None
    return logits if shift is None or not len(logits) else logits - shift.to(logits)


def _steer_loss(job: _Job, logits: Tensor, labels: Tensor) -> None:
    """Let a steered loss learn from the steer split; it gathers over processes by itself."""
    loss: Any = job.run.loss
    if getattr(loss, "steered", False):
        loss.update(logits, labels)


def _keep(job: _Job, record: EpochRecord, checkpoints: Checkpoints) -> None:
    """Note the epoch, keep its weights if they are the best, and save what is needed to go on."""
    run, stopping = job.run, job.stopping
    run.records.append(record)
    first = run.fabric.is_global_zero
    if stopping.note(record):
        weights = run.model.state_dict()
        stopping.best_weights = {name: value.cpu().clone() for name, value in weights.items()}
        if first:
            checkpoints.save_best(stopping.best_weights)
    if first and checkpoints.folder is not None:
        state = {
            "epoch": run.epoch,
            "step": run.step,
            "model": run.model.state_dict(),
            "loss": run.loss.state_dict(),
            "optimizer": job.optimizer.state_dict(),
            "precision": run.fabric.strategy.precision.state_dict(),
            "stopping": stopping.state(),
            "records": [one.to_dict() for one in run.records],
        }
        checkpoints.save(run.epoch, state)
    run.fabric.barrier()


def _go_on(job: _Job, checkpoints: Checkpoints) -> None:
    """Take up a run where its newest checkpoint left it."""
    state = checkpoints.newest()
    if state is None:
        return
    run = job.run
    run.model.load_state_dict(state["model"])
    run.loss.load_state_dict(state["loss"])
    job.optimizer.load_state_dict(state["optimizer"])
    run.fabric.strategy.precision.load_state_dict(state["precision"])
    job.stopping.load(state["stopping"])
    job.stopping.best_weights = checkpoints.best()
    run.records = [EpochRecord.from_dict(one) for one in state["records"]]
    run.epoch, run.step = state["epoch"] + 1, state["step"]


def _trained(job: _Job) -> Trained:
    run, best = job.run, job.stopping.best_epoch
    assert best is not None  # the first epoch always counts as the best so far
    model: Any = run.model.module  # out of Fabric's wrapper
    return Trained(
        model=model.cpu().eval(),
        loss=run.loss.cpu(),
        records=tuple(run.records),
        best_epoch=best,
        why="patience" if job.stopping.enough else "epochs",
    )


def _mean(job: _Job, losses: list[Tensor]) -> float:
    """Return the mean loss of an epoch's batches, or say that the run has diverged."""
    mean = float(torch.stack(losses).double().mean())
    if not math.isfinite(mean):
        raise TrainingError(
            f"training diverged in epoch {job.run.epoch}: its loss is {mean}; try a smaller "
            "learning_rate or clip=1.0; what earlier epochs saved is kept."
        )
    return mean


def _gammas(loss: nn.Module) -> tuple[float, float] | None:
    """Return the smallest and the largest gamma of a loss that has some."""
    for part in loss.modules():
        if isinstance(found := getattr(part, "gammas", None), Tensor):
            return float(found.min()), float(found.max())
    return None


def _interrupted(job: _Job, checkpoints: Checkpoints) -> str:
    where = f"training was interrupted in epoch {job.run.epoch}"
    if checkpoints.folder is None:
        return f"{where}; nothing was saved, as no folder was given."
    return f"{where}; call again with folder {str(checkpoints.folder)!r} to go on from there."


@contextlib.contextmanager
def _own_randomness() -> Iterator[None]:
    """Leave the caller's random numbers as they were."""
    devices = range(torch.cuda.device_count()) if torch.cuda.is_available() else ()
    with torch.random.fork_rng(devices=devices):
        yield
