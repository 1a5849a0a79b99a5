"""Rows of a batch as every loss takes them: checked, flattened, in full precision."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from calibrant.errors import InputError

__all__ = [
    "IGNORE",
    "Reduction",
    "Rows",
    "as_class_weight",
    "as_rows",
    "as_weight",
    "check_finite",
    "check_ignore",
    "check_reduction",
    "is_finite",
    "reduced",
]

Reduction = Literal["mean", "sum", "none"]
IGNORE = -100  # torch's own default


@dataclass(frozen=True)
class Rows:
    """A batch with one row per label.

    Parameters
    ----------
    logits : (n, K) in float32 or float64, 0 where the row is ignored
    labels : (n,) classes, 0 where the row is ignored; None where labels are shares
    shares : (n, K) share of each class; None where labels are classes
    kept : (n,) which rows count; None where all do
    shape : of the labels as they came, for `reduction="none"`
    """

    logits: Tensor
    labels: Tensor | None
    shares: Tensor | None
    kept: Tensor | None
    shape: torch.Size

    def hard(self, loss: str) -> Tensor:
        """Return the classes, or say that `loss` cannot take shares."""
        if self.labels is None:
            raise InputError(
                f"{loss} needs one class per row and cannot take shares of classes: "
                f"pass whole numbers of shape {tuple(self.shape)}."
            )
        return self.labels

    @property
    def is_plain(self) -> bool:
        """Whether there are rows, each has one class, and all of them count."""
        return self.labels is not None and self.kept is None and len(self.labels) > 0

    def one_hot(self) -> Tensor:
        """Return the labels as (n, K) shares, whichever way they came."""
        if self.shares is not None:
            return self.shares
        assert self.labels is not None
        zeros = torch.zeros_like(self.logits)
        return zeros.scatter_(-1, self.labels.unsqueeze(-1), 1.0)

    def only_kept(self) -> Rows:
        """Drop the ignored rows, for losses that look at a batch as a whole."""
        if self.kept is None:
            return self
        labels = None if self.labels is None else self.labels[self.kept]
        shares = None if self.shares is None else self.shares[self.kept]
        return Rows(self.logits[self.kept], labels, shares, None, self.shape)


def as_rows(logits: Tensor, labels: Tensor, *, ignore_index: int = IGNORE) -> Rows:
    """Check a batch and flatten it: (n, K, ...) logits with (n, ...) classes or (n, K, ...) shares.

    What lies in the tensors (labels out of range) is looked at on the CPU only: on a GPU each
    look would stop the queue, so the training loop checks its labels once beforehand.
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
        return Rows(flat, None, shares, None, labels.shape[:1] + labels.shape[2:])
    classes = labels.reshape(-1).long()
    if _can_look(classes) and _all_count(classes, ignore_index, k):
        return Rows(flat, classes, None, None, labels.shape)
    kept = classes != ignore_index
    # Whatever an ignored row holds, infinity and NaN too, must reach neither sums nor gradients.
    flat = flat.masked_fill(~kept.unsqueeze(-1), 0.0)
    return Rows(flat, classes.where(kept, 0), None, kept, labels.shape)


def as_class_weight(weight: Any, *, like: Tensor | None = None) -> Tensor:
    """Check the weights of classes; they get the type and place of `like`."""
    dtype, device = (torch.float32, None) if like is None else (like.dtype, like.device)
    try:
        values = torch.as_tensor(weight, dtype=dtype, device=device)
    except (TypeError, ValueError, RuntimeError) as error:
        raise _no_weight(weight) from error
    if values.ndim != 1:
        raise _no_weight(weight)
    if _can_look(values) and not bool((values.isfinite() & (values >= 0)).all()):
        raise _no_weight(weight)
    return values


def _no_weight(weight: Any) -> InputError:
    shown = weight.tolist() if isinstance(weight, Tensor) and weight.numel() < 20 else weight
    return InputError(
        f"weight must be one finite number of at least 0 per class, got {shown!r:.200}."
    )


