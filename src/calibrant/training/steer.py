"""Score the steer split of a job."""

from __future__ import annotations

import warnings

from torch import Tensor, nn

from calibrant.errors import TrainingError
from calibrant.fitting.steer_figures import NOTHING_LEARNED, beats_frequencies
from calibrant.training.job import Job
from calibrant.training.scoring import score, share_buffers
from calibrant.training.split_checks import class_counts

_MAX_SCORED = 1024  # rows scored at a time, at most
_SCORED_FACTOR = 4  # scored rows per trained row: scoring needs no gradients


def score_steer(job: Job) -> tuple[Tensor, Tensor]:
    """Return logits and labels of this process's steer rows, corrected for resampling."""
    run = job.run
    share_buffers(job.module, job.shard[1])
    size = max(1, job.options.batch_size // job.options.accumulate)
    size = max(size, min(_SCORED_FACTOR * size, _MAX_SCORED))
    # The model itself, because its wrapper would wait for processes with more batches.
    with run.fabric.autocast():
        logits, labels = score(job.module, job.steer_rows, size, job.device, job.shard)
    if job.log_shift is not None:
        logits = logits - job.log_shift.to(logits)
    return logits, labels


def remove_loss_shift(loss: nn.Module, logits: Tensor) -> Tensor:
    """Subtract the shift of the logits caused by class weights or priors of the loss.

    Epochs are evaluated at the class frequencies of the data.
    """
    get_shift = getattr(loss, "log_shift", None)
    shift = get_shift() if callable(get_shift) else None
    return logits if shift is None else logits - shift.to(logits)


def diverged(job: Job, what: str) -> TrainingError:
    """Return the error of a run whose numbers are no longer finite."""
    return TrainingError(
        f"training diverged in epoch {job.run.epoch}: {what}; try a smaller learning_rate or "
        "clip=1.0; saved checkpoints are kept."
    )


def warn_if_nothing_learned(job: Job, n_classes: int) -> None:
    """Warn if no epoch was better than the class frequencies of the train rows.

    Epochs are compared after temperature scaling, so this is not over-confidence.
    """
    refinement = min(record.refinement for record in job.run.records)
    baseline = _loss_of_frequencies(job, n_classes)
    n = len(job.steer_rows)
    if beats_frequencies(refinement, baseline, n) or not job.run.fabric.is_global_zero:
        return
    warnings.warn(
        f"{NOTHING_LEARNED} that {n} steer rows show: their log "
        f"loss after temperature scaling is {refinement:.4g}, and that of the class frequencies "
        f"alone {baseline:.4g}; try another learning_rate, more epochs or a smaller network.",
        stacklevel=3,
    )


def _loss_of_frequencies(job: Job, n_classes: int) -> float:
    """Return the log loss of the steer split if every row gets the frequencies of the classes."""
    log_odds = (class_counts(job.train_rows, n_classes).double() + 1.0 / n_classes).log()
    if job.log_shift is not None:  # those before resampling
        log_odds -= job.log_shift
    steered = class_counts(job.steer_rows, n_classes).double()
    return float(-(steered / steered.sum()) @ log_odds.log_softmax(0))
