"""What the classifiers on top of the training loop share."""

from __future__ import annotations

import copy
import warnings
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
from calibrant.training.batches import Rows
from calibrant.training.class_labels import codes_of, read_classes
from calibrant.training.hooks import Hook
from calibrant.training.loop import train
from calibrant.training.options import ChooseBy, Optimizer, Precision, Schedule, TrainingOptions
from calibrant.training.scoring import predict_logits
from calibrant.training.seeds import own_randomness
from calibrant.training.steer_split import steer_mask

__all__ = ["Auto", "Estimator"]

Auto = Literal["auto"]
"""The word for: as networks of this kind are usually trained."""

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

    A kind of input is a subclass with `_new_encoder`, `_read`, `_encoded` and `_network`; its
    constructor stores. The order of `fit` rules out leaks: rows are split into train and steer
    first, the encoder learns from the train rows, then the network does.

    Parameters are those of `TrainingOptions`, of `train`, and four more; see a subclass.
    """

    classes_: NDArray[Any]
    encoder_: Any
    model_: nn.Module
    loss_: nn.Module
    _scored_at_a_time = 1024
    _ways_to_resample: tuple[str, ...] = ("over", "under")

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
        """Learn from labelled rows."""
        options, hooks = self._options(), self._checked_hooks()
        self._check_resample()
        encoder = self._new_encoder()
        rows = self._read(X, "X", encoder)
        self._refuse_own_labels(rows, y)
        codes, classes = read_classes(y, n=len(rows))
        if steer is None:
            splits = self._split_off(rows, codes)
        else:
            splits = self._given(rows, codes, classes, steer)
        if len(splits.steer_codes) < 2:
            raise InputError(
                "the steer split has 1 row, but judging an epoch takes at least 2: give more rows, "
                "or a larger steer_share."
            )
        self._look_at(splits.train, splits.train_codes)
        encoder.fit(splits.train)
        with own_randomness(options.seed):
            network = self._network(encoder, len(classes))
        train_rows, log_shift = self._train_rows(encoder, splits.train, splits.train_codes, classes)
        _warn_absent(splits.steer_codes, classes)
        with warnings.catch_warnings():  # said above, with the names of the classes
            warnings.filterwarnings("ignore", message="the steer split has no rows of")
            trained = train(
                network,
                train_rows,
                self._encoded(encoder, splits.steer, splits.steer_codes),
                loss=self.loss,
                log_shift=None if log_shift is None else torch.from_numpy(log_shift),
                options=options,
                hooks=hooks,
                folder=self.folder,
                progress=self.progress,
            )
        self.classes_, self.encoder_ = classes, encoder
        # Rows are scored in 32-bit floats, whatever the network was trained in.
        self.model_, self.loss_ = trained.model.float(), trained.loss
        self.options_ = options
        self.records_, self.best_epoch_ = trained.records, trained.best_epoch
        self.why_ = trained.why
        self.steer_places_, self._resampling_shift = splits.places, log_shift
        self._note_columns(rows)
        if self.correct_prior and has_unknown_shift(trained.loss):
            _warn_unknown_shift()
        return self

    def predict_logits(self, X: Any) -> FloatArray:  # noqa: N803
        """Return logits (n, K), columns in the order of `classes_`, `log_shift_` taken off."""
        self._check_fitted()
        given = self._read(X, "X", self.encoder_)
        rows = self._encoded(self.encoder_, given, None)
        model = _on_device(self.model_, self.device)
        logits = predict_logits(model, rows, batch_size=self._scored_at_a_time)[: len(given)]
        shift = self.log_shift_
        return self._judged(given, logits.astype(np.float64) - (0.0 if shift is None else shift))

    @property
    def log_shift_(self) -> FloatArray | None:
        """What `predict_logits` subtracts from the logits of `model_`, (K,), or None for nothing.

        It is what the loss and `resample` moved the logits by, towards class frequencies that the
        data do not have; None with `correct_prior=False`.
        """
        self._check_fitted()
        if not self.correct_prior:
            return None
        told = getattr(self.loss_, "log_shift", None)
        of_loss = told() if callable(told) else None
        if of_loss is None:
            return self._resampling_shift
        shift = np.asarray(of_loss.detach().cpu().double().numpy())
        return shift if self._resampling_shift is None else shift + self._resampling_shift

    def predict_log_proba(self, X: Any) -> FloatArray:  # noqa: N803
        """Return the logarithm of `predict_proba`, exact where that rounds to 0."""
        return log_probs_from_logits(self.predict_logits(X))

    def predict_proba(self, X: Any) -> FloatArray:  # noqa: N803
        """Return probabilities (n, K), columns in the order of `classes_`, not yet calibrated."""
        return np.exp(self.predict_log_proba(X))

    def decision_function(self, X: Any) -> FloatArray:  # noqa: N803
        """Return log-odds (n,) of the second of two classes, else logits (n, K)."""
        logits = self.predict_logits(X)
        return log_odds_from_logits(logits) if logits.shape[1] == 2 else logits

    def predict(self, X: Any) -> NDArray[Any]:  # noqa: N803
        """Return the most probable class of each row."""
        best = self.predict_logits(X).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def _judged(self, rows: Any, logits: FloatArray) -> FloatArray:
        """Return logits (n, K) in which rows that the network cannot judge have equal ones."""
        return logits

    @abstractmethod
    def _new_encoder(self) -> Any:
        """Return an encoder that has not learned anything."""

    @abstractmethod
    def _read(self, X: Any, name: str, encoder: Any) -> Any:  # noqa: N803
        """Return the user's rows as a Table or a list, unencoded."""

    @abstractmethod
    def _encoded(self, encoder: Any, rows: Any, labels: IntArray | None) -> Rows:
        """Return rows for the loop, or to be scored; those may have more rows at the end."""

    @abstractmethod
    def _network(self, encoder: Any, n_classes: int) -> nn.Module:
        """Return an untrained network for what the encoder gives."""

    def _look_at(self, rows: Any, labels: IntArray) -> None:
        """Warn of train rows that give the labels away."""

    def _note_columns(self, rows: Any) -> None:
        """Keep what scikit-learn wants to know about the columns."""

    def _usual(self) -> Mapping[str, Any]:
        """Return what "auto" stands for, by parameter."""
        return {}

    def _asked(self, name: str) -> Any:
        """Return a parameter, or what is usual where it is "auto"."""
        value = getattr(self, name)
        return self._usual().get(name, value) if value == "auto" else value

    def _options(self) -> TrainingOptions:
        found = {option: self._asked(name) for name, option in _OPTIONS.items()}
        return TrainingOptions(**found)

    def _checked_hooks(self) -> tuple[Hook, ...]:
        hooks = (self.hooks,) if isinstance(self.hooks, Hook) else self.hooks
        if isinstance(hooks, list | tuple) and all(isinstance(hook, Hook) for hook in hooks):
            return tuple(hooks)
        raise InputError(f"hooks must be a list of objects of class Hook, got {self.hooks!r}.")

    def _split_off(self, rows: Any, codes: IntArray) -> _Splits:
        marked = steer_mask(codes, self.steer_share, seed=self.seed)
        kept, apart = np.flatnonzero(~marked), np.flatnonzero(marked)
        return _Splits(_taken(rows, kept), codes[kept], _taken(rows, apart), codes[apart], apart)

    def _given(
        self, rows: Any, codes: IntArray, classes: NDArray[Any], steer: tuple[Any, Any]
    ) -> _Splits:
        if not isinstance(steer, tuple | list) or len(steer) != 2:
            raise InputError(
                f"steer must be a pair (X, y) of rows and labels, got {type(steer).__name__}."
            )
        apart = self._read(steer[0], "steer X", self._new_encoder())
        apart_codes = codes_of(steer[1], classes, n=len(apart))
        return _Splits(rows, codes, apart, apart_codes, np.empty(0, dtype=np.int64))

    def _check_resample(self) -> None:
        known = self._ways_to_resample
        if self.resample is None:
            return
        if not isinstance(self.resample, str) or self.resample not in known:
            raise InputError(
                f"resample must be None or one of {', '.join(map(repr, known))}, got "
                f"{self.resample!r}."
            )

    def _train_rows(
        self, encoder: Any, rows: Any, codes: IntArray, classes: NDArray[Any]
    ) -> tuple[Rows, FloatArray | None]:
        """Return the train rows for the loop, resampled, and what that moves the logits by."""
        if self.resample is None:
            return self._encoded(encoder, rows, codes), None
        found = resample_rows(codes, cast(Resampling, self.resample), seed=self.seed)
        drawn = self._encoded(encoder, _taken(rows, found.places), codes[found.places])
        return drawn, found.log_shift

    def _refuse_own_labels(self, rows: Any, y: Any) -> None:
        name = getattr(y, "name", None)
        if isinstance(name, str) and name in getattr(rows, "names", ()):
            raise InputError(
                f"X holds the column {name!r}, which y is called after: leave it out of X, or the "
                "model is told the answer."
            )

    def _check_fitted(self) -> None:
        if not hasattr(self, "model_"):
            raise Unfitted(f"this {type(self).__name__} is not fitted yet: call fit first.")

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")


