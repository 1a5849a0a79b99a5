"""History of AdaFocal's bins and gammas over updates."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.inputs import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class GammaHistory:
    """T updates of M bins, from the least confident rows (bin 0) to the most confident.

    Bin b of two updates is the same rank of steer rows, not the same range of probability: the
    edges move and gamma stays with the rank.

    Parameters
    ----------
    step : (T,) number of the update, from 1
    edges : (T, M-1) lower edges of bins 1 .. M-1, as probabilities of the top class; 1 for bins
        above all rows
    error : (T, M) confidence minus accuracy, NaN where a bin holds no row
    count : (T, M) rows of the steer split
    gamma : (T, M) gamma after the update; below 0 it means inverse focal loss
    confidence, accuracy : (T, M) mean probability of the top class, and the share of rows for
        which it was right; NaN where a bin holds no row

    Examples
    --------
    >>> import torch
    >>> from calibrant.losses import AdaFocalLoss
    >>> loss = AdaFocalLoss(n_bins=2, min_count=1)
    >>> print(loss.history)
    2 bins, no update yet
    >>> loss.update(torch.tensor([[2.0, 0.0], [0.0, 1.0]]), torch.tensor([1, 1]))
    >>> print(loss.history)
    2 bins over 1 update, gamma 0.94 to 1.98
    >>> loss.history.error.round(3)
    array([[-0.269,  0.881]])
    """

    step: IntArray
    edges: FloatArray
    error: FloatArray
    count: IntArray
    gamma: FloatArray
    confidence: FloatArray
    accuracy: FloatArray

    @classmethod
    def from_table(cls, table: NDArray[np.float64], n_bins: int) -> GammaHistory:
        """Create a history from the table of a loss: edges, counts and figures of each update."""
        widths = [n_bins - 1, n_bins, n_bins, n_bins, n_bins]
        edges, count, gamma, confidence, accuracy = np.split(table, np.cumsum(widths)[:-1], axis=1)
        return cls(
            step=np.arange(1, len(table) + 1),
            edges=edges,
            error=confidence - accuracy,
            count=count.astype(np.int64),
            gamma=gamma,
            confidence=confidence,
            accuracy=accuracy,
        )

    def __len__(self) -> int:
        return len(self.step)

    def __str__(self) -> str:
        if not len(self):
            return f"{self.n_bins} bins, no update yet"
        times = "1 update" if len(self) == 1 else f"{len(self)} updates"
        last = self.gamma[-1]
        return f"{self.n_bins} bins over {times}, gamma {last.min():.2f} to {last.max():.2f}"

    @property
    def n_bins(self) -> int:
        """Number of bins M."""
        return int(self.gamma.shape[1])

    def to_dict(self) -> dict[str, Any]:
        """Return lists, with None for NaN, which JSON does not have."""
        return {field.name: _to_list(getattr(self, field.name)) for field in fields(self)}


def _to_list(values: NDArray[Any]) -> list[Any]:
    values_or_none = values.astype(object)
    values_or_none[~np.isfinite(values)] = None
    return list(values_or_none.tolist())
