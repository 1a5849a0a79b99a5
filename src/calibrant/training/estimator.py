"""Base class of the classifiers built on the training loop."""

from __future__ import annotations

import copy
import warnings
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from calibrant.data.row_scorer import RowScorer
from calibrant.errors import InputError
from calibrant.fitting.row_classifier import (
    RowClassifier,
    take_rows,
    warn_absent,
    warn_unknown_shift,
)
from calibrant.inputs import FloatArray, IntArray
from calibrant.losses.class_weights import has_unknown_shift
from calibrant.losses.names import LossLike
from calibrant.training.batches import BatchRows
from calibrant.training.hooks import Hook
from calibrant.training.loop import train
from calibrant.training.options import (
    Average,
    ChooseBy,
    Optimizer,
    Precision,
    Schedule,
    TrainingOptions,
)
from calibrant.training.scoring import predict_logits
from calibrant.training.seeds import isolated_randomness

Auto = Literal["auto"]
"""Use the usual value for networks of this kind."""


# Parameters of an estimator that are options of the loop, by the names of `TrainingOptions`.
_OPTIONS = {
    name: name
    for name in (
        "epochs", "batch_size", "accumulate", "optimizer", "learning_rate", "weight_decay",
        "momentum", "nesterov", "schedule", "milestones", "warmup", "clip", "precision", "compile",
        "patience", "min_delta", "choose_by", "average", "seed", "device", "devices",
    )
} | {"milestone_drop": "drop"}  # fmt: skip


class Estimator(RowClassifier):
    """A network with its encoder as one scikit-learn classifier.

    Each kind of input is a subclass with `_new_encoder`, `_read_input`, `_encode_rows` and
    `_build_network`. `fit` prevents leaks by its order: rows are split into train and steer first,
    then the encoder is fitted on the train rows, then the network.

    Parameters are those of `TrainingOptions`, of `train`, and four more; see a subclass.
    """

    model_: nn.Module
    loss_: nn.Module
    _scoring_batch_size = 1024

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
        average: Average,
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
        self.average = average
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
        splits, encoder = self._read_splits(X, y, steer), self._new_encoder()
        classes = splits.classes
        self._check_leakage(splits.train, splits.train_codes)
        encoder.fit(splits.train)
        with isolated_randomness(options.seed):
            network = self._build_network(encoder, len(classes))
        train_rows, log_shift = self._train_rows(encoder, splits.train, splits.train_codes, classes)
        warn_absent(splits.steer_codes, classes)
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
        self.why_, self.average_ = trained.why, trained.average
        self.steer_places_, self._resampling_shift = splits.places, log_shift
        self._record_columns(splits.rows)
        if self.correct_prior and has_unknown_shift(trained.loss):
            warn_unknown_shift()
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
    def n_weights_(self) -> int:
        """Number of weights of the network."""
        self._check_fitted()
        return sum(part.numel() for part in self.model_.parameters())

    def to_scorer(
        self, *, column: str | None = None, redact: bool = False, resize: bool = False
    ) -> RowScorer:
        """Return the model of a bundle; see `Scorer.from_classifier`."""
        from calibrant.models.scorer import Scorer

        return Scorer.from_classifier(self, column=column, redact=redact, resize=resize)

    def _loss_shift(self) -> FloatArray | None:
        get_shift = getattr(self.loss_, "log_shift", None)
        shift = get_shift() if callable(get_shift) else None
        return None if shift is None else np.asarray(shift.detach().cpu().double().numpy())

    def _mask_unscorable(self, rows: Any, logits: FloatArray) -> FloatArray:
        """Return logits (n, K), equal for all classes in rows that the network cannot score."""
        return logits

    @abstractmethod
    def _encode_rows(self, encoder: Any, rows: Any, labels: IntArray | None) -> BatchRows:
        """Return encoded rows; for scoring they may be padded with further rows."""

    @abstractmethod
    def _build_network(self, encoder: Any, n_classes: int) -> nn.Module:
        """Return an untrained network for the encoder's output."""

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

    def _train_rows(
        self, encoder: Any, rows: Any, codes: IntArray, classes: NDArray[Any]
    ) -> tuple[BatchRows, FloatArray | None]:
        """Return the encoded train rows, resampled, and the resulting shift of the logits."""
        sample = self._resampled(codes)
        if sample is None:
            return self._encode_rows(encoder, rows, codes), None
        drawn = self._encode_rows(encoder, take_rows(rows, sample.places), codes[sample.places])
        return drawn, sample.log_shift


def _on_device(model: nn.Module, device: str) -> nn.Module:
    """Return a copy on the requested GPU if there is one, else the model on the CPU.

    The model itself is not moved, so that it can be pickled and used at the same time.
    """
    target = "cuda" if device == "auto" else device
    available = target.startswith("cuda") and torch.cuda.is_available()
    return copy.deepcopy(model).to(target) if available else model
