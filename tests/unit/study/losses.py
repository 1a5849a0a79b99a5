"""A loss that cannot be trained with."""

from __future__ import annotations

from torch import Tensor, nn


class Exploding(nn.Module):
    """A loss that is not a number."""

    def forward(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return NaN."""
        return logits.sum() * float("nan")
