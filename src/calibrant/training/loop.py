"""The training loop."""

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

from calibrant.files.lock import exclusive_folder
from calibrant.fitting.epoch_record import EpochRecord
from calibrant.fitting.steer_figures import steer_figures
from calibrant.losses import as_loss
from calibrant.losses.function import check_value
from calibrant.losses.names import LossLike
from calibrant.training.averaged import restore_best
from calibrant.training.batches import BatchRows
from calibrant.training.checkpoints import Checkpoints, fingerprint_run
from calibrant.training.hooks import Hook
from calibrant.training.job import (
    Job,
    build_result,
    record_epoch,
    resume_job,
    save_checkpoint,
    set_up_job,
    train_mode,
)
from calibrant.training.memory import explain_out_of_memory
from calibrant.training.optimisers import learning_rate_at, set_learning_rate
from calibrant.training.options import TrainingOptions
from calibrant.training.progress import ProgressBar
from calibrant.training.ranks import explain_lost_ranks
from calibrant.training.records import TrainingResult
from calibrant.training.scoring import gather_arrays, move_input
from calibrant.training.seeds import isolated_randomness, row_order, seed_epoch
from calibrant.training.speed import explain_failed_compilation, tuned_convolutions
from calibrant.training.split_checks import check_shift, check_splits, class_counts
from calibrant.training.steer import (
    diverged,
    remove_loss_shift,
    score_steer,
    warn_if_nothing_learned,
)


