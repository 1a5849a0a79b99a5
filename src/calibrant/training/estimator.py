"""Base class of the classifiers built on the training loop."""

from __future__ import annotations

import copy
import warnings
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import Any, Literal, Self, cast

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from torch import nn

from calibrant.calibrators.base.calibrator import Unfitted
from calibrant.convert import log_odds_from_logits, log_probs_from_logits
from calibrant.data.resampling import Resampling, resample_rows
from calibrant.errors import InputError
from calibrant.inputs import FloatArray, IntArray
from calibrant.losses.class_weights import has_unknown_shift
from calibrant.losses.names import LossLike
from calibrant.training.batches import BatchRows
from calibrant.training.class_labels import encode_labels, read_classes
from calibrant.training.hooks import Hook
from calibrant.training.loop import train
from calibrant.training.options import ChooseBy, Optimizer, Precision, Schedule, TrainingOptions
from calibrant.training.scoring import predict_logits
from calibrant.training.seeds import isolated_randomness


def steer_mask(labels: IntArray, share: float, *, seed: int = 0) -> NDArray[np.bool_]:
    """Return a mask of the steer rows: the same random share of every class.

    A class with at least two rows has at least one steer row and one train row; a class with one
    row has a train row. With many rare classes the mask therefore exceeds the share.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant.training.estimator import steer_mask
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


Auto = Literal["auto"]
"""Use the usual value for networks of this kind."""


# Parameters of an estimator that are options of the loop, by the names of `TrainingOptions`.
_OPTIONS = {
    name: name
    for name in (
        "epochs", "batch_size", "accumulate", "optimizer", "learning_rate", "weight_decay",
        "momentum", "nesterov", "schedule", "milestones", "warmup", "clip", "precision", "compile",
        "patience", "min_delta", "choose_by", "seed", "device", "devices",
    )
} | {"milestone_drop": "drop"}  # fmt: skip


class Estimator(ClassifierMixin, BaseEstimator):
    """A network with its encoder as one scikit-learn classifier.

    Each kind of input is a subclass with `_new_encoder`, `_read_input`, `_encode_rows` and
    `_build_network`. `fit` prevents leaks by its order: rows are split into train and steer first,
    then the encoder is fitted on the train rows, then the network.

    Parameters are those of `TrainingOptions`, of `train`, and four more; see a subclass.
    """

    classes_: NDArray[Any]
    encoder_: Any
    model_: nn.Module
    loss_: nn.Module
    _scoring_batch_size = 1024
    _resample_methods: tuple[str, ...] = ("over", "under")

    def __init__(  # noqa: PLR0913  # scikit-learn finds and sets parameters one by one
        self,
        *,
        loss: LossLike,
        epochs: int | Auto,
        batch_size: int | Auto,
        accumulate: int,
        optimizer: Optimizer | Auto,
        learning_rate: float | Auto,
        weight_decay: float | Auto,
        momentum: float,
        nesterov: bool | Auto,
        schedule: Schedule | Auto,
        milestones: Sequence[int],
        milestone_drop: float,
        warmup: float | Auto,
        clip: float | Auto | None,
        precision: Precision,
        compile: bool,
        patience: int | Auto | None,
        min_delta: float,
        choose_by: ChooseBy,
        steer_share: float,
        resample: str | None,
        correct_prior: bool,
        seed: int,
        device: str,
        devices: int,
        folder: str | Path | None,
        hooks: Sequence[Hook],
        progress: bool,
    ) -> None:
        self.loss = loss
        self.epochs = epochs
        self.batch_size = batch_size
        self.accumulate = accumulate
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.momentum = momentum
        self.nesterov = nesterov
        self.schedule = schedule
        self.milestones = milestones
        self.milestone_drop = milestone_drop
        self.warmup = warmup
        self.clip = clip
        self.precision = precision
        self.compile = compile
        self.patience = patience
        self.min_delta = min_delta
        self.choose_by = choose_by
        self.steer_share = steer_share
        self.resample = resample
        self.correct_prior = correct_prior
        self.seed = seed
        self.device = device
        self.devices = devices
        self.folder = folder
        self.hooks = hooks
        self.progress = progress

    def fit(self, X: Any, y: Any, *, steer: tuple[Any, Any] | None = None) -> Self:  # noqa: N803
        """Fit to labelled rows."""
        options, hooks = self._options(), self._check_hooks()
        self._check_resample()
        encoder = self._new_encoder()
        rows = self._read_input(X, "X", encoder)
        self._check_label_column(rows, y)
        codes, classes = read_classes(y, n=len(rows))
        if steer is None:
            splits = self._split_steer(rows, codes)
        else:
            splits = self._splits_with_steer(rows, codes, classes, steer)
        if len(splits.steer_codes) < 2:
            raise InputError(
                "the steer split has 1 row, but evaluating an epoch needs at least 2: give more "
                "rows, or a larger steer_share."
            )
        self._check_leakage(splits.train, splits.train_codes)
        encoder.fit(splits.train)
        with isolated_randomness(options.seed):
            network = self._build_network(encoder, len(classes))
        train_rows, log_shift = self._train_rows(encoder, splits.train, splits.train_codes, classes)
        _warn_absent(splits.steer_codes, classes)
        with warnings.catch_warnings():  # already warned above, with class names
            warnings.filterwarnings("ignore", message="the steer split has no rows of")
            trained = train(
                network,
                train_rows,
                self._encode_rows(encoder, splits.steer, splits.steer_codes),
                loss=self.loss,
                log_shift=None if log_shift is None else torch.from_numpy(log_shift),
                options=options,
                hooks=hooks,
                folder=self.folder,
                progress=self.progress,
            )
        self.classes_, self.encoder_ = classes, encoder
        # Scoring uses 32-bit floats, whatever the training precision.
        self.model_, self.loss_ = trained.model.float(), trained.loss
        self.options_ = options
        self.records_, self.best_epoch_ = trained.records, trained.best_epoch
        self.why_ = trained.why
        self.steer_places_, self._resampling_shift = splits.places, log_shift
        self._record_columns(rows)
        if self.correct_prior and has_unknown_shift(trained.loss):
            _warn_unknown_shift()
        return self

    def predict_logits(self, X: Any) -> FloatArray:  # noqa: N803
        """Return logits (n, K), columns in the order of `classes_`, minus `log_shift_`."""
        self._check_fitted()
        inputs = self._read_input(X, "X", self.encoder_)
        rows = self._encode_rows(self.encoder_, inputs, None)
        model = _on_device(self.model_, self.device)
        logits = predict_logits(model, rows, batch_size=self._scoring_batch_size)[: len(inputs)]
        shift = self.log_shift_
        return self._mask_unscorable(
            inputs, logits.astype(np.float64) - (0.0 if shift is None else shift)
        )

    @property
    def log_shift_(self) -> FloatArray | None:
        """Shift (K,) that `predict_logits` subtracts from the logits of `model_`, or None.

        It is the shift of the logits towards other class frequencies than those of the data,
        caused by the loss and `resample`; None with `correct_prior=False`.
        """
        self._check_fitted()
        if not self.correct_prior:
            return None
        get_shift = getattr(self.loss_, "log_shift", None)
        loss_shift = get_shift() if callable(get_shift) else None
        if loss_shift is None:
            return self._resampling_shift
        shift = np.asarray(loss_shift.detach().cpu().double().numpy())
        return shift if self._resampling_shift is None else shift + self._resampling_shift

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

    def _mask_unscorable(self, rows: Any, logits: FloatArray) -> FloatArray:
        """Return logits (n, K), equal for all classes in rows that the network cannot score."""
        return logits

    @abstractmethod
    def _new_encoder(self) -> Any:
        """Return an unfitted encoder."""

    @abstractmethod
    def _read_input(self, X: Any, name: str, encoder: Any) -> Any:  # noqa: N803
        """Return the user's rows as a Table, a list or an array, before encoding."""

    @abstractmethod
    def _encode_rows(self, encoder: Any, rows: Any, labels: IntArray | None) -> BatchRows:
        """Return encoded rows; for scoring they may be padded with further rows."""

    @abstractmethod
    def _build_network(self, encoder: Any, n_classes: int) -> nn.Module:
        """Return an untrained network for the encoder's output."""

    def _check_leakage(self, rows: Any, labels: IntArray) -> None:
        """Warn about target leakage in the train rows."""

    def _record_columns(self, rows: Any) -> None:
        """Set scikit-learn's attributes about the columns."""

    def _default_options(self) -> Mapping[str, Any]:
        """Return the values of "auto", by parameter."""
        return {}

    def _resolve(self, name: str) -> Any:
        """Return a parameter, with "auto" replaced by its value."""
        value = getattr(self, name)
        return self._default_options().get(name, value) if value == "auto" else value

    def _options(self) -> TrainingOptions:
        return TrainingOptions(**{option: self._resolve(name) for name, option in _OPTIONS.items()})

    def _check_hooks(self) -> tuple[Hook, ...]:
        hooks = (self.hooks,) if isinstance(self.hooks, Hook) else self.hooks
        if isinstance(hooks, list | tuple) and all(isinstance(hook, Hook) for hook in hooks):
            return tuple(hooks)
        raise InputError(f"hooks must be a list of objects of class Hook, got {self.hooks!r}.")

    def _split_steer(self, rows: Any, codes: IntArray) -> _Splits:
        marked = steer_mask(codes, self.steer_share, seed=self.seed)
        train, steer = np.flatnonzero(~marked), np.flatnonzero(marked)
        return _Splits(
            _take_rows(rows, train), codes[train], _take_rows(rows, steer), codes[steer], steer
        )

    def _splits_with_steer(
        self, rows: Any, codes: IntArray, classes: NDArray[Any], steer: tuple[Any, Any]
    ) -> _Splits:
        if not isinstance(steer, tuple | list) or len(steer) != 2:
            raise InputError(
                f"steer must be a pair (X, y) of rows and labels, got {type(steer).__name__}."
            )
        steer_rows = self._read_input(steer[0], "steer X", self._new_encoder())
        steer_codes = encode_labels(steer[1], classes, n=len(steer_rows))
        return _Splits(rows, codes, steer_rows, steer_codes, np.empty(0, dtype=np.int64))

    def _check_resample(self) -> None:
        known = self._resample_methods
        if self.resample is None:
            return
        if not isinstance(self.resample, str) or self.resample not in known:
            raise InputError(
                f"resample must be None or one of {', '.join(map(repr, known))}, got "
                f"{self.resample!r}."
            )

    def _train_rows(
        self, encoder: Any, rows: Any, codes: IntArray, classes: NDArray[Any]
    ) -> tuple[BatchRows, FloatArray | None]:
        """Return the encoded train rows, resampled, and the resulting shift of the logits."""
        if self.resample is None:
            return self._encode_rows(encoder, rows, codes), None
        sample = resample_rows(codes, cast(Resampling, self.resample), seed=self.seed)
        drawn = self._encode_rows(encoder, _take_rows(rows, sample.places), codes[sample.places])
        return drawn, sample.log_shift

    def _check_label_column(self, rows: Any, y: Any) -> None:
        name = getattr(y, "name", None)
        if isinstance(name, str) and name in getattr(rows, "names", ()):
            raise InputError(
                f"X has a column {name!r}, the name of y: leave it out of X to avoid target "
                "leakage."
            )

    def _check_fitted(self) -> None:
        if not hasattr(self, "model_"):
            raise Unfitted(f"this {type(self).__name__} is not fitted yet: call fit first.")

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")


