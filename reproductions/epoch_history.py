"""Training hook that evaluates the test rows after each epoch, for the charts only."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from calibrant.convert import probs_from_logits
from calibrant.data.resampling import Resampling, resample_rows
from calibrant.fitting.epoch_record import EpochRecord
from calibrant.metrics import measure
from calibrant.training.estimator import Estimator
from calibrant.training.hooks import Hook, Run
from calibrant.training.scoring import predict_logits
from reproductions.parts import Parts
from reproductions.score_files import as_saved

__all__ = ["EpochHistory"]


class EpochHistory(Hook):
    """Error, calibration error and log loss of the test rows, epoch by epoch, for the figures.

    Nothing of it reaches the run: epochs are chosen, and gammas follow, by the steer rows alone.
    What the loss and resampling move logits by is taken off as `Estimator.predict_logits` does.

    Parameters
    ----------
    model : the classifier that is going to be fitted
    parts : the rows
    every : epochs from one look to the next; the first and the last are looked at in any case

    Attributes
    ----------
    epochs : one dict for each epoch that was looked at
    first : epochs that an interrupted run had made before this one went on
    seconds : that looking took since, which are not the run's
    """

    def __init__(self, model: Estimator, parts: Parts, *, every: int = 1) -> None:
        self.epochs: list[dict[str, float]] = []
        self.first = 0
        self.seconds = 0.0
        self._every = every
        self._model, self._parts = model, parts
        self._rows: Any = None
        self._shift: Any = 0.0

    def state_dict(self) -> dict[str, Any]:
        """Return the epochs so far."""
        return {"epochs": self.epochs}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on after the epochs of a checkpoint."""
        self.epochs = list(state["epochs"])

    def on_train_start(self, run: Run) -> None:
        """Encode the test rows once, as the classifier encodes them."""
        started = time.perf_counter()
        self.first = run.epoch
        # An encoder depends on the train rows alone, so this one is that of the classifier.
        encoder = self._model._new_encoder()
        encoder.fit(self._model._read_input(self._parts.train.inputs, "X", encoder))
        test = self._model._read_input(self._parts.test.inputs, "X", encoder)
        rows = self._model._encode_rows(encoder, test, self._parts.test.labels)
        self._rows = rows.to(run.fabric.device)
        if self._model.resample is not None and self._model.correct_prior:
            drawn = resample_rows(
                self._parts.train.labels,
                cast(Resampling, self._model.resample),
                seed=self._model.seed,
            )
            self._shift = drawn.log_shift
        self.seconds += time.perf_counter() - started

    def on_epoch_end(self, run: Run, record: EpochRecord) -> None:
        """Score and measure the test rows."""
        last = self._model._options().epochs - 1
        if record.epoch % self._every and record.epoch != last:
            return
        started = time.perf_counter()
        labels = self._parts.test.labels
        # The network itself, not its wrapper, which would be recompiled for these batches.
        network = getattr(run.model, "module", run.model)
        with run.fabric.autocast():
            scored = predict_logits(network, self._rows)[: len(labels)]
        logits = scored.astype(np.float64) - self._shift
        shift = getattr(run.loss, "log_shift", None)
        if callable(shift) and self._model.correct_prior and (own := shift()) is not None:
            logits = logits - own.detach().cpu().double().numpy()
        names = ("accuracy", "ece_em", "nll")
        figures = measure(
            labels, probs_from_logits(as_saved(logits)), names=names,
            classes=range(logits.shape[1]), target="top-label",
        )  # fmt: skip
        self.epochs.append(
            {"epoch": record.epoch, "error": 1 - figures["accuracy"], "ece_em": figures["ece_em"],
             "nll": figures["nll"]}
        )  # fmt: skip
        self.seconds += time.perf_counter() - started
