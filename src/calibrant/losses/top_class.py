"""Confidence and correctness of the top class."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from calibrant.errors import InputError
from calibrant.fitting.confidence_bins import Scale
from calibrant.inputs import FloatArray
from calibrant.losses.rows import LossRows, as_rows

_BLOCK = 2**22  # logits turned to float64 at a time: 32 MiB


def as_scores(odds: Tensor, scale: Scale) -> Tensor:
    """Return log-odds of a class on the scale that bins are made on."""
    return odds if scale == "log-odds" else torch.sigmoid(odds)


def top_rows(logits: Any, labels: Any, *, scale: Scale, ignore_index: int) -> Tensor:
    r"""Reduce each row of a split to the three numbers that binning needs.

    On the scale of log-odds a row is $(z_1 - z_2, s, r)$: the largest logit less the second, the
    share $s$ that the second has among all classes but the first, and whether the first class is
    the label. The log-odds of the first class are $z_1 - z_2 + \log s$; the logarithm is taken
    later, after all processes' rows have been put in order, because its last bit may depend on
    where in an array a number stands. On the scale of probabilities, which is the released code's,
    a row is $(p_1, 1, r)$ with the softmax taken in the precision that the logits came in.
    """
    scores, classes = _as_tensor(logits, "logits"), _as_tensor(labels, "labels")
    if not classes.numel() and not scores.numel():
        return torch.empty(0, 3, dtype=torch.float64)
    rows = as_rows(scores, classes.to(scores.device), ignore_index=ignore_index).drop_ignored()
    _check_range(rows.require_classes("the update of a steered loss"), rows.logits.shape[1])
    size = max(1, _BLOCK // rows.logits.shape[1])
    starts = range(0, len(rows.logits), size)
    blocks = [_block(rows, slice(start, start + size), scale) for start in starts]
    return torch.cat(blocks) if blocks else torch.empty(0, 3, dtype=torch.float64)


def sort_rows(rows: Tensor) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Return scores and correctness sorted by both, independent of the order of rows."""
    gap, share, right = rows.numpy().T
    order = np.lexsort((right, share, gap))
    scores = gap[order] + np.log(share[order])
    right = right[order]
    order = np.lexsort((right, scores))
    return scores[order], right[order] == 1.0


def _block(rows: LossRows, part: slice, scale: Scale) -> Tensor:
    assert rows.labels is not None
    logits = rows.logits[part]
    logits = logits.cpu() if logits.device.type == "mps" else logits  # it has no float64
    if not bool(logits.isfinite().all()):
        bad = int((~logits.isfinite().all(-1)).sum())
        raise InputError(
            f"logits of the steer split must be finite numbers, but {bad} of {len(logits)} rows "
            "hold NaN or infinity: the model has diverged, try a smaller learning rate or "
            "gradient clipping."
        )
    top = logits.argmax(-1, keepdim=True)
    right = (top.squeeze(-1) == rows.labels[part].to(logits.device)).double()
    if scale == "probability":
        first = torch.softmax(logits, -1).amax(-1).double()
        return torch.stack([first, torch.ones_like(first), right], -1).cpu()
    others = logits.double().scatter(-1, top, -torch.inf)
    gap = logits.gather(-1, top).squeeze(-1).double() - others.amax(-1)
    return torch.stack([gap, torch.softmax(others, -1).amax(-1), right], -1).cpu()


def _check_range(classes: Tensor, k: int) -> None:
    """Refuse labels out of range, also on a GPU, where `as_rows` does not check."""
    bad = (classes < 0) | (classes >= k)
    if bool(bad.any()):
        raise InputError(
            f"labels must lie in 0..{k - 1} for {k} classes, got {int(classes[bad][0])}."
        )


def _as_tensor(values: Any, name: str) -> Tensor:
    if isinstance(values, Tensor):
        return values.detach()
    try:
        array = np.asarray(values)
        return torch.from_numpy(array if array.flags.writeable else array.copy())
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{name} must be a tensor or an array of numbers, got {type(values).__name__}."
        ) from error