@dataclass(frozen=True)
class _Splits:
    """Train and steer rows with their labels, and where the steer rows stood among those given."""

    train: Any
    train_codes: IntArray
    steer: Any
    steer_codes: IntArray
    places: IntArray


def _taken(rows: Any, places: IntArray) -> Any:
    if isinstance(rows, np.ndarray):  # its own take would count single numbers
        return rows[places]
    return rows.take(places) if hasattr(rows, "take") else [rows[place] for place in places]


def _warn_absent(codes: IntArray, classes: NDArray[Any]) -> None:
    absent = classes[np.bincount(codes, minlength=len(classes)) == 0].tolist()
    if absent:
        warnings.warn(
            f"the steer split has no row of {len(absent)} of the {len(classes)} classes (the first "
            f"is {absent[0]!r}): what it says about the model leaves them out; give more rows.",
            UserWarning,
            stacklevel=3,
        )


def _warn_unknown_shift() -> None:
    warnings.warn(
        "class weights move the probabilities of this loss by no known constant, so correct_prior "
        "cannot undo them: calibrate before probabilities are used, or take ce:weight=balanced "
        "alone, whose shift is known.",
        UserWarning,
        stacklevel=3,
    )


def _on_device(model: nn.Module, device: str) -> nn.Module:
    """Return a copy on a GPU where one was asked for and is here, else the model, on the CPU.

    The model itself stays where it is: it can be pickled and used anywhere, also meanwhile.
    """
    asked = "cuda" if device == "auto" else device
    there = asked.startswith("cuda") and torch.cuda.is_available()
    return copy.deepcopy(model).to(asked) if there else model
