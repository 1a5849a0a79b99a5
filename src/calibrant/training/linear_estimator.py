"""Base class of the linear classifiers."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import torch
from torch import nn

from calibrant.data.linear_scorer import LinearScorer
from calibrant.data.row_scorer import RowScorer
from calibrant.fitting.row_classifier import RowClassifier, warn_absent, warn_unknown_shift
from calibrant.inputs import FloatArray
from calibrant.losses import as_loss
from calibrant.losses.class_weights import has_unknown_shift
from calibrant.training.linear_basis import Features
from calibrant.training.linear_path import (
    PathRecord,
    check_penalties,
    fit_linear_path,
    loss_shift,
)
from calibrant.training.linear_solver import LinearLayer


class LinearEstimator(RowClassifier):
    """A linear layer with its encoder as one scikit-learn classifier.

    Each kind of input is a subclass with `_new_encoder`, `_read_input`, `_fit_encoder`,
    `_encode_rows` and `_make_scorer`.
    """

    C: float | Sequence[float]
    layer_: LinearLayer
    loss_: nn.Module
    records_: tuple[PathRecord, ...]

    def fit(self, X: Any, y: Any, *, steer: tuple[Any, Any] | None = None) -> Self:  # noqa: N803
        """Fit to labelled rows."""
        self._check_resample()
        check_penalties(self.C)
        splits, encoder = self._read_splits(X, y, steer), self._new_encoder()
        sample, codes = self._resampled(splits.train_codes), splits.train_codes
        codes = codes if sample is None else codes[sample.places]
        counts = torch.bincount(torch.from_numpy(codes), minlength=len(splits.classes))
        loss = copy.deepcopy(as_loss(self.loss, class_counts=counts))
        self._check_leakage(splits.train, splits.train_codes)
        features = self._fit_encoder(encoder, splits.train)
        warn_absent(splits.steer_codes, splits.classes)
        path = fit_linear_path(
            (features if sample is None else features[sample.places], codes),
            (self._encode_rows(encoder, splits.steer), splits.steer_codes),
            len(splits.classes),
            loss=loss,
            penalties=self.C,
            log_shift=None if sample is None else sample.log_shift,
        )
        self.classes_, self.encoder_ = splits.classes, encoder
        weights, bias = (part.astype(np.float32) for part in (path.layer.weights, path.layer.bias))
        self.layer_, self.loss_ = LinearLayer(weights, bias), path.loss
        self.records_, self.best_epoch_ = path.records, path.best
        self.C_ = path.records[path.best].C
        self.n_weights_ = int(weights.size + bias.size)
        self.steer_places_ = splits.places
        self._resampling_shift = None if sample is None else sample.log_shift
        self._record_columns(splits.rows)
        if self.correct_prior and has_unknown_shift(path.loss):
            warn_unknown_shift()
        return self

    def predict_logits(self, X: Any) -> FloatArray:  # noqa: N803
        """Return logits (n, K), columns in the order of `classes_`, minus `log_shift_`."""
        self._check_fitted()
        return self.to_scorer().predict_logits(self._read_input(X, "X", self.encoder_))

    def to_scorer(
        self, *, column: str | None = None, redact: bool = False, resize: bool = False
    ) -> RowScorer:
        """Return the model for a bundle; it needs no torch.

        Parameters
        ----------
        column : name of the column of texts in a table; None for "text"
        redact : whether to redact e-mail addresses and numbers in texts first
        resize : whether image files of other sizes are resized
        """
        self._check_fitted()
        return LinearScorer(
            self.encoder_,
            self.layer_.weights,
            self.layer_.bias,
            self.log_shift_,
            name=self._name,
            column=column,
            redact=redact,
            resize=resize,
            classes=self.classes_.tolist(),
        )

    @property
    @abstractmethod
    def _name(self) -> str:
        """Name of the model in a bundle."""

    @abstractmethod
    def _fit_encoder(self, encoder: Any, rows: Any) -> Features:
        """Fit the encoder to the train rows and return their features."""

    @abstractmethod
    def _encode_rows(self, encoder: Any, rows: Any) -> Features:
        """Return the features of rows."""

    def _loss_shift(self) -> FloatArray | None:
        return loss_shift(self.loss_)
