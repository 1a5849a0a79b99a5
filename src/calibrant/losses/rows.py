"""Validated rows of a batch: flattened, in full precision, with ignored rows masked."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from calibrant.errors import InputError

Reduction = Literal["mean", "sum", "none"]
IGNORE = -100  # torch's own default


@dataclass(frozen=True)
class LossRows:
    """A batch with one row per label."""

    logits: Tensor  # (n, K) in float32 or float64, 0 where the row is ignored
    labels: Tensor | None  # (n,) classes, 0 where the row is ignored; None for soft labels
    shares: Tensor | None  # (n, K) class probabilities; None for hard labels
    mask: Tensor | None  # (n,) False for ignored rows; None if no row is ignored
    shape: torch.Size  # original shape of the labels, for `reduction="none"`

    def require_classes(self, loss: str) -> Tensor:
        """Return the classes; refuse soft labels on behalf of `loss`."""
        if self.labels is None:
            raise InputError(
                f"{loss} needs one class per row and cannot take shares of classes: "
                f"pass whole numbers of shape {tuple(self.shape)}."
            )
        return self.labels

    @property
    def is_unmasked(self) -> bool:
        """Whether there are rows, all with hard labels and none ignored."""
        return self.labels is not None and self.mask is None and len(self.labels) > 0

    def one_hot(self) -> Tensor:
        """Return the labels as (n, K) class probabilities."""
        if self.shares is not None:
            return self.shares
        assert self.labels is not None
        zeros = torch.zeros_like(self.logits)
        return zeros.scatter_(-1, self.labels.unsqueeze(-1), 1.0)

    def drop_ignored(self) -> LossRows:
        """Drop the ignored rows, for losses of a whole batch."""
        if self.mask is None:
            return self
        labels = None if self.labels is None else self.labels[self.mask]
        shares = None if self.shares is None else self.shares[self.mask]
        return LossRows(self.logits[self.mask], labels, shares, None, self.shape)


def as_rows(logits: Tensor, labels: Tensor, *, ignore_index: int = IGNORE) -> LossRows:
    """Validate and flatten a batch: (n, K, ...) logits, (n, ...) classes or (n, K, ...) shares.

    Values (labels out of range) are checked on the CPU only: on a GPU each check would synchronise,
    so the training loop checks its labels once beforehand.
    """
    check_ignore(ignore_index)
    _check_tensors(logits, labels)
    soft = labels.is_floating_point()
    _check_shapes(logits, labels, soft)
    k = logits.shape[1]
    flat = _flat(logits)
    if flat.dtype in (torch.float16, torch.bfloat16):
        flat = flat.float()
    if soft:
        shares = _flat(labels).to(flat.dtype)
        _check_shares(shares, torch.finfo(labels.dtype).eps)
        return LossRows(flat, None, shares, None, labels.shape[:1] + labels.shape[2:])
    classes = labels.reshape(-1).long()
    if _can_inspect(classes) and _all_count(classes, ignore_index, k):
        return LossRows(flat, classes, None, None, labels.shape)
    mask = classes != ignore_index
    # Infinity or NaN in an ignored row must reach neither sums nor gradients.
    flat = flat.masked_fill(~mask.unsqueeze(-1), 0.0)
    return LossRows(flat, classes.where(mask, 0), None, mask, labels.shape)


def as_class_weight(weight: Any, *, like: Tensor | None = None) -> Tensor:
    """Validate class weights; they get the dtype and device of `like`."""
    dtype, device = (torch.float32, None) if like is None else (like.dtype, like.device)
    try:
        values = torch.as_tensor(weight, dtype=dtype, device=device)
    except (TypeError, ValueError, RuntimeError) as error:
        raise _weight_error(weight) from error
    if values.ndim != 1:
        raise _weight_error(weight)
    if _can_inspect(values) and not bool((values.isfinite() & (values >= 0)).all()):
        raise _weight_error(weight)
    return values


def _weight_error(weight: Any) -> InputError:
    shown = weight.tolist() if isinstance(weight, Tensor) and weight.numel() < 20 else weight
    return InputError(
        f"weight must be one finite number of at least 0 per class, got {shown!r:.200}."
    )


def as_weight(weight: Any, rows: LossRows) -> Tensor | None:
    """Return the weight of each row, 0 if ignored; None if all are 1."""
    if weight is None:
        return None if rows.mask is None else rows.mask.to(rows.logits.dtype)
    of_classes = _class_weight(weight, rows)
    if rows.labels is not None:
        per_row = of_classes[rows.labels]
    else:
        per_row = (rows.one_hot() * of_classes).sum(-1)
    return per_row if rows.mask is None else per_row.where(rows.mask, 0.0)


def _class_weight(weight: Any, rows: LossRows) -> Tensor:
    values = as_class_weight(weight, like=rows.logits)
    k = rows.logits.shape[1]
    if values.shape != (k,):
        raise InputError(
            f"weight must hold one number per class, ({k},) for these logits, "
            f"got shape {tuple(values.shape)}."
        )
    return values


def check_reduction(reduction: str) -> None:
    """Refuse an unknown reduction."""
    if reduction not in get_args(Reduction):
        raise InputError(f"reduction must be 'mean', 'sum' or 'none', got {reduction!r}.")


def check_ignore(ignore_index: int) -> None:
    """Refuse an ignore_index that is not a whole number."""
    if not isinstance(ignore_index, Integral) or isinstance(ignore_index, bool):
        raise InputError(f"ignore_index must be a whole number, got {ignore_index!r}.")


def reduce_values(values: Tensor, rows: LossRows, *, weight: Any, reduction: str) -> Tensor:
    """Weight the losses of the rows, drop ignored rows, and reduce.

    `values` is (n,), or (n, K) for soft labels: then row i is the sum of
    share x weight x value over its classes. The mean divides by the sum of the weights, as torch's
    cross-entropy does for whole labels; a batch without weight (all ignored) gives 0 with no
    gradient instead of torch's NaN.
    """
    check_reduction(reduction)
    per_row = as_weight(weight, rows)
    if values.ndim == 2:
        of_classes = 1.0 if weight is None else _class_weight(weight, rows)
        weighted = (values * rows.one_hot() * of_classes).sum(-1)
        weighted = weighted if rows.mask is None else weighted.where(rows.mask, 0.0)
    else:
        weighted = values if per_row is None else values * per_row
    total = weighted.sum()
    if not is_finite(total):
        check_finite(weighted, rows)
    if reduction == "none":
        return weighted.reshape(rows.shape)
    if reduction == "sum":
        return total
    if per_row is None:
        return total / max(len(values), 1)
    mass = per_row.sum()
    return total / mass.where(mass > 0, 1.0)


def is_finite(total: Tensor) -> bool:
    """Whether a number is finite; True if the check would synchronise a GPU."""
    return not _can_inspect(total) or math.isfinite(total.detach())


def check_finite(values: Tensor, rows: LossRows) -> None:
    """Raise an error for the first row with a non-finite value; on the CPU only."""
    if not _can_inspect(values):
        return
    bad = ~values.detach().isfinite()
    if bool(bad.any()):
        row = int(bad.nonzero()[0, 0])
        logits = rows.logits.detach()[row]
        culprit = logits[~logits.isfinite()]
        what = f"hold {float(culprit[0])}" if len(culprit) else "are too large"
        raise InputError(
            f"logits must be finite numbers, but those of row {row} {what}: "
            "the model has diverged, try a smaller learning rate or gradient clipping."
        )


def _can_inspect(values: Tensor) -> bool:
    """Whether reading values neither synchronises a GPU nor breaks a compiled graph."""
    return values.device.type == "cpu" and not torch.compiler.is_compiling()


def _flat(values: Tensor) -> Tensor:
    """(n, K, ...) to (rows, K)."""
    return values if values.ndim == 2 else values.movedim(1, -1).reshape(-1, values.shape[1])


def _check_tensors(logits: Any, labels: Any) -> None:
    for name, value in (("logits", logits), ("labels", labels)):
        if not isinstance(value, Tensor):
            raise InputError(f"{name} must be a torch tensor, got {type(value).__name__}.")
    if not logits.is_floating_point():
        raise InputError(f"logits must be floating-point numbers, got {logits.dtype}.")


def _check_shapes(logits: Tensor, labels: Tensor, soft: bool) -> None:
    if logits.ndim < 2 or logits.shape[1] < 2:
        raise InputError(
            "logits must be (n, K) or (n, K, ...) with one column for each of K > 1 classes, "
            f"got shape {tuple(logits.shape)}."
        )
    expected = logits.shape if soft else logits.shape[:1] + logits.shape[2:]
    if labels.shape != expected:
        kind = "shares of classes" if soft else "classes"
        raise InputError(
            f"labels that are {kind} must have shape {tuple(expected)} for logits of shape "
            f"{tuple(logits.shape)}, got {tuple(labels.shape)}."
        )


def _all_count(classes: Tensor, ignore_index: int, k: int) -> bool:
    """Return whether no row is ignored; refuse labels out of range."""
    if not len(classes):
        return True
    low, high = map(int, classes.aminmax())
    in_range = low >= 0 and high < k
    if in_range and not low <= ignore_index <= high:
        return True
    mask = classes != ignore_index
    bad = mask & ((classes < 0) | (classes >= k))
    if bool(bad.any()):
        row = int(bad.nonzero()[0, 0])
        raise InputError(
            f"labels must lie in 0..{k - 1} for {k} classes, got {int(classes[row])} in row {row}."
        )
    return bool(mask.all())


def _check_shares(shares: Tensor, precision: float) -> None:
    if not _can_inspect(shares) or not len(shares):
        return
    off = (shares.sum(-1) - 1).abs().max()
    if not bool((off < max(1e-3, precision)) & (shares.min() >= 0)):
        raise InputError("labels given as shares of classes must be at least 0 and sum to 1.")
