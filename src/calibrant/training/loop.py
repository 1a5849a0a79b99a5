"""The training loop, read top to bottom."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from calibrant.errors import TrainingError
from calibrant.files.lock import exclusive_folder
from calibrant.losses import as_loss
from calibrant.losses.function import check_value
from calibrant.losses.names import LossLike
from calibrant.training.batches import Rows
from calibrant.training.checkpoints import Checkpoints, fingerprint_of
from calibrant.training.hooks import Hook
from calibrant.training.job import Job, go_on, keep, save, set_up, trained
from calibrant.training.memory import naming_out_of_memory
from calibrant.training.optimisers import learning_rate_at, set_learning_rate
from calibrant.training.options import TrainingOptions
from calibrant.training.progress import ProgressBar
from calibrant.training.ranks import naming_lost_ranks
from calibrant.training.records import EpochRecord, Trained
from calibrant.training.scoring import gathered, moved, score, share_buffers
from calibrant.training.seeds import own_randomness, row_order, seed_epoch
from calibrant.training.speed import naming_failed_compilation, tuned_convolutions
from calibrant.training.split_checks import check_shift, check_splits, class_counts
from calibrant.training.steer_figures import steer_figures

__all__ = ["train"]

_SCORED = 1024  # rows scored at a time, at most: without gradients
_TIMES = 4  # as many fit as in training, at least


def train(
    model: nn.Module,
    train_rows: Rows,
    steer_rows: Rows,
    *,
    loss: LossLike = "ce",
    log_shift: Tensor | None = None,
    options: TrainingOptions | None = None,
    hooks: Sequence[Hook] = (),
    folder: str | Path | None = None,
    progress: bool = False,
) -> Trained:
    """Train a model on one split, steered by another.

    Each epoch takes one pass over the train split, then scores the steer split: its figures choose
    the epoch that is kept and end the run, and a steered loss (AdaFocal) learns from it. So steer
    rows are spent: fit calibrators and thresholds on others.

    With a folder, everything needed to go on is saved after every epoch, or less often where saving
    takes longer than a twentieth of the time; calling again with the same folder goes on there, and
    on a CPU ends with the same weights to the bit, however the run was stopped. Torch's random
    numbers are seeded for that; a model that draws from NumPy has to see to itself.

    Parameters
    ----------
    model : a Module with `model(*inputs)` giving (b, K) logits; it is trained in place. Parts that
        come in eval mode, such as a frozen batch norm, stay in it
    train_rows, steer_rows : `ArrayRows`, `TextRows` or anything else that deals out batches
    loss : a name like "adafocal" or "focal:gamma=3", a function of (logits, labels) or a Module,
        which is copied: what it learned is in the result's `loss`
    log_shift : (K,) what the class frequencies of the train rows move the logits by, where rows
        were resampled: `calibrant.data.resampled` tells it. It is taken off the logits of the
        steer split before anything looks at them, so that an epoch is judged by probabilities for
        the frequencies that the data have. The model is left as it learned: subtract it too
        wherever its logits are used. None where the train rows are as they were
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
    module = copy.deepcopy(as_loss(loss, class_counts=class_counts(train_rows, n_classes)))
    shift = check_shift(log_shift, n_classes)
    prints = {}
    if folder is not None:
        splits = {"train": train_rows, "steer": steer_rows}
        told = None if shift is None else shift.tolist()
        prints = {"log_shift": told, **fingerprint_of(options, model, module, splits)}
    checkpoints = Checkpoints(folder, prints)
    with ExitStack() as at_the_end:
        for hook in hooks:
            at_the_end.callback(hook.close)
        at_the_end.enter_context(own_randomness())
        at_the_end.enter_context(naming_out_of_memory(options.batch_size, options.accumulate))
        at_the_end.enter_context(naming_lost_ranks())
        at_the_end.enter_context(naming_failed_compilation())
        at_the_end.enter_context(tuned_convolutions(model))
        job = set_up(model, module, train_rows, steer_rows, options, shift)
        if checkpoints.folder is not None and job.run.fabric.is_global_zero:
            at_the_end.enter_context(exclusive_folder(checkpoints.folder, option="folder"))
        if progress:
            bar = ProgressBar(options.epochs, job.steps)
            at_the_end.callback(bar.close)
            hooks = (*hooks, bar)
        try:
            return _run(job, hooks, checkpoints)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(_interrupted(job, checkpoints)) from None


