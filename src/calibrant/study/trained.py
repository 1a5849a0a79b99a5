"""Train one candidate and keep what became of it: its scores, its network, its history."""

from __future__ import annotations

import json
import shutil
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

import numpy as np

from calibrant.data.whole_file import whole_file
from calibrant.errors import CalibrantError, TrainingError
from calibrant.inputs import FloatArray
from calibrant.study.candidate import Candidate
from calibrant.study.config import StudyConfig
from calibrant.study.defaults import SMALL, TEXT
from calibrant.study.rows import StudyRows

if TYPE_CHECKING:
    from calibrant.models.scorer import Scorer
    from calibrant.training.estimator import Estimator

__all__ = ["SCORED", "TrainedCandidate", "load_trained", "train_candidate"]

Progress = Callable[[str], None]

SCORED = ("steer", "log_test", "calibrate", "test", "out_of_scope")
"""Splits that every candidate scores once it is trained."""

_DONE, _LOGITS, _CHECKPOINTS = "done.json", "logits.npz", "checkpoints"
_FACTS = {
    "fingerprint", "refinement", "epochs", "best_epoch", "seconds", "weights", "records", "gammas",
    "warnings", "scorer",
}  # fmt: skip


@dataclass(frozen=True)
class TrainedCandidate:
    """A trained candidate as its folder holds it.

    Parameters
    ----------
    candidate : which one
    folder : where its network lies
    logits : for each split that was scored its (n, K) logits, what resampling and the loss moved
        them by taken off
    facts : `refinement`, `epochs`, `best_epoch`, `seconds`, `weights`, `records`, `gammas`,
        `warnings`, and `scorer`, what the network's files are
    """

    candidate: Candidate
    folder: Path
    logits: Mapping[str, FloatArray]
    facts: Mapping[str, Any]

    @property
    def refinement(self) -> float:
        """Log loss of the steer rows after temperature scaling on them."""
        return float(self.facts["refinement"])

    def scorer(self) -> Scorer:
        """Return the running model."""
        from calibrant.models.scorer import Scorer

        return Scorer.load(self.facts["scorer"], self.folder)


def train_candidate(
    rows: StudyRows, config: StudyConfig, candidate: Candidate, folder: Path, progress: Progress
) -> None:
    """Train a candidate, score the splits with it, and put all of it into its folder.

    A run that was killed goes on at its last checkpoint. `done.json` is written last: with it, the
    folder is complete.
    """
    from calibrant.models.scorer import Scorer

    started = time.perf_counter()
    train, steer = rows["train"], rows["steer"]
    model = _estimator(config, candidate, folder / _CHECKPOINTS, progress)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        model.fit(
            train.inputs, rows.labels(train.codes), steer=(steer.inputs, rows.labels(steer.codes))
        )
    best = model.records_[model.best_epoch_]
    if not np.isfinite(best.refinement):
        raise TrainingError(
            "training diverged: its log loss is infinite; try a smaller learning rate."
        )
    logits: dict[str, Any] = {
        name: model.predict_logits(rows[name].inputs) for name in SCORED if len(rows[name].codes)
    }
    with whole_file(folder / _LOGITS, name="logits") as draft, draft.open("wb") as file:
        np.savez(file, **logits)
    history = getattr(model.loss_, "history", None)
    facts = {
        "format": 1,
        "loss": candidate.loss,
        "seed": candidate.seed,
        "fingerprint": candidate.fingerprint,
        "refinement": best.refinement,
        "epochs": len(model.records_),
        "best_epoch": model.best_epoch_,
        "seconds": time.perf_counter() - started,
        "weights": sum(part.numel() for part in model.model_.parameters()),
        "records": [record.to_dict() for record in model.records_],
        "gammas": history.to_dict() if history is not None and len(history) else None,
        "warnings": sorted({str(one.message) for one in caught}),
        "scorer": Scorer.of(model, column=config.text, redact=config.redact).save(folder),
    }
    with whole_file(folder / _DONE, name="candidate") as draft:
        draft.write_text(json.dumps(facts), encoding="utf-8")
    shutil.rmtree(folder / _CHECKPOINTS, ignore_errors=True)


def load_trained(folder: Path, candidate: Candidate, rows: StudyRows) -> TrainedCandidate | None:
    """Return what an earlier run left in a folder; None where that is damaged or not complete."""
    try:
        facts = json.loads((folder / _DONE).read_text(encoding="utf-8"))
        with np.load(folder / _LOGITS, allow_pickle=False) as saved:
            logits = {name: np.asarray(saved[name], dtype=np.float64) for name in saved.files}
        found = TrainedCandidate(candidate, folder, logits, facts)
        shapes = {name: (len(rows[name]), len(rows.classes)) for name in SCORED if len(rows[name])}
        whole = all(logits[name].shape == shape for name, shape in shapes.items())
        whole = whole and bool(np.isfinite(found.refinement)) and set(facts) >= _FACTS
        if not whole or facts["fingerprint"] != candidate.fingerprint:
            return None
        found.scorer()  # what cannot be loaded is trained again
    except (OSError, EOFError, ValueError, LookupError, TypeError, BadZipFile, CalibrantError):
        return None
    return found


def _estimator(
    config: StudyConfig, candidate: Candidate, folder: Path, progress: Progress
) -> Estimator:
    """Make the classifier that a candidate is."""
    from calibrant.study.epoch_messages import EpochMessages

    shared: dict[str, Any] = {
        "loss": candidate.loss,
        "seed": candidate.seed,
        "folder": folder,
        "resample": config.resample,
    }
    if config.text is None:
        from calibrant.training import TabularClassifier

        shared |= {"categories": config.categories, **config.model_options, **config.training}
        made: Estimator = TabularClassifier(**shared)
    else:
        from calibrant.training import TextClassifier

        model = config.model or "bilstm"
        options = {**(SMALL if model == "bilstm" else {}), **config.model_options}
        shared |= {"model": model, "model_options": options, **TEXT, **config.training}
        made = TextClassifier(**shared)
    made.set_params(hooks=(EpochMessages(candidate.loss, made.epochs, progress),))
    return made
