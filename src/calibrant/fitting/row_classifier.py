"""Base class of the classifiers that read rows of one kind: splits, labels and predictions."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from dataclasses import dataclass
from numbers import Real
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from calibrant.calibrators.base.calibrator import Unfitted
from calibrant.convert import log_odds_from_logits, log_probs_from_logits
from calibrant.data.resampling import ResampledRows, Resampling, resample_rows
from calibrant.errors import InputError
from calibrant.fitting.class_labels import encode_labels, read_classes
from calibrant.inputs import FloatArray, IntArray


def steer_mask(labels: IntArray, share: float, *, seed: int = 0) -> NDArray[np.bool_]:
    """Return a mask of the steer rows: the same random share of every class.

    A class with at least two rows has at least one steer row and one train row; a class with one
    row has a train row. With many rare classes the mask therefore exceeds the share.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant.fitting.row_classifier import steer_mask
    >>> marked = steer_mask(np.array([0] * 20 + [1] * 3 + [2]), 0.1)
    >>> [int(marked[:20].sum()), int(marked[20:23].sum()), int(marked[23:].sum())]
    [2, 1, 0]
    """
    if not isinstance(share, Real) or isinstance(share, bool) or not 0 < share < 1:
        raise InputError(
            f"steer_share must be above 0 and below 1, got {share!r}: 0.1 splits off a tenth of "
            "the rows."
        )
    draw = np.random.default_rng(seed)
    marked = np.zeros(len(labels), dtype=bool)
    for label in np.unique(labels):
        positions = draw.permutation(np.flatnonzero(labels == label))
        n_steer = max(int(float(share) * len(positions) + 0.5), 1)
        marked[positions[: min(n_steer, len(positions) - 1)]] = True
    if not marked.any():
        raise InputError(
            f"the steer split would be empty because no class has 2 rows among the {len(labels)} "
            "given: give more rows, or separate ones with steer=(X, y)."
        )
    return marked


@dataclass(frozen=True)
class FitRows:
    """Train and steer rows with their labels.

    Parameters
    ----------
    rows : all rows given to `fit` as X
    classes : (K,) sorted classes
    train, train_codes : train rows, and the position of each label in `classes`
    steer, steer_codes : the same of the steer rows
    places : positions of the rows of X that were split off for steering
    """

    rows: Any
    classes: NDArray[Any]
    train: Any
    train_codes: IntArray
    steer: Any
    steer_codes: IntArray
    places: IntArray


class RowClassifier(ClassifierMixin, BaseEstimator):
    """A model with its encoder as one scikit-learn classifier.

    Each kind of input is a subclass with `_new_encoder` and `_read_input`; each kind of model one
    with `fit`, `predict_logits` and `_loss_shift`. `fit` prevents leaks by its order: rows are
    split into train and steer first, then the encoder is fitted on the train rows, then the model.
    """

    loss: Any
    steer_share: float
    resample: str | None
    correct_prior: bool
    seed: int
    classes_: NDArray[Any]
    encoder_: Any
    loss_: Any
    _resampling_shift: FloatArray | None
    _resample_methods: tuple[str, ...] = ("over", "under")

    @abstractmethod
    def predict_logits(self, X: Any) -> FloatArray:  # noqa: N803
        """Return logits (n, K), columns in the order of `classes_`, minus `log_shift_`."""

    @property
    def log_shift_(self) -> FloatArray | None:
        """Shift (K,) that `predict_logits` subtracts from the logits of the model, or None.

        It is the shift of the logits towards other class frequencies than those of the data,
        caused by the loss and `resample`; None with `correct_prior=False`.
        """
        self._check_fitted()
        if not self.correct_prior:
            return None
        shift = self._loss_shift()
        if shift is None or self._resampling_shift is None:
            return self._resampling_shift if shift is None else shift
        return np.asarray(shift + self._resampling_shift)

    def predict_log_proba(self, X: Any) -> FloatArray:  # noqa: N803
        """Return the logarithm of `predict_proba`, accurate even where that rounds to 0."""
        return log_probs_from_logits(self.predict_logits(X))

    def predict_proba(self, X: Any) -> FloatArray:  # noqa: N803
        """Return uncalibrated probabilities (n, K), columns in the order of `classes_`."""
        return np.exp(self.predict_log_proba(X))

    def decision_function(self, X: Any) -> FloatArray:  # noqa: N803
        """Return log-odds (n,) of the second of two classes, or logits (n, K) for more classes."""
        logits = self.predict_logits(X)
        return log_odds_from_logits(logits) if logits.shape[1] == 2 else logits

    def predict(self, X: Any) -> NDArray[Any]:  # noqa: N803
        """Return the most probable class of each row."""
        best = self.predict_logits(X).argmax(axis=1)
        return np.asarray(self.classes_[best])

    @abstractmethod
    def _new_encoder(self) -> Any:
        """Return an unfitted encoder."""

    @abstractmethod
    def _read_input(self, X: Any, name: str, encoder: Any) -> Any:  # noqa: N803
        """Return the user's rows as a Table, a list or an array, before encoding."""

    @abstractmethod
    def _loss_shift(self) -> FloatArray | None:
        """Return the shift (K,) of the logits caused by the loss, or None."""

    def _check_leakage(self, rows: Any, labels: IntArray) -> None:
        """Warn about target leakage in the train rows."""

    def _record_columns(self, rows: Any) -> None:
        """Set scikit-learn's attributes about the columns."""

    def _read_splits(self, X: Any, y: Any, steer: tuple[Any, Any] | None) -> FitRows:  # noqa: N803
        """Read rows and labels, and split off the steer rows unless they are given."""
        rows = self._read_input(X, "X", self._new_encoder())
        _check_label_column(rows, y)
        codes, classes = read_classes(y, n=len(rows))
        splits = self._split(rows, codes, classes, steer)
        if len(splits.steer_codes) < 2:
            raise InputError(
                "the steer split has 1 row, but evaluating an epoch needs at least 2: give more "
                "rows, or a larger steer_share."
            )
        return splits

    def _split(
        self, rows: Any, codes: IntArray, classes: NDArray[Any], steer: tuple[Any, Any] | None
    ) -> FitRows:
        if steer is None:
            marked = steer_mask(codes, self.steer_share, seed=self.seed)
            train, places = np.flatnonzero(~marked), np.flatnonzero(marked)
            inner, outer = take_rows(rows, train), take_rows(rows, places)
            return FitRows(rows, classes, inner, codes[train], outer, codes[places], places)
        if not isinstance(steer, tuple | list) or len(steer) != 2:
            raise InputError(
                f"steer must be a pair (X, y) of rows and labels, got {type(steer).__name__}."
            )
        steer_rows = self._read_input(steer[0], "steer X", self._new_encoder())
        steer_codes = encode_labels(steer[1], classes, n=len(steer_rows))
        none = np.empty(0, dtype=np.int64)
        return FitRows(rows, classes, rows, codes, steer_rows, steer_codes, none)

    def _check_resample(self) -> None:
        known = self._resample_methods
        if self.resample is None:
            return
        if not isinstance(self.resample, str) or self.resample not in known:
            raise InputError(
                f"resample must be None or one of {', '.join(map(repr, known))}, got "
                f"{self.resample!r}."
            )

    def _resampled(self, codes: IntArray) -> ResampledRows | None:
        """Return which train rows to take by `resample`, and the resulting shift of the logits."""
        if self.resample is None:
            return None
        return resample_rows(codes, cast(Resampling, self.resample), seed=self.seed)

    def _check_fitted(self) -> None:
        if not hasattr(self, "classes_"):
            raise Unfitted(f"this {type(self).__name__} is not fitted yet: call fit first.")

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "classes_")


