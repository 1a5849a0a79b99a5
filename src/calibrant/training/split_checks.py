"""Checks of model and splits before training."""

from __future__ import annotations

import warnings

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from calibrant.errors import InputError
from calibrant.losses.evaluating import eval_mode
from calibrant.training.batches import BatchRows
from calibrant.training.options import TrainingOptions
from calibrant.training.scoring import move_input, weight_type

_MIN_STEER_ROWS = 2  # rows that a temperature can be fitted to


def check_splits(model: nn.Module, train_rows: BatchRows, steer_rows: BatchRows) -> int:
    """Check rows and labels of both splits, and return the model's number of classes.

    Labels are checked here once: on a GPU a label out of range would abort the process.
    """
    if not any(part.requires_grad for part in model.parameters()):
        raise InputError("the model has no weights to train: leave some of them unfrozen.")
    for name, rows in (("train", train_rows), ("steer", steer_rows)):
        if not len(rows):
            raise InputError(f"the {name} split is empty: give it at least one row of every class.")
    if len(steer_rows) < _MIN_STEER_ROWS:
        raise InputError(
            f"the steer split must hold at least {_MIN_STEER_ROWS} rows to be evaluated, "
            f"got {len(steer_rows)}: give it more, ideally some of every class."
        )
    k = _n_classes(model, train_rows)
    for name, rows in (("train", train_rows), ("steer", steer_rows)):
        _check_labels(rows.labels, k, name)
    absent = (class_counts(steer_rows, k) == 0).nonzero().flatten().tolist()
    if absent:
        warnings.warn(
            f"the steer split has no rows of {len(absent)} of {k} classes (the first is "
            f"{absent[0]}), so its metrics do not cover them: draw it stratified.",
            stacklevel=4,
        )
    return k


def learns_from_batches(model: nn.Module) -> bool:
    """Whether the model has a trainable batch norm, which needs two rows at a time."""
    return any(isinstance(part, _BatchNorm) and part.training for part in model.modules())


def check_batches(
    normed: bool, train_rows: BatchRows, steer_rows: BatchRows, options: TrainingOptions, world: int
) -> None:
    """Check that every part of a batch has rows, or two rows with batch norm."""
    parts = world * options.accumulate
    least = 2 * parts if normed else parts
    of_all = "" if world == 1 else f" on {world} processes"
    in_parts = "" if options.accumulate == 1 else f" with accumulate={options.accumulate}"
    both = f"{of_all}{in_parts}"
    why = " with batch norm, which cannot train on one row" if normed else ""
    size = options.batch_size
    for name, value in (("batch_size", size), ("the number of train rows", len(train_rows))):
        if value < least:
            raise InputError(f"{name} must be at least {least}{both}{why}, got {value}.")
    if len(steer_rows) < world:
        raise InputError(f"the steer split must hold at least {world} rows{of_all}.")


def check_shift(log_shift: Tensor | None, n_classes: int) -> Tensor | None:
    """Return the shift caused by resampling; it must be one finite number per class."""
    if log_shift is None:
        return None
    try:
        shift = torch.as_tensor(log_shift, dtype=torch.float64, device="cpu")
    except (TypeError, ValueError, RuntimeError):
        shift = torch.empty(0)
    if shift.shape != (n_classes,) or not bool(shift.isfinite().all()):
        raise InputError(
            f"log_shift must hold one finite number for each of the {n_classes} classes, got "
            f"{log_shift!r:.200}: calibrant.data.resampled returns it."
        )
    return shift


def class_counts(rows: BatchRows, n_classes: int) -> Tensor:
    """Count the rows of each class."""
    return torch.bincount(rows.labels.cpu(), minlength=n_classes)


def _n_classes(model: nn.Module, rows: BatchRows) -> int:
    """Return the number of logits that the model gives for the first rows."""
    device, kind = next(model.parameters()).device, weight_type(model)
    batch = next(iter(rows.batches(2)))
    with eval_mode(model), torch.no_grad():
        logits = model(*(move_input(part, device, kind) for part in batch.inputs))
    if logits.ndim != 2 or logits.shape[1] < 2:
        raise InputError(
            "the model must give (rows, K) logits, one column for each of K > 1 classes, "
            f"got shape {tuple(logits.shape)}."
        )
    return int(logits.shape[1])


def _check_labels(labels: Tensor, k: int, name: str) -> None:
    low, high = int(labels.min()), int(labels.max())
    if low < 0 or high >= k:
        raise InputError(
            f"labels of the {name} split must be in 0..{k - 1} because the model gives {k} logits, "
            f"got {low if low < 0 else high}."
        )