def _run(job: Job, hooks: Sequence[Hook], checkpoints: Checkpoints) -> Trained:
    """Run all epochs, then restore the best."""
    run = job.run
    go_on(job, hooks, checkpoints)
    for hook in hooks:
        hook.on_train_start(run)
    while run.epoch < job.options.epochs and not job.stopping.enough and not run.stop:
        started = time.perf_counter()
        _train_mode(job)
        for hook in hooks:
            hook.on_epoch_start(run)
        mean_loss = _train_epoch(job, hooks)
        record = _steer_epoch(job, hooks, mean_loss, started)
        keep(job, record)
        for hook in hooks:
            hook.on_epoch_end(run, record)
        save(job, hooks, checkpoints)
        run.epoch += 1
    job.module.load_state_dict(job.stopping.best_weights)
    for hook in hooks:
        hook.on_train_end(run)
    return trained(job)


def _train_mode(job: Job) -> None:
    job.run.model.train()
    for part in job.frozen:
        part.eval()


def _train_epoch(job: Job, hooks: Sequence[Hook]) -> float:
    """Take one pass over the train split and return the mean loss of its batches."""
    run, options = job.run, job.options
    seed_epoch(options.seed, run.epoch, job.shard[0])
    if callable(told := getattr(run.loss, "set_epoch", None)):
        told(run.epoch)
    watching = [hook for hook in hooks if type(hook).on_batch_end is not Hook.on_batch_end]
    every = getattr(run.loss, "update_every", None)
    losses: list[Tensor] = []
    order = row_order(options.seed, run.epoch)
    batches = job.train_rows.batches(options.batch_size, generator=order, shard=job.shard)
    for number, (_, inputs, labels) in enumerate(batches):
        done, step = run.epoch + number / job.steps, 1 / job.steps
        set_learning_rate(job.optimizer, learning_rate_at(options, done, step))
        logits, loss = _step(job, inputs, labels)
        losses.append(loss)
        run.step += 1
        for hook in watching:
            hook.on_batch_end(run, logits, labels)
        if every and run.step % every == 0:
            _steer_loss(job, *_score_steer(job, hooks))
    return _mean(job, losses)


def _step(job: Job, inputs: tuple[Tensor, ...], labels: Tensor) -> tuple[Tensor, Tensor]:
    """Take one optimiser step on a batch; return its logits and its loss, detached."""
    run, parts = job.run, _parts(job, inputs, labels)
    cut = len(parts) > 1 or job.shard[1] > 1
    whole = job.weighing.whole(labels.to(job.device), job.shard[1]) if cut else None
    found = []
    for place, (own, classes) in enumerate(parts):
        # Processes average their gradients, once the last part is in.
        with run.fabric.no_backward_sync(run.model, enabled=place < len(parts) - 1):
            found.append(_backward(job, own, classes, whole))
    if job.options.clip is not None:
        run.fabric.clip_gradients(
            run.model, job.optimizer, max_norm=job.options.clip, error_if_nonfinite=False
        )
    job.optimizer.step()
    for weight in job.weights:  # what zero_grad does, without its look at every option
        weight.grad = None
    if len(found) == 1:
        return found[0]
    logits, losses = zip(*found, strict=True)
    return torch.cat(logits), torch.stack(losses).sum()


