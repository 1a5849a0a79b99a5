"""Bin statistics of a training run, by epoch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import InputError
from calibrant.inputs import FloatArray, IntArray
from calibrant.metrics.binning import check_bins

_PER_EPOCH = ("epoch", "ece", "train_accuracy")
_EDGES = ("edges", "own_edges")
_WHOLE = ("epoch", "count", "train_count", "own_count")


@dataclass(frozen=True, eq=False)
class BinHistory:
    r"""T epochs of M equal-mass bins, from the least confident rows (bin 0) to the most confident.

    In bin $b$ of the steer split

    $$ E_b = C_b - A_b $$

    with $C_b$ the mean probability of the predicted class and $A_b$ the share of rows predicted
    correctly; above 0 the model is over-confident there. Train rows are grouped by the probability
    of their *true* class (as AdaFocal does to look up a row's gamma): averaged inside the same
    bins, and inside separate equal-mass bins.

    A bin includes its lower edge, and equal probabilities share a bin, so some may stay empty:
    their figures are NaN, and edges above the last row are NaN. Bin b covers the same ranks in
    every epoch, not the same range of probability, since edges move.

    Parameters
    ----------
    epoch : (T,) epoch numbers
    edges : (T, M-1) lowest confidence of bins 1 .. M-1
    count, confidence, accuracy : (T, M) number of steer rows, $C_b$ and $A_b$
    ece : (T,) calibration error of the steer rows, $\sum_b n_b |E_b| / n$
    train_count, train_confidence, train_top : (T, M) number of train rows whose true-class
        probability falls into the bins of the steer rows, its mean, and the mean top-class
        probability of the same rows
    own_edges, own_count, own_confidence, own_top : the same for train rows in their separate bins
    train_accuracy : (T,) share of the train rows predicted correctly during training

    Examples
    --------
    Six steer rows in two bins; of three train rows two fall into the upper one:

    >>> history = BinHistory.from_rows(
    ...     [0.5, 0.6, 0.7, 0.8, 0.9, 1.0], [0, 1, 1, 1, 1, 0],
    ...     true=[0.3, 0.8, 0.9], top=[0.7, 0.8, 0.9], train_right=[0, 1, 1], n_bins=2)
    >>> history.edges, history.error.round(3), history.train_count
    (array([[0.8]]), array([[-0.067,  0.233]]), array([[1, 2]]))
    >>> print(history)
    2 bins over 1 epoch, calibration error 0.1500 to 0.1500

    References
    ----------
    Ghosh, Schaaf & Gormley (2022), AdaFocal, NeurIPS, sections 3 and 4.
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
        for name in _names():
            shape = (epochs,) if name in _PER_EPOCH else (epochs, bins - (name in _EDGES))
            actual = np.shape(getattr(self, name))
            if actual != shape:
                raise InputError(
                    f"{name} of a bin history must have shape {shape} for {epochs} epochs of "
                    f"{bins} bins, got {actual}."
                )

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
        """Sort the rows of one epoch into bins.

        Parameters
        ----------
        confidence, right : (n,) of the steer rows: probability of the predicted class, and whether
            that class is the true one
        true, top, train_right : (m,) of the train rows: probabilities of the true and of the
            predicted class, and whether these are the same; no rows by default
        epoch : epoch number
        n_bins : number of bins M
        """
        check_bins(n_bins, "mass", 1)
        steer = _columns(confidence=confidence, right=right)
        train = _columns(true=true, top=top, train_right=train_right)
        edges, own_edges = _mass_edges(steer[0], n_bins), _mass_edges(train[0], n_bins)
        count, mean, accuracy = _means(steer[0], edges, *steer)
        train_count, train_mean, train_top = _means(train[0], edges, *train[:2])
        own_count, own_mean, own_top = _means(train[0], own_edges, *train[:2])
        gap = np.nansum(count * np.abs(mean - accuracy))
        line = {
            "epoch": epoch, "edges": edges, "count": count, "confidence": mean,
            "accuracy": accuracy, "ece": gap / count.sum() if count.any() else np.nan,
            "train_count": train_count, "train_confidence": train_mean, "train_top": train_top,
            "own_edges": own_edges, "own_count": own_count, "own_confidence": own_mean,
            "own_top": own_top, "train_accuracy": train[2].mean() if len(train[2]) else np.nan,
        }  # fmt: skip
        return cls(**{name: _array(name, [value]) for name, value in line.items()})

    @classmethod
    def empty(cls, n_bins: int) -> BinHistory:
        """Return a history without epochs, to be extended by `then`."""
        return cls.from_rows([], [], n_bins=n_bins).before(0)

    def then(self, later: BinHistory) -> BinHistory:
        """Return this history followed by the epochs of another."""
        if later.n_bins != self.n_bins:
            raise InputError(
                f"later must have the {self.n_bins} bins of the history it follows, "
                f"got {later.n_bins}."
            )
        both = {name: (getattr(self, name), getattr(later, name)) for name in _names()}
        return BinHistory(**{name: np.concatenate(parts) for name, parts in both.items()})

    def before(self, epoch: int) -> BinHistory:
        """Return only the epochs whose number is below `epoch`."""
        earlier = self.epoch < epoch
        return BinHistory(**{name: getattr(self, name)[earlier] for name in _names()})

    @property
    def n_bins(self) -> int:
        """Number of bins M."""
        return int(np.shape(self.confidence)[-1])

    @property
    def error(self) -> FloatArray:
        """(T, M) confidence minus accuracy, $E_b$: above 0 the model is over-confident."""
        return self.confidence - self.accuracy

    def to_dict(self) -> dict[str, Any]:
        """Return plain lists, with None for NaN: JSON has no NaN."""
        columns = {name: _to_json_list(getattr(self, name)) for name in _names()}
        return {"n_bins": self.n_bins, **columns}

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> BinHistory:
        """Rebuild from `to_dict`."""
        missing = [name for name in ("n_bins", *_names()) if name not in saved]
        if missing:
            raise InputError(
                f"a saved bin history must hold all keys of to_dict, missing: {', '.join(missing)}."
            )
        if not len(saved["epoch"]):  # empty tables do not record the number of bins
            return cls.empty(saved["n_bins"])
        return cls(**{name: _array(name, saved[name]) for name in _names()})

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


def _names() -> list[str]:
    return [field.name for field in fields(BinHistory)]


def _columns(**columns: Any) -> list[FloatArray]:
    """Return the columns of some rows as numbers in [0, 1], all of the same length."""
    arrays = [np.asarray(column, dtype=np.float64) for column in columns.values()]
    for name, column in zip(columns, arrays, strict=True):
        if column.shape != (len(arrays[0]),):
            raise InputError(
                f"{name} must have one number for each of {len(arrays[0])} rows, "
                f"got shape {column.shape}."
            )
        bad = ~((column >= 0) & (column <= 1 + 1e-9))  # NaN too
        if bad.any():
            row = int(np.flatnonzero(bad)[0])
            raise InputError(
                f"{name} must lie in [0, 1], got {column[row]} in row {row}: logits that are not "
                "finite mean that the model has diverged."
            )
    return arrays


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


def _means(values: FloatArray, edges: FloatArray, *columns: FloatArray) -> list[NDArray[Any]]:
    """Return the number of rows and the mean of each column, bin by bin of `values`."""
    size = len(edges) + 1
    index = np.searchsorted(
        edges, values, side="right"
    )  # NaN edges come last and are never reached
    count = np.bincount(index, minlength=size)
    rows = np.where(count > 0, count, np.nan)
    return [count, *(np.bincount(index, column, minlength=size) / rows for column in columns)]


def _to_json_list(values: NDArray[Any]) -> list[Any]:
    if values.dtype.kind != "f":
        return list(values.tolist())
    plain = values.astype(object)
    plain[~np.isfinite(values)] = None
    return list(plain.tolist())


def _array(name: str, values: Any) -> NDArray[Any]:
    try:
        return np.array(values, dtype=np.int64 if name in _WHOLE else np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{name} of a saved bin history must be a table of numbers, got {values!r:.60}."
        ) from error
