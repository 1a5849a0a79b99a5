"""Training hook that records confidence and accuracy by bin after each epoch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from calibrant.fitting.epoch_record import EpochRecord
from calibrant.losses.rows import IGNORE, as_rows
from calibrant.reports.displays.bin_history import BinHistory
from calibrant.training.hooks import Hook, Run


class BinTrace(Hook):
    r"""Record confidence and accuracy in equal-mass bins after each epoch, for any loss.

    For bin $b$ of the steer split it records the error

    $$ E_b = C_b - A_b $$

    with $C_b$ the mean probability of the predicted class and $A_b$ the accuracy, and also the mean
    probability that the train rows of the epoch gave to their true class; see
    `calibrant.reports.BinHistory` for all recorded values. They are computed in float64.

    Train rows are recorded as the loss saw them: in train mode (dropout, batch statistics),
    augmented, with the weights at the time of their step. Steer rows are recorded in eval mode at
    the end of the epoch. The hook does not affect the run, and synchronises with the device once
    per epoch.

    In a run of several processes each process records its own rows. A resumed run keeps the earlier
    epochs of the first process.

    Parameters
    ----------
    n_bins : number of bins M

    Attributes
    ----------
    history : the `BinHistory` of the epochs so far

    Examples
    --------
    >>> import torch
    >>> from calibrant.training import ArrayRows, TrainingOptions, train
    >>> from calibrant.training.bin_trace import BinTrace
    >>> draw = torch.Generator().manual_seed(0)
    >>> features = torch.randn(300, 2, generator=draw)
    >>> rows = ArrayRows(features, (features[:, 0] > 0).long())
    >>> trace, options = BinTrace(n_bins=5), TrainingOptions(epochs=3)
    >>> trained = train(torch.nn.Linear(2, 2), rows, rows, options=options, hooks=[trace])
    >>> trace.history.error.shape, trace.history.count[0].tolist()
    ((3, 5), [60, 60, 60, 60, 60])

    References
    ----------
    Ghosh, Schaaf & Gormley (2022), AdaFocal, NeurIPS, sections 3 and 4.
    """

    def __init__(self, n_bins: int = 15) -> None:
        self.history = BinHistory.empty(n_bins)
        self._train: list[tuple[Tensor, ...]] = []
        self._steer: list[tuple[Tensor, ...]] = []

    def on_train_start(self, run: Run) -> None:
        """Drop the epochs that this run repeats."""
        self.history = self.history.before(run.epoch)

    def state_dict(self) -> dict[str, Any]:
        """Return the epochs so far."""
        return self.history.to_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the epochs of a checkpoint."""
        self.history = BinHistory.from_dict(state)

    def on_epoch_start(self, run: Run) -> None:
        """Clear the rows of the last epoch."""
        self._train, self._steer = [], []

    def on_batch_end(self, run: Run, logits: Tensor, labels: Tensor) -> None:
        """Record three numbers per train row, on its device."""
        self._train.append(_row_values(run, logits, labels))

    def on_steer(self, run: Run, logits: Tensor, labels: Tensor) -> None:
        """Record the same numbers per steer row; the newest scores replace earlier ones."""
        self._steer = [_row_values(run, logits, labels)]

    def on_epoch_end(self, run: Run, record: EpochRecord) -> None:
        """Fetch the rows and compute the bins."""
        _, confidence, right = _fetch_rows(self._steer)
        true, top, train_right = _fetch_rows(self._train)
        epoch = BinHistory.from_rows(
            confidence, right, true=true, top=top, train_right=train_right,
            epoch=run.epoch, n_bins=self.history.n_bins,
        )  # fmt: skip
        self.history = self.history.then(epoch)
        self._train, self._steer = [], []


def _row_values(run: Run, logits: Tensor, labels: Tensor) -> tuple[Tensor, ...]:
    """Return the probabilities of the true and the top class, and whether they are the same.

    The last is 1 if they are, 0 if not, and -1 for an ignored row.
    """
    ignored = getattr(run.loss, "ignore_index", IGNORE)
    labels = labels.to(logits.device, non_blocking=True)
    if not labels.is_floating_point():  # terms of a sum may use different ignore_index values
        labels = labels.where(labels >= 0, ignored)
    rows = as_rows(logits.detach(), labels, ignore_index=ignored)
    values, classes = rows.logits, rows.require_classes("BinTrace")
    if values.device.type == "mps":  # has no float64
        values, classes = values.cpu(), classes.cpu()
    probs = values.double().softmax(-1)
    top, predicted = probs.max(-1)
    same = (predicted == classes).to(torch.int8)
    if rows.mask is not None:
        same = same.where(rows.mask.to(same.device), -1)
    return probs.gather(-1, classes.unsqueeze(-1)).squeeze(-1), top, same


def _fetch_rows(parts: list[tuple[Tensor, ...]]) -> tuple[NDArray[np.float64], ...]:
    """Gather the rows of an epoch on the host, without ignored rows."""
    if not parts:
        return np.empty(0), np.empty(0), np.empty(0)
    true, top, same = (torch.cat(part).cpu().numpy() for part in zip(*parts, strict=True))
    counted = same >= 0
    return true[counted], top[counted], same[counted].astype(np.float64)
