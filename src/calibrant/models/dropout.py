"""Dropout that draws its random numbers eight or four at a time."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Dropout(nn.Dropout):
    """Drop each value with probability `p` in training, and scale up what is kept.

    On a CPU torch draws one 53-bit number per value, which costs more than a small network's
    matrix products. Here one 64-bit draw serves eight values where `p` is a multiple of 1/256,
    else four. Elsewhere, and in half precision, it is torch's own dropout.

    Parameters
    ----------
    p : share of values that are dropped, in [0, 1); rounded to a multiple of 1/65536

    Examples
    --------
    >>> import torch
    >>> from calibrant.models.dropout import Dropout
    >>> sorted(set(Dropout(0.5)(torch.ones(100)).tolist()))
    [0.0, 2.0]
    """

    def forward(self, values: Tensor) -> Tensor:
        """Return the values with some dropped."""
        if not self.training or not self.p:
            return values
        if values.device.type != "cpu" or values.dtype not in (torch.float32, torch.float64):
            return super().forward(values)
        return values * keep_mask(values, self.p)


def keep_mask(values: Tensor, share: float) -> Tensor:
    """Return 0 for a dropped value and 1 / (1 - share) for a kept one, in the shape of `values`.

    With `share` rounded to c of 256 or 65,536 levels a kept value counts levels / (levels - c)
    times, so that the mean is kept exactly.
    """
    kind, levels, per_draw = torch.int8, 256, 8
    if not (256 * share).is_integer():
        kind, levels, per_draw = torch.int16, 65_536, 4
    cut = min(round(share * levels), levels - 1)
    n = values.numel()
    draws = torch.empty(-(-n // per_draw), dtype=torch.int64).random_(-(2**63), None)
    bits = draws.view(kind)[:n].view(values.shape)  # each number from -levels / 2 on as likely
    return bits.to(values.dtype).ge_(cut - levels // 2).mul_(levels / (levels - cut))
