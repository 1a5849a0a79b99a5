"""The network for tables: a few dense layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn

from calibrant.errors import InputError
from calibrant.models.dropout import Dropout
from calibrant.models.options import check_counts, check_dropout
from calibrant.models.registry import register


@register("mlp")
class MLP(nn.Module):
    """Dense layers for rows of numbers.

    The first layer is Linear, BatchNorm, ReLU, Dropout; each further one Linear, ReLU, Dropout;
    then one Linear to the logits. Batch norm stands after the first layer only. In training mode
    it cannot take a batch of one row.

    Parameters
    ----------
    n_features : columns of a row
    n_classes : number of logits
    hidden : width of each hidden layer
    dropout : share of values dropped after each hidden layer, as many as `hidden`
    batch_norm : whether the first layer is normalised over the batch

    Examples
    --------
    >>> import torch
    >>> from calibrant.models import MLP
    >>> MLP(30, 2)(torch.zeros(4, 30)).shape
    torch.Size([4, 2])

    References
    ----------
    `SalesClassifier` of the tutorial on custom losses and calibration (BigMart sales).
    """

    def __init__(
        self,
        n_features: int,
        n_classes: int,
        hidden: Sequence[int] = (128, 64),
        dropout: Sequence[float] = (0.5, 0.25),
        batch_norm: bool = True,
    ) -> None:
        super().__init__()
        check_counts(n_features=n_features)
        check_counts(n_classes=n_classes, least=2)
        if not hidden or len(hidden) != len(dropout):
            raise InputError(
                "hidden must hold at least one width and dropout one share for each, "
                f"got {list(hidden)} and {list(dropout)}."
            )
        self.n_features = n_features
        self.batch_norm = batch_norm
        layers: list[nn.Module] = []
        before = n_features
        for place, (width, share) in enumerate(zip(hidden, dropout, strict=True)):
            check_counts(hidden=width)
            check_dropout(dropout=share)
            layers.append(nn.Linear(before, width))
            if batch_norm and place == 0:
                layers.append(nn.BatchNorm1d(width))
            layers += [nn.ReLU(inplace=True), Dropout(share)]
            before = width
        self.layers = nn.Sequential(*layers, nn.Linear(before, n_classes))
        self.config: dict[str, Any] = {
            "model": "mlp",
            "n_features": n_features,
            "n_classes": n_classes,
            "hidden": list(hidden),
            "dropout": list(dropout),
            "batch_norm": batch_norm,
        }

    def forward(self, features: Tensor) -> Tensor:
        """Return the logits of (b, n_features) rows."""
        if features.ndim != 2 or features.shape[1] != self.n_features:
            raise InputError(
                f"features must have shape (rows, {self.n_features}), got {tuple(features.shape)}."
            )
        if not features.is_floating_point():
            raise InputError(f"features must be floating-point numbers, got {features.dtype}.")
        if self.training and self.batch_norm and len(features) == 1:
            raise InputError(
                "a batch must have at least two rows in training with batch norm, got 1: "
                "use a larger batch_size or batch_norm=False."
            )
        logits: Tensor = self.layers(features)
        return logits