def _parts(
    job: Job, inputs: tuple[Tensor, ...], labels: Tensor
) -> list[tuple[tuple[Tensor, ...], Tensor]]:
    """Cut a batch into the parts whose gradients are added up."""
    least = 2 if job.normed else 1  # batch norm cannot learn from one row
    many = min(job.options.accumulate, len(labels) // least)
    if many <= 1:
        return [(inputs, labels)]
    cut = [part.tensor_split(many) for part in (*inputs, labels)]
    return [(parts[:-1], parts[-1]) for parts in zip(*cut, strict=True)]


def _backward(
    job: Job, inputs: tuple[Tensor, ...], labels: Tensor, whole: Tensor | float | None
) -> tuple[Tensor, Tensor]:
    """Add the gradients of a part of a batch, which counts by its share of the whole mass."""
    run = job.run
    logits = job.forward(*(moved(part, job.device, job.kind) for part in inputs))
    labels = labels.to(job.device, non_blocking=True)
    loss = run.loss(logits, labels)
    check_value(loss, type(run.loss).__name__)
    if whole is not None:
        loss = (loss * job.weighing.factor(labels, whole, job.shard[1])).to(loss.dtype)
    run.fabric.backward(loss)
    # A compiled model writes its next logits over these.
    return logits.detach().clone() if job.options.compile else logits.detach(), loss.detach()


def _steer_epoch(job: Job, hooks: Sequence[Hook], mean_loss: float, started: float) -> EpochRecord:
    """Score the steer split, let a steered loss learn from it, and measure the epoch."""
    run = job.run
    logits, labels = _score_steer(job, hooks)
    figures = steer_figures(*gathered(_unshifted(run.loss, logits), labels))
    if not getattr(run.loss, "update_every", None):
        _steer_loss(job, logits, labels)
    return EpochRecord(
        epoch=run.epoch,
        loss=mean_loss,
        learning_rate=job.optimizer.param_groups[0]["lr"],
        seconds=time.perf_counter() - started,
        gammas=_gammas(run.loss),
        **asdict(figures),
    )


def _score_steer(job: Job, hooks: Sequence[Hook]) -> tuple[Tensor, Tensor]:
    """Return logits and labels of this process's part of the steer split, resampling undone."""
    run = job.run
    share_buffers(job.module, job.shard[1])
    size = max(1, job.options.batch_size // job.options.accumulate)
    size = max(size, min(_TIMES * size, _SCORED))
    # The model itself, not its wrapper: that would wait for processes with more batches.
    with run.fabric.autocast():
        logits, labels = score(job.module, job.steer_rows, size, job.device, job.shard)
    if not bool(logits.isfinite().all()):
        raise _diverged(job, "the logits of the steer split are not finite")
    if job.log_shift is not None:
        logits = logits - job.log_shift.to(logits)
    for hook in hooks:
        hook.on_steer(run, logits, labels)
    return logits, labels


def _unshifted(loss: nn.Module, logits: Tensor) -> Tensor:
    """Take off what class weights or priors in the loss move the logits by.

    An epoch is to be judged by probabilities for the frequencies that the data have.
    """
    told = getattr(loss, "log_shift", None)
    shift = told() if callable(told) else None
    return logits if shift is None else logits - shift.to(logits)


def _steer_loss(job: Job, logits: Tensor, labels: Tensor) -> None:
    """Let a steered loss learn from the steer split; it gathers over processes by itself."""
    loss: Any = job.run.loss
    if getattr(loss, "steered", False):
        loss.update(logits, labels)


def _mean(job: Job, losses: list[Tensor]) -> float:
    """Return the mean loss of an epoch's batches over all processes, or say that it diverged."""
    mean = job.run.fabric.all_reduce(torch.stack(losses).double().mean(), reduce_op="mean")
    if not math.isfinite(float(mean)):
        raise _diverged(job, f"its loss is {float(mean)}")
    return float(mean)


def _diverged(job: Job, what: str) -> TrainingError:
    return TrainingError(
        f"training diverged in epoch {job.run.epoch}: {what}; try a smaller learning_rate or "
        "clip=1.0; what earlier epochs saved is kept."
    )


def _gammas(loss: nn.Module) -> tuple[float, float] | None:
    """Return the smallest and the largest gamma of a loss that has some."""
    for part in loss.modules():
        if isinstance(found := getattr(part, "gammas", None), Tensor):
            return float(found.min()), float(found.max())
    return None


def _interrupted(job: Job, checkpoints: Checkpoints) -> str:
    where = f"training was interrupted in epoch {job.run.epoch}"
    if checkpoints.folder is None:
        return f"{where}; nothing was saved, as no folder was given."
    return f"{where}; call again with folder {str(checkpoints.folder)!r} to go on from there."