def train(
    model: nn.Module,
    train_rows: BatchRows,
    steer_rows: BatchRows,
    *,
    loss: LossLike = "ce",
    log_shift: Tensor | None = None,
    options: TrainingOptions | None = None,
    hooks: Sequence[Hook] = (),
    folder: str | Path | None = None,
    progress: bool = False,
) -> TrainingResult:
    """Train a model on one split, steered by another.

    Each epoch is one pass over the train split, followed by scoring the steer split, whose metrics
    choose the best epoch and stop the run, and which updates a steered loss (AdaFocal). The steer
    rows are used up by that: fit calibrators and thresholds on other rows.

    With a folder, a checkpoint is saved after every epoch, or less often if saving takes more than
    a twentieth of the time; calling again with the same folder resumes the run, and on a CPU ends
    with bit-identical weights, however the run was stopped. Torch's random numbers are seeded for
    that; NumPy's are not.

    Parameters
    ----------
    model : a Module with `model(*inputs)` giving (b, K) logits; it is trained in place. Parts in
        eval mode, such as a frozen batch norm, stay in it
    train_rows, steer_rows : `ArrayRows`, `TextRows` or another object with the same methods
    loss : a name like "adafocal" or "focal:gamma=3", a function of (logits, labels) or a Module,
        which is copied: the trained copy is the result's `loss`
    log_shift : (K,) shift of the logits if the train rows were resampled, from
        `calibrant.data.resampled`. It is subtracted from the logits of the steer split, so that
        epochs are evaluated at the class frequencies of the data. The model itself is not
        corrected: subtract the shift from its logits. None without resampling
    options : see `TrainingOptions`
    hooks : see `Hook`
    folder : folder for checkpoints; None for no checkpoints
    progress : whether to show a progress bar on stderr

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
        shifts = None if shift is None else shift.tolist()
        prints = {"log_shift": shifts, **fingerprint_run(options, model, module, splits)}
    checkpoints = Checkpoints(folder, prints)
    with ExitStack() as stack:
        for hook in hooks:
            stack.callback(hook.close)
        stack.enter_context(isolated_randomness())
        stack.enter_context(explain_out_of_memory(options.batch_size, options.accumulate))
        stack.enter_context(explain_lost_ranks())
        stack.enter_context(explain_failed_compilation())
        stack.enter_context(tuned_convolutions(model))
        job = set_up_job(model, module, train_rows, steer_rows, options, shift)
        if checkpoints.folder is not None and job.run.fabric.is_global_zero:
            stack.enter_context(exclusive_folder(checkpoints.folder, option="folder"))
        if progress:
            bar = ProgressBar(options.epochs, job.steps)
            stack.callback(bar.close)
            hooks = (*hooks, bar)
        try:
            result = _run(job, hooks, checkpoints)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(_interrupted(job, checkpoints)) from None
    warn_if_nothing_learned(job, n_classes)
    return result


def _run(job: Job, hooks: Sequence[Hook], checkpoints: Checkpoints) -> TrainingResult:
    """Run all epochs, then restore the best."""
    run = job.run
    resume_job(job, hooks, checkpoints)
    for hook in hooks:
        hook.on_train_start(run)
    while run.epoch < job.options.epochs and not job.stopping.enough and not run.stop:
        started = time.perf_counter()
        train_mode(job)
        for hook in hooks:
            hook.on_epoch_start(run)
        mean_loss = _train_epoch(job, hooks)
        record = _steer_epoch(job, hooks, mean_loss, started)
        record_epoch(job, record)
        for hook in hooks:
            hook.on_epoch_end(run, record)
        save_checkpoint(job, hooks, checkpoints)
        run.epoch += 1
    average = restore_best(job)
    for hook in hooks:
        hook.on_train_end(run)
    return build_result(job, average)


def _train_epoch(job: Job, hooks: Sequence[Hook]) -> float:
    """Take one pass over the train split and return the mean loss of its batches."""
    run, options = job.run, job.options
    seed_epoch(options.seed, run.epoch, job.shard[0])
    if callable(set_epoch := getattr(run.loss, "set_epoch", None)):
        set_epoch(run.epoch)
    watching = [hook for hook in hooks if type(hook).on_batch_end is not Hook.on_batch_end]
    every = getattr(run.loss, "update_every", None)
    losses: list[Tensor] = []
    order = row_order(options.seed, run.epoch)
    batches = job.train_rows.batches(options.batch_size, generator=order, shard=job.shard)
    for number, (_, inputs, labels) in enumerate(batches):
        done, step = run.epoch + number / job.steps, 1 / job.steps
        set_learning_rate(job.optimizer, learning_rate_at(options, done, step))
        logits, loss = _take_step(job, inputs, labels)
        losses.append(loss)
        run.step += 1
        if job.average is not None:
            job.average.update(run.step)
        for hook in watching:
            hook.on_batch_end(run, logits, labels)
        if every and run.step % every == 0:
            _steer_loss(job, *_score_steer(job, hooks))
    return _mean(job, losses)


def _take_step(job: Job, inputs: tuple[Tensor, ...], labels: Tensor) -> tuple[Tensor, Tensor]:
    """Take one optimiser step on a batch; return its logits and its loss, detached."""
    run, parts = job.run, _split_batch(job, inputs, labels)
    cut = len(parts) > 1 or job.shard[1] > 1
    whole = job.weighing.whole(labels.to(job.device), job.shard[1]) if cut else None
    results = []
    for i, (part_inputs, part_labels) in enumerate(parts):
        # Processes average their gradients after the last part.
        with run.fabric.no_backward_sync(run.model, enabled=i < len(parts) - 1):
            results.append(_backward(job, part_inputs, part_labels, whole))
    if job.options.clip is not None:
        run.fabric.clip_gradients(
            run.model, job.optimizer, max_norm=job.options.clip, error_if_nonfinite=False
        )
    job.optimizer.step()
    for weight in job.weights:  # zero_grad without its overhead
        weight.grad = None
    if len(results) == 1:
        return results[0]
    logits, losses = zip(*results, strict=True)
    return torch.cat(logits), torch.stack(losses).sum()


def _split_batch(
    job: Job, inputs: tuple[Tensor, ...], labels: Tensor
) -> list[tuple[tuple[Tensor, ...], Tensor]]:
    """Split a batch into the parts whose gradients are summed."""
    least = 2 if job.normed else 1  # batch norm cannot train on one row
    many = min(job.options.accumulate, len(labels) // least)
    if many <= 1:
        return [(inputs, labels)]
    cut = [part.tensor_split(many) for part in (*inputs, labels)]
    return [(parts[:-1], parts[-1]) for parts in zip(*cut, strict=True)]


def _backward(
    job: Job, inputs: tuple[Tensor, ...], labels: Tensor, whole: Tensor | float | None
) -> tuple[Tensor, Tensor]:
    """Add the gradients of a part of a batch, weighted by its share of the total mass."""
    run = job.run
    logits = job.forward(*(move_input(part, job.device, job.kind) for part in inputs))
    labels = labels.to(job.device, non_blocking=True)
    loss = run.loss(logits, labels)
    check_value(loss, type(run.loss).__name__)
    if whole is not None:
        loss = (loss * job.weighing.factor(labels, whole, job.shard[1])).to(loss.dtype)
    run.fabric.backward(loss)
    # A compiled model overwrites its logits in the next step.
    return logits.detach().clone() if job.options.compile else logits.detach(), loss.detach()


def _steer_epoch(job: Job, hooks: Sequence[Hook], mean_loss: float, started: float) -> EpochRecord:
    """Score the steer split, update a steered loss with it, and evaluate the epoch."""
    run = job.run
    logits, labels = _score_steer(job, hooks)
    figures = steer_figures(*gather_arrays(remove_loss_shift(run.loss, logits), labels))
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
    """Score this process's steer rows, and show the logits to the hooks."""
    logits, labels = score_steer(job)
    if not bool(logits.isfinite().all()):
        raise diverged(job, "the logits of the steer split are not finite")
    for hook in hooks:
        hook.on_steer(job.run, logits, labels)
    return logits, labels


def _steer_loss(job: Job, logits: Tensor, labels: Tensor) -> None:
    """Update a steered loss with the steer split; it gathers over processes itself."""
    loss: Any = job.run.loss
    if getattr(loss, "steered", False):
        loss.update(logits, labels)


def _mean(job: Job, losses: list[Tensor]) -> float:
    """Return the mean loss of an epoch over all processes; raise `TrainingError` if not finite."""
    mean = job.run.fabric.all_reduce(torch.stack(losses).double().mean(), reduce_op="mean")
    if not math.isfinite(float(mean)):
        raise diverged(job, f"its loss is {float(mean)}")
    return float(mean)


def _gammas(loss: nn.Module) -> tuple[float, float] | None:
    """Return the smallest and the largest gamma of a loss that has gammas."""
    for part in loss.modules():
        if isinstance(gammas := getattr(part, "gammas", None), Tensor):
            return float(gammas.min()), float(gammas.max())
    return None


def _interrupted(job: Job, checkpoints: Checkpoints) -> str:
    where = f"training was interrupted in epoch {job.run.epoch}"
    if checkpoints.folder is None:
        return f"{where}; no checkpoint was saved because no folder was given."
    return f"{where}; call again with folder {str(checkpoints.folder)!r} to resume."
