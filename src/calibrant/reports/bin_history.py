"""What the bins of a training run did, epoch by epoch: plain numbers to keep and to draw."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import InputError
from calibrant.inputs import FloatArray, IntArray

__all__ = ["BinHistory"]

_PER_EPOCH = ("epoch", "ece", "train_accuracy")
_EDGES = ("edges", "own_edges")
_WHOLE = ("epoch", "count", "train_count", "own_count")


@dataclass(frozen=True, eq=False)
class BinHistory:
    """T epochs of M equally filled bins, from the least sure rows (bin 0) to the surest.

    Three groupings of rows are kept side by side. *Steer rows* by the probability of the class they
    are predicted to be: their mean confidence, accuracy and the difference are what calibration is
    about. *Train rows in the same bins*, by the probability of their true class: that is how
    AdaFocal looks up a row's gamma. *Train rows in bins of their own*, equally filled with train
    rows. A figure is NaN where its bin holds no row; edges are NaN above the last row.

    Bin b of two epochs is the same rank of rows, not the same range of probability: edges move.

    Parameters
    ----------
    epoch : (T,) numbers of the epochs
    edges : (T, M-1) lowest confidence of bins 1 .. M-1
    count, confidence, accuracy : (T, M) steer rows, their mean top-class probability and the share
        of them predicted right
    ece : (T,) calibration error of the steer rows, mean of abs(confidence - accuracy) by row
    train_count, train_confidence, train_top : (T, M) train rows whose true-class probability falls
        into the steer rows' bins, its mean, and the mean top-class probability of the same rows
    own_edges, own_count, own_confidence, own_top : the same for train rows in bins of their own
    train_accuracy : (T,) share of the train rows predicted right while they were trained on

    Examples
    --------
    Six steer rows in two bins; two train rows, both in the upper one:

    >>> history = BinHistory.from_rows(
    ...     [0.5, 0.6, 0.7, 0.8, 0.9, 1.0], [0, 1, 1, 1, 1, 0],
    ...     true=[0.8, 0.9], top=[0.8, 0.9], train_right=[1, 1], n_bins=2)
    >>> history.edges, history.error.round(3), history.train_count
    (array([[0.8]]), array([[-0.067,  0.233]]), array([[0, 2]]))
    >>> print(history)
    2 bins over 1 epoch, calibration error 0.1500 to 0.1500
    """

    epoch: IntArray
    edges: FloatArray
    count: IntArray
    confidence: FloatArray
    accuracy: FloatArray
    ece: FloatArray
    train_count: IntArray
    train_confidence: FloatArray
    train_top: FloatArray
    own_edges: FloatArray
    own_count: IntArray
    own_confidence: FloatArray
    own_top: FloatArray
    train_accuracy: FloatArray

    def __post_init__(self) -> None:
        epochs, bins = len(self.epoch), self.n_bins
        for name in (field.name for field in fields(self)):
            shape = (epochs,) if name in _PER_EPOCH else (epochs, bins - (name in _EDGES))
            found = np.shape(getattr(self, name))
            if found != shape:
                raise InputError(
                    f"{name} must have shape {shape} for {epochs} epochs of {bins} bins, "
                    f"got {found}."
                )

    def __len__(self) -> int:
        return len(self.epoch)

    def __str__(self) -> str:
        if not len(self):
            return f"{self.n_bins} bins, no epoch yet"
        epochs = "1 epoch" if len(self) == 1 else f"{len(self)} epochs"
        return (
            f"{self.n_bins} bins over {epochs}, "
            f"calibration error {self.ece[0]:.4f} to {self.ece[-1]:.4f}"
        )

    @property
    def n_bins(self) -> int:
        """Number of bins M."""
        return int(np.shape(self.confidence)[-1])

    @property
    def error(self) -> FloatArray:
        """(T, M) confidence minus accuracy: above 0 the model is over-confident."""
        return self.confidence - self.accuracy

    @classmethod
    def empty(cls, n_bins: int) -> BinHistory:
        """Return a history without an epoch, to which `then` adds."""
        return cls.from_rows([], [], n_bins=n_bins).before(0)

    @classmethod
    def from_rows(
        cls,
        confidence: Any,
        right: Any,
        *,
        true: Any = (),
        top: Any = (),
        train_right: Any = (),
        epoch: int = 0,
        n_bins: int = 15,
    ) -> BinHistory:
        """Return the history of one epoch.

        Parameters
        ----------
        confidence, right : (n,) of the steer rows: probability of the predicted class, and whether
            it was the right one
        true, top, train_right : (m,) of the train rows: probabilities of their true class and of
            the predicted class, and whether these are the same; none by default
        epoch : its number
        n_bins : number of bins M
        """
        check_bins(n_bins, "mass", 1)
        confidence, true, top = _shares(confidence=confidence, true=true, top=top)
        right, train_right = _flags(confidence, right=right), _flags(true, train_right=train_right)
        edges, own_edges = _mass_edges(confidence, n_bins), _mass_edges(true, n_bins)
        count, (mean, accuracy) = _means(confidence, edges, confidence, right)
        train_count, (train_mean, train_top) = _means(true, edges, true, top)
        own_count, (own_mean, own_top) = _means(true, own_edges, true, top)
        gap = np.nansum(count * np.abs(mean - accuracy))
        line = cls(
            epoch=np.array(epoch),
            edges=edges, count=count, confidence=mean, accuracy=accuracy,
            ece=np.array(gap / len(confidence) if len(confidence) else np.nan),
            train_count=train_count, train_confidence=train_mean, train_top=train_top,
            own_edges=own_edges, own_count=own_count, own_confidence=own_mean, own_top=own_top,
            train_accuracy=np.array(train_right.mean() if len(true) else np.nan),
        )  # fmt: skip
        return line

    def to_dict(self) -> dict[str, Any]:
        """Return plain lists, with None for NaN: JSON has no NaN."""
        return {field.name: _plain(getattr(self, field.name)) for field in fields(self)}

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> BinHistory:
        """Rebuild from `to_dict`."""
        names = [field.name for field in fields(cls)]
        missing = [name for name in names if name not in saved]
        if missing:
            raise InputError(
                f"a saved bin history must hold {', '.join(names)}; missing: {', '.join(missing)}."
            )
        return cls(**{name: _array(name, saved[name]) for name in names})


def _plain(values: NDArray[Any]) -> list[Any]:
    if values.dtype.kind != "f":
        return list(values.tolist())
    return list(np.where(np.isfinite(values), values.astype(object), None).tolist())


def _array(name: str, values: Any) -> NDArray[Any]:
    try:
        return np.array(values, dtype=np.int64 if name in _WHOLE else np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{name} of a saved bin history must be a table of numbers, got {values!r:.60}."
        ) from error
