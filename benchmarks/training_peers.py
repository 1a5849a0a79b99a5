"""Training with skorch and with Lightning's Trainer, as their manuals show it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytorch_lightning as pl
import torch
from skorch import NeuralNetClassifier
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

__all__ = ["lightning_fit", "skorch_fit"]

RATE = 1e-3


class _Texts(Dataset[tuple[Tensor, Tensor]]):
    """Token ids of one text and its class."""

    def __init__(self, texts: Sequence[np.ndarray], labels: np.ndarray) -> None:
        self.texts = [torch.from_numpy(text) for text in texts]
        self.labels = torch.from_numpy(labels)

    def __len__(self) -> int:
        return len(self.texts)

    def __getitem__(self, place: int) -> tuple[Tensor, Tensor]:
        return self.texts[place], self.labels[place]


def _padded(rows: list[tuple[Tensor, Tensor]]) -> tuple[dict[str, Tensor], Tensor]:
    """Pad the texts of a batch to the longest."""
    texts, labels = zip(*rows, strict=True)
    tokens = nn.utils.rnn.pad_sequence(texts, batch_first=True)
    lengths = torch.tensor([len(text) for text in texts])
    return {"tokens": tokens, "lengths": lengths}, torch.stack(labels)


def skorch_fit(
    model: nn.Module,
    *,
    inputs: tuple[Any, ...],
    labels: np.ndarray,
    epochs: int,
    batch: int,
    fused: bool,
) -> nn.Module:
    """Train with skorch: no validation split, no callbacks, nothing printed."""
    (rows,) = inputs
    ragged = isinstance(rows, list)
    net = NeuralNetClassifier(
        model,
        criterion=nn.CrossEntropyLoss,
        optimizer=torch.optim.Adam,
        optimizer__fused=fused,
        lr=RATE,
        max_epochs=epochs,
        batch_size=batch,
        iterator_train__shuffle=True,
        **({"iterator_train__collate_fn": _padded} if ragged else {}),
        train_split=None,
        callbacks="disable",
        classes=[0, 1],
        verbose=0,
        device="cpu",
    )
    net.fit(_Texts(rows, labels), None) if ragged else net.fit(rows, labels)
    module: nn.Module = net.module_
    return module


class _Lit(pl.LightningModule):
    """A network with cross-entropy and Adam."""

    def __init__(self, model: nn.Module, fused: bool) -> None:
        super().__init__()
        self.model, self.fused = model, fused

    def training_step(self, batch: tuple[Any, Tensor], _: int) -> Tensor:
        """Return the loss of a batch."""
        rows, labels = batch
        logits = self.model(**rows) if isinstance(rows, dict) else self.model(rows)
        return nn.functional.cross_entropy(logits, labels)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Return Adam."""
        return torch.optim.Adam(self.parameters(), lr=RATE, fused=self.fused)


def lightning_fit(
    model: nn.Module,
    *,
    inputs: tuple[Any, ...],
    labels: np.ndarray,
    epochs: int,
    batch: int,
    fused: bool,
) -> nn.Module:
    """Train with Lightning's Trainer in the mode it has for raw speed."""
    (rows,) = inputs
    data: Dataset[Any]
    if isinstance(rows, list):
        data, collate = _Texts(rows, labels), _padded
    else:
        data, collate = TensorDataset(torch.from_numpy(rows), torch.from_numpy(labels)), None
    loader = DataLoader(data, batch_size=batch, shuffle=True, collate_fn=collate)
    pl.Trainer(max_epochs=epochs, accelerator="cpu", barebones=True).fit(_Lit(model, fused), loader)
    return model