def as_weight(weight: Any, rows: Rows) -> Tensor | None:
    """Return each row's weight: that of its class, 0 where ignored; None if all are 1."""
    if weight is None:
        return None if rows.kept is None else rows.kept.to(rows.logits.dtype)
    of_classes = _class_weight(weight, rows)
    if rows.labels is not None:
        per_row = of_classes[rows.labels]
    else:
        per_row = (rows.one_hot() * of_classes).sum(-1)
    return per_row if rows.kept is None else per_row.where(rows.kept, 0.0)


def _class_weight(weight: Any, rows: Rows) -> Tensor:
    values = as_class_weight(weight, like=rows.logits)
    k = rows.logits.shape[1]
    if values.shape != (k,):
        raise InputError(
            f"weight must hold one number per class, ({k},) for these logits, "
            f"got shape {tuple(values.shape)}."
        )
    return values


def check_reduction(reduction: str) -> None:
    """Refuse a reduction that is not known."""
    if reduction not in get_args(Reduction):
        raise InputError(f"reduction must be 'mean', 'sum' or 'none', got {reduction!r}.")


def check_ignore(ignore_index: int) -> None:
    """Refuse an ignore_index that no label can equal."""
    if not isinstance(ignore_index, Integral) or isinstance(ignore_index, bool):
        raise InputError(f"ignore_index must be a whole number, got {ignore_index!r}.")


def reduced(values: Tensor, rows: Rows, *, weight: Any, reduction: str) -> Tensor:
    """Weight the rows' losses, drop the ignored ones, and gather them.

    `values` is (n,), or (n, K) where labels are shares: then row i is the sum of
    share x weight x value over its classes. The mean divides by the sum of the weights, as torch's
    cross-entropy does for whole labels; a batch without weight (all ignored) gives 0 with no
    gradient instead of torch's NaN.
    """
    check_reduction(reduction)
    per_row = as_weight(weight, rows)
    if values.ndim == 2:
        of_classes = 1.0 if weight is None else _class_weight(weight, rows)
        weighted = (values * rows.one_hot() * of_classes).sum(-1)
        weighted = weighted if rows.kept is None else weighted.where(rows.kept, 0.0)
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
    """Whether a number is finite; True where a look would wait for a GPU."""
    return not _can_look(total) or math.isfinite(total.detach())


def check_finite(values: Tensor, rows: Rows) -> None:
    """Name the first row whose value is not finite because of its logits; on the CPU only."""
    if not _can_look(values):
        return
    bad = ~values.detach().isfinite()
    if bool(bad.any()):
        row = int(bad.nonzero()[0, 0])
        found = rows.logits.detach()[row]
        culprit = found[~found.isfinite()]
        what = f"hold {float(culprit[0])}" if len(culprit) else "are too large"
        raise InputError(
            f"logits must be finite numbers, but those of row {row} {what}: "
            "the model has diverged, try a smaller learning rate or gradient clipping."
        )


def _can_look(values: Tensor) -> bool:
    """Whether a look at the numbers neither waits for a GPU nor breaks a compiled graph."""
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
    """Whether no row is ignored; a label that is no class either is refused."""
    if not len(classes):
        return True
    low, high = map(int, classes.aminmax())
    in_range = low >= 0 and high < k
    if in_range and not low <= ignore_index <= high:
        return True
    kept = classes != ignore_index
    bad = kept & ((classes < 0) | (classes >= k))
    if bool(bad.any()):
        row = int(bad.nonzero()[0, 0])
        raise InputError(
            f"labels must lie in 0..{k - 1} for {k} classes, got {int(classes[row])} in row {row}."
        )
    return bool(kept.all())


def _check_shares(shares: Tensor, precision: float) -> None:
    if not _can_look(shares) or not len(shares):
        return
    off = (shares.sum(-1) - 1).abs().max()
    if not bool((off < max(1e-3, precision)) & (shares.min() >= 0)):
        raise InputError("labels given as shares of classes must be at least 0 and sum to 1.")