@dataclass(frozen=True)
class _Splits:
    """Train and steer rows with their labels, and the positions of split-off steer rows."""

    train: Any
    train_codes: IntArray
    steer: Any
    steer_codes: IntArray
    places: IntArray


def _take_rows(rows: Any, indices: IntArray) -> Any:
    if isinstance(rows, np.ndarray):  # ndarray.take would index the flattened array
        return rows[indices]
    return rows.take(indices) if hasattr(rows, "take") else [rows[i] for i in indices]


def _warn_absent(codes: IntArray, classes: NDArray[Any]) -> None:
    absent = classes[np.bincount(codes, minlength=len(classes)) == 0].tolist()
    if absent:
        warnings.warn(
            f"the steer split has no row of {len(absent)} of the {len(classes)} classes (the first "
            f"is {absent[0]!r}), so its metrics do not cover them: give more rows.",
            UserWarning,
            stacklevel=3,
        )


def _warn_unknown_shift() -> None:
    warnings.warn(
        "class weights shift the probabilities of this loss by an unknown amount, which "
        "correct_prior cannot undo: calibrate before using the probabilities, or use "
        "ce:weight=balanced alone, whose shift is known.",
        UserWarning,
        stacklevel=3,
    )


def _on_device(model: nn.Module, device: str) -> nn.Module:
    """Return a copy on the requested GPU if there is one, else the model on the CPU.

    The model itself is not moved, so that it can be pickled and used at the same time.
    """
    target = "cuda" if device == "auto" else device
    available = target.startswith("cuda") and torch.cuda.is_available()
    return copy.deepcopy(model).to(target) if available else model
