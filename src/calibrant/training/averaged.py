"""Choose between the weights of the best epoch and their average over the run."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from calibrant.fitting.steer_figures import PairedFigures, SteerFigure, compare_steer
from calibrant.training.job import Job, copy_weights, train_mode
from calibrant.training.records import AverageRecord
from calibrant.training.scoring import gather_arrays, move_input
from calibrant.training.seeds import row_order, seed_epoch
from calibrant.training.steer import remove_loss_shift, score_steer
from calibrant.training.weight_average import estimate_statistics, trained_norms

_ROWS = 10_000  # train rows that batch norm statistics are taken from
_CLEARLY = 1.645  # standard errors


def restore_best(job: Job) -> AverageRecord | None:
    """Give the model its final weights: their average if it is better, else the best epoch's.

    Both are scored on the steer split. No number is drawn that a further epoch would draw.
    """
    best, average = job.stopping.best_weights, job.average
    if average is None:
        job.module.load_state_dict(best)
        return None
    average.copy_to_model()
    _renew_statistics(job)
    averaged, (averaged_logits, labels) = copy_weights(job.module), _steer_logits(job)
    job.module.load_state_dict(best)
    logits, _ = _steer_logits(job)
    by = job.options.choose_by
    figure: SteerFigure = "refinement" if by == "last" else by
    if not np.isfinite(averaged_logits).all():  # never seen, but a run of days must not end so
        figures = compare_steer(logits, logits, labels, figure)
        return AverageRecord(False, average.decay, figure, figures.first, math.inf, math.inf)
    figures = compare_steer(logits, averaged_logits, labels, figure)
    taken = by == "last" or _is_better(figures, figure, auto=job.options.average == "auto")
    if taken:
        job.module.load_state_dict(averaged)
    return AverageRecord(taken, average.decay, figure, figures.first, figures.second, figures.error)


def _is_better(figures: PairedFigures, figure: SteerFigure, *, auto: bool) -> bool:
    """Whether the average is better; with "auto" by more than noise."""
    gain = figures.first - figures.second
    gain = -gain if figure == "f1" else gain
    return gain > (_CLEARLY * figures.error if auto else 0.0)


def _steer_logits(job: Job) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return logits and labels of the steer rows of all processes."""
    logits, labels = score_steer(job)
    return gather_arrays(remove_loss_shift(job.run.loss, logits), labels)


def _renew_statistics(job: Job) -> None:
    """Take the batch norm statistics of the current weights on train rows.

    The processes of a run take them on their own rows, and average them.
    """
    train_mode(job)
    norms = trained_norms(job.module)
    if not norms:
        return
    seed_epoch(job.options.seed, job.run.epoch, job.shard[0])
    with job.run.fabric.autocast():
        estimate_statistics(job.module, _train_batches(job))
    for norm in norms:
        for buffer in (norm.running_mean, norm.running_var):
            assert buffer is not None
            buffer.copy_(job.run.fabric.all_reduce(buffer, reduce_op="mean"))


def _train_batches(job: Job) -> Iterator[tuple[Tensor, ...]]:
    """Yield the inputs of batches as they are in training, until there are enough rows."""
    size = max(job.options.batch_size // job.options.accumulate, 2 * job.shard[1])
    order = row_order(job.options.seed, job.run.epoch)
    seen = 0
    for _, inputs, labels in job.train_rows.batches(size, generator=order, shard=job.shard):
        yield tuple(move_input(part, job.device, job.kind) for part in inputs)
        seen += len(labels) * job.shard[1]
        if seen >= _ROWS:
            return