def take_rows(rows: Any, indices: IntArray) -> Any:
    """Return the rows at these positions."""
    if isinstance(rows, np.ndarray):  # ndarray.take would index the flattened array
        return rows[indices]
    return rows.take(indices) if hasattr(rows, "take") else [rows[i] for i in indices]


def warn_absent(codes: IntArray, classes: NDArray[Any]) -> None:
    """Warn about classes without a steer row."""
    absent = classes[np.bincount(codes, minlength=len(classes)) == 0].tolist()
    if absent:
        warnings.warn(
            f"the steer split has no row of {len(absent)} of the {len(classes)} classes (the first "
            f"is {absent[0]!r}), so its metrics do not cover them: give more rows.",
            UserWarning,
            stacklevel=3,
        )


def warn_unknown_shift() -> None:
    """Warn about class weights whose effect on the probabilities is unknown."""
    warnings.warn(
        "class weights shift the probabilities of this loss by an unknown amount, which "
        "correct_prior cannot undo: calibrate before using the probabilities, or use "
        "ce:weight=balanced alone, whose shift is known.",
        UserWarning,
        stacklevel=3,
    )


def _check_label_column(rows: Any, y: Any) -> None:
    name = getattr(y, "name", None)
    if isinstance(name, str) and name in getattr(rows, "names", ()):
        raise InputError(
            f"X has a column {name!r}, the name of y: leave it out of X to avoid target leakage."
        )
