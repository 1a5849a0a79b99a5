"""A hook that writes down, epoch by epoch, how sure the model is and how often it is right."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from calibrant.errors import InputError
from calibrant.inputs import FloatArray
from calibrant.losses.rows import IGNORE, as_rows
from calibrant.metrics.binning import check_bins
from calibrant.reports.bin_history import BinHistory
from calibrant.training.hooks import Hook, Run
from calibrant.training.records import EpochRecord

__all__ = ["BinTrace"]


class BinTrace(Hook):
    r"""Records confidence and accuracy in equally filled bins after each epoch, for any loss.

    For bin $b$ of the $M$ bins of the steer split

    $$ E_b = C_b - A_b $$

    with $C_b$ the mean probability of the predicted class and $A_b$ the share of rows predicted
    right; above 0 the model is over-confident there. Beside it stand the train rows as they were
    seen during the epoch, by the probability of their true class: averaged inside the same bins,
    and inside equally filled bins of their own.

    Bins are found in float64, a bin holds its lower edge, and equal confidences share a bin, so
    some bins may stay empty. Train rows are seen in train mode (dropout, batch statistics) and
    before the weights have reached the end of the epoch; steer rows in eval mode at its end.
    In a run of several processes each process records its own rows only; ask the first one. A
    resumed run goes on with the numbers of its epochs: rows of epochs before it are those this
    very object saw.

    Parameters
    ----------
    n_bins : number of bins M

    Attributes
    ----------
    history : `calibrant.reports.BinHistory`, what was recorded so far

    Examples
    --------
    >>> import torch
    >>> from calibrant.training import Run
    >>> from calibrant.training.bin_trace import BinTrace
    >>> run = Run(torch.nn.Identity(), torch.nn.CrossEntropyLoss(), None)
    >>> trace = BinTrace(n_bins=2)
    >>> logits = torch.tensor([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4], [0.7, 0.3]]).log()
    >>> trace.on_batch_end(run, logits, torch.tensor([0, 1, 1, 0]))
    >>> trace.on_steer(run, logits, torch.tensor([0, 0, 1, 0]))
    >>> trace.on_epoch_end(run, None)
    >>> trace.history.edges.round(3), trace.history.error.round(3)
    (array([[0.8]]), array([[0.15, 0.35]]))

    References
    ----------
    Ghosh, Schaaf & Gormley (2022), AdaFocal, NeurIPS, sections 3 and 4.
    """

    def __init__(self, n_bins: int = 15) -> None:
        check_bins(n_bins, "mass", 1)
        self.n_bins = n_bins
        self._epochs: list[dict[str, Any]] = []
        self._train: list[tuple[Tensor, ...]] = []
        self._steer: tuple[Tensor, ...] | None = None

    @property
    def history(self) -> BinHistory:
        """What was recorded so far, one line for each epoch."""
        empty = _epoch_line(0, _no_rows(), _no_rows(), self.n_bins)
        columns = {
            name: np.array([line[name] for line in self._epochs], dtype=np.asarray(value).dtype)
            for name, value in empty.items()
        }
        return BinHistory(
            **{
                name: column.reshape(len(self._epochs), *np.shape(empty[name]))
                for name, column in columns.items()
            }
        )

    def on_train_start(self, run: Run) -> None:
        """Forget the epochs that this run is going to make (again)."""
        self._epochs = [line for line in self._epochs if line["epoch"] < run.epoch]

    def on_epoch_start(self, run: Run) -> None:
        """Begin to gather the rows of an epoch."""
        self._train, self._steer = [], None

    def on_batch_end(self, run: Run, logits: Tensor, labels: Tensor) -> None:
        """Keep three numbers for each train row, where they are: nothing waits for the device."""
        self._train.append(_row_figures(run, logits, labels))

    def on_steer(self, run: Run, logits: Tensor, labels: Tensor) -> None:
        """Keep the newest scores of the steer split."""
        self._steer = _row_figures(run, logits, labels)

    def on_epoch_end(self, run: Run, record: EpochRecord) -> None:
        """Fetch the rows, sort them into bins and average them."""
        if self._steer is None:
            raise InputError(
                "BinTrace must see the steer split before an epoch ends: call on_steer first."
            )
        steer = _on_host("steer", [self._steer])
        train = _on_host("train", self._train)
        self._epochs.append(_epoch_line(run.epoch, steer, train, self.n_bins))
        self._train, self._steer = [], None


def _row_figures(run: Run, logits: Tensor, labels: Tensor) -> tuple[Tensor, ...]:
    """Return the probabilities of each row's true and top class, and whether they are the same.

    Whether: 1 for a row predicted right, 0 for a wrong one, -1 for one that is to be ignored.
    """
    ignored = getattr(run.loss, "ignore_index", IGNORE)
    if not labels.is_floating_point():  # part of a sum may ignore another number, below 0
        labels = labels.where(labels >= 0, ignored)
    rows = as_rows(logits, labels, ignore_index=ignored)
    classes = rows.hard("BinTrace")
    values = rows.logits.detach()
    if values.device.type == "mps":  # has no float64
        values, classes = values.cpu(), classes.cpu()
    probs = values.double().softmax(-1)
    top, predicted = probs.max(-1)
    right = (predicted == classes).to(torch.int8)
    if rows.kept is not None:
        right = right.where(rows.kept.to(right.device), -1)
    return probs.gather(-1, classes.unsqueeze(-1)).squeeze(-1), top, right


def _on_host(split: str, parts: list[tuple[Tensor, ...]]) -> tuple[NDArray[Any], ...]:
    """Gather the rows of an epoch as arrays, without the ignored ones."""
    if not parts:
        return _no_rows()
    true, top, right = (torch.cat(part).cpu().numpy() for part in zip(*parts, strict=True))
    kept = right >= 0
    if not np.isfinite(top[kept]).all():
        raise InputError(
            f"logits of the {split} split must be finite numbers, got some that are not: "
            "the model has diverged, try a smaller learning rate or gradient clipping."
        )
    return true[kept], top[kept], right[kept] == 1


def _no_rows() -> tuple[NDArray[Any], ...]:
    return np.empty(0), np.empty(0), np.empty(0, dtype=bool)


def _epoch_line(
    epoch: int, steer: tuple[NDArray[Any], ...], train: tuple[NDArray[Any], ...], n_bins: int
) -> dict[str, Any]:
    """Return one line of `BinHistory` by the names of its fields."""
    _, top, right = steer
    true, train_top, train_right = train
    edges, own_edges = _mass_edges(top, n_bins), _mass_edges(true, n_bins)
    count, (confidence, accuracy) = _means(top, edges, top, right)
    train_count, (train_confidence, train_tops) = _means(true, edges, true, train_top)
    own_count, (own_confidence, own_tops) = _means(true, own_edges, true, train_top)
    gap = np.nansum(count * np.abs(confidence - accuracy))
    return {
        "epoch": epoch,
        "edges": edges,
        "count": count,
        "confidence": confidence,
        "accuracy": accuracy,
        "ece": gap / len(top) if len(top) else np.nan,
        "train_count": train_count,
        "train_confidence": train_confidence,
        "train_top": train_tops,
        "own_edges": own_edges,
        "own_count": own_count,
        "own_confidence": own_confidence,
        "own_top": own_tops,
        "train_accuracy": train_right.mean() if len(true) else np.nan,
    }


def _mass_edges(values: FloatArray, n_bins: int) -> FloatArray:
    """Return the lowest value of bins 1 .. M-1; NaN for bins above the last value.

    As `calibrant.metrics.binning.mass_edges`, but a bin that ties leave empty keeps its number:
    its edge is that of the next bin with rows.
    """
    ordered = np.sort(values)
    below = np.searchsorted(ordered, ordered, side="left")
    bins = below * n_bins // max(len(ordered), 1)
    first = np.searchsorted(bins, np.arange(1, n_bins), side="left")
    return np.asarray(np.append(ordered, np.nan)[first])


def _means(
    values: FloatArray, edges: FloatArray, *columns: NDArray[Any]
) -> tuple[NDArray[np.int64], list[FloatArray]]:
    """Return the number of rows and the mean of each column, bin by bin of `values`."""
    size = len(edges) + 1
    index = np.searchsorted(edges, values, side="right")  # NaN edges stand last: never reached
    count = np.bincount(index, minlength=size)
    sums = (np.bincount(index, column, minlength=size) for column in columns)
    rows = np.where(count > 0, count, np.nan)
    return count, [total / rows for total in sums]
