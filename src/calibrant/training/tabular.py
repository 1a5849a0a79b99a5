"""A network for tables as a scikit-learn classifier."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from torch import nn

from calibrant.data.encoders.table_columns import Table
from calibrant.data.encoders.table_encoder import TableEncoder
from calibrant.data.resampling import Resampling, smote
from calibrant.errors import InputError
from calibrant.fitting.table_input import TableInput
from calibrant.inputs import FloatArray, IntArray
from calibrant.losses.names import LossLike
from calibrant.models import MLP
from calibrant.training.array_rows import ArrayRows
from calibrant.training.batches import BatchRows
from calibrant.training.estimator import Estimator
from calibrant.training.hooks import Hook
from calibrant.training.options import Average, ChooseBy, Optimizer, Precision, Schedule

_BLOCK = 256
"""Batch size of scoring; the last batch is padded to it.

Rounding of matrix products depends on their shape. With a fixed shape, the logits of a row depend
on the other rows of its batch by no more than the last bits of a 32-bit float, and for most
networks not at all.
"""


_LIKE = {"hidden": "(128, 64)", "dropout": "(0.5, 0.25)"}


class TabularClassifier(TableInput, Estimator):
    """A dense network for tables, with its `TableEncoder`.

    `fit` takes tables of any kind (see `TableEncoder`) and splits off steer rows first; means,
    scales and categories are computed on the train rows only. Missing values are allowed; ids and
    infinite numbers are errors, as is a column with the name of the labels. A column that
    separates the classes without error gives a warning about target leakage. A row with a number
    far outside the range of the train rows (see `NumberColumn`) gets equal probabilities for all
    classes, since the network cannot extrapolate.

    Its probabilities are not calibrated: the steer rows are used up, so pass the fitted
    classifier and other rows to `CalibratedModel`.

    Parameters
    ----------
    clean, categories, drop, max_categories, fold_case, decimal, missing, dates : see `TableEncoder`
    hidden, dropout, batch_norm : see `MLP`
    loss : a name like "adafocal", "focal:gamma=3" or "0.5*ce + 0.5*soft_f1", a function of
        (logits, labels) or a Module, which is copied
    epochs, batch_size, accumulate, optimizer, learning_rate, weight_decay, momentum, nesterov,
    schedule, milestones, warmup, clip, precision, compile, average : see `TrainingOptions`
    milestone_drop : `drop` of `TrainingOptions`
    patience : epochs without improvement after which to stop; None to run them all
    min_delta : minimum improvement of the metric of `choose_by` to count
    choose_by : metric of the steer split that chooses the epoch: "refinement" (log loss after
        temperature scaling), "nll" or "f1"; "last" uses the last epoch
    steer_share : share of the rows of every class that is split off as steer rows, if
        `fit` is given none
    resample : how to make the classes of the train rows equally frequent: "over" repeats rows of
        the smaller ones, "under" drops rows of the larger ones, "smote" (extra `resampling`) adds
        rows between encoded rows of the smaller ones; None for no resampling. The encoder is
        fitted before, and steer rows are not resampled. See `resampled` and `smote`
    correct_prior : whether to remove the shift of the logits caused by the loss (class weights,
        balanced softmax) and `resample`, so that probabilities match the class frequencies of the
        train rows
    seed : seed of the split, the initial weights, the row order and dropout
    device : "auto", "cpu", "cuda", "cuda:1"
    devices : processes, one for each GPU; more than one needs `torchrun` or a script that can be
        started again
    folder : folder for checkpoints, to resume after a crash; None for no checkpoints
    hooks : see `Hook`
    progress : whether to show a progress bar on stderr

    Attributes
    ----------
    classes_ : the classes in the order of the columns of `predict_proba`
    encoder_ : the fitted `TableEncoder`
    model_ : the network with the weights of the best epoch or their average, on the CPU
    options_ : the `TrainingOptions` that were used
    loss_ : the trained loss, with state such as AdaFocal's gammas
    records_ : one `EpochRecord` for each epoch
    best_epoch_, why_ : the best epoch, and the reason for the end of the run
    average_ : the `AverageRecord` of the averaged weights; None if none were averaged
    steer_places_ : positions of the rows that were split off for steering
    log_shift_ : (K,) shift that `predict_logits` subtracts from the logits of `model_`, or None
    n_features_in_, feature_names_in_ : the columns of the table, where it names them

    Examples
    --------
    >>> from calibrant import TabularClassifier
    >>> table = {"weight": [1.0, 2.0, None, 8.0, 9.0, 7.0] * 20, "fat": ["low", "Low"] * 60}
    >>> sold = ["few", "few", "few", "many", "many", "many"] * 20
    >>> model = TabularClassifier(epochs=20, learning_rate=0.01).fit(table, sold)
    >>> model.predict([{"fat": "LOW", "weight": 1.5}, {"fat": "low", "weight": 8.5}]).tolist()
    ['few', 'many']
    """

    _scoring_batch_size = _BLOCK
    _resample_methods = ("over", "under", "smote")

    def __init__(  # noqa: PLR0913  # scikit-learn finds and sets parameters one by one
        self,
        *,
        clean: Mapping[str, Mapping[str, str | None]] | None = None,
        categories: Sequence[str] = (),
        drop: Sequence[str] = (),
        max_categories: int = 50,
        fold_case: bool = True,
        decimal: str | None = None,
        missing: Sequence[str] = (),
        dates: str | None = None,
        hidden: Sequence[int] = (128, 64),
        dropout: Sequence[float] = (0.5, 0.25),
        batch_norm: bool = True,
        loss: LossLike = "ce",
        epochs: int = 100,
        batch_size: int = 64,
        accumulate: int = 1,
        optimizer: Optimizer = "adam",
        learning_rate: float = 1e-3,
        weight_decay: float = 0.0,
        momentum: float = 0.9,
        nesterov: bool = False,
        schedule: Schedule = "constant",
        milestones: Sequence[int] = (),
        milestone_drop: float = 0.1,
        warmup: float = 0.0,
        clip: float | None = None,
        precision: Precision = "32-true",
        compile: bool = False,
        patience: int | None = 10,
        min_delta: float = 1e-4,
        choose_by: ChooseBy = "refinement",
        average: Average = None,
        steer_share: float = 0.1,
        resample: Resampling | Literal["smote"] | None = None,
        correct_prior: bool = True,
        seed: int = 0,
        device: str = "auto",
        devices: int = 1,
        folder: str | Path | None = None,
        hooks: Sequence[Hook] = (),
        progress: bool = False,
    ) -> None:
        super().__init__(
            loss=loss,
            epochs=epochs,
            batch_size=batch_size,
            accumulate=accumulate,
            optimizer=optimizer,
            learning_rate=learning_rate,
            weight_decay=weight_decay,
            momentum=momentum,
            nesterov=nesterov,
            schedule=schedule,
            milestones=milestones,
            milestone_drop=milestone_drop,
            warmup=warmup,
            clip=clip,
            precision=precision,
            compile=compile,
            patience=patience,
            min_delta=min_delta,
            choose_by=choose_by,
            average=average,
            steer_share=steer_share,
            resample=resample,
            correct_prior=correct_prior,
            seed=seed,
            device=device,
            devices=devices,
            folder=folder,
            hooks=hooks,
            progress=progress,
        )
        self.clean = clean
        self.categories = categories
        self.drop = drop
        self.max_categories = max_categories
        self.fold_case = fold_case
        self.decimal = decimal
        self.missing = missing
        self.dates = dates
        self.hidden = hidden
        self.dropout = dropout
        self.batch_norm = batch_norm

    def _encode_rows(
        self, encoder: TableEncoder, rows: Table, labels: IntArray | None
    ) -> ArrayRows:
        features = encoder.transform(rows)
        if labels is None:
            features = np.pad(features, ((0, -len(features) % _BLOCK), (0, 0)))
        return ArrayRows(features, labels)

    def _mask_unscorable(self, rows: Table, logits: FloatArray) -> FloatArray:
        return np.where(self.encoder_.is_far(rows)[:, None], 0.0, logits)

    def _train_rows(
        self, encoder: TableEncoder, rows: Table, codes: IntArray, classes: NDArray[Any]
    ) -> tuple[BatchRows, FloatArray | None]:
        if self.resample != "smote":
            return super()._train_rows(encoder, rows, codes, classes)
        features = encoder.transform(rows)
        # By name, so that an error can name the class with too few rows.
        features, names, log_shift = smote(features, classes[codes], seed=self.seed)
        return ArrayRows(features, np.searchsorted(classes, names)), log_shift

    def _build_network(self, encoder: TableEncoder, n_classes: int) -> nn.Module:
        for name, like in _LIKE.items():
            value = getattr(self, name)
            if not isinstance(value, list | tuple | np.ndarray):
                raise InputError(
                    f"{name} must be a list with one number for each hidden layer, such as {like}, "
                    f"got {value!r}."
                )
        return MLP(
            len(encoder.get_feature_names_out()),
            n_classes,
            hidden=list(self.hidden),
            dropout=list(self.dropout),
            batch_norm=self.batch_norm,
        )
