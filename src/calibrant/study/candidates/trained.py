"""Train one candidate and keep what became of it: its scores, its network, its history."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

import numpy as np

from calibrant.errors import CalibrantError, TrainingError
from calibrant.files.atomic_write import write_atomically
from calibrant.inputs import FloatArray
from calibrant.study.candidates.candidate import Candidate
from calibrant.study.candidates.classifier import classifier_of
from calibrant.study.candidates.processes import Progress
from calibrant.study.candidates.training_warnings import training_warnings
from calibrant.study.rows.rows import StudyRows
from calibrant.study.settings.config import StudyConfig

if TYPE_CHECKING:
    from calibrant.models.scorer import Scorer

__all__ = [
    "SCORED",
    "TrainedCandidate",
    "keep",
    "kept_in",
    "load_trained",
    "refinement_of",
    "train_candidate",
]

SCORED = ("steer", "choice", "log_test", "calibrate", "test", "out_of_scope")
"""Splits that every candidate scores once it is trained."""

_DONE, _LOGITS, _CHECKPOINTS = "done.json", "logits.npz", "checkpoints"
_FACTS = {
    "fingerprint", "refinement", "epochs", "best_epoch", "seconds", "weights", "records", "gammas",
    "warnings",
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
        `warnings`, and of a network `scorer`, what its files are
    """

    candidate: Candidate
    folder: Path
    logits: Mapping[str, FloatArray]
    facts: Mapping[str, Any]

    @property
    def refinement(self) -> float:
        """Log loss of the choice rows after temperature scaling on them; see `refinement_of`."""
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
    folder is complete. Of several processes that train it together only the first one scores.
    """
    from calibrant.models.scorer import Scorer

    started = time.perf_counter()
    train, steer = rows["train"], rows["steer"]
    model = classifier_of(config, candidate, folder / _CHECKPOINTS, progress)
    with training_warnings() as told:
        model.fit(
            train.inputs, rows.labels(train.codes), steer=(steer.inputs, rows.labels(steer.codes))
        )
    if config.devices > 1 and os.environ.get("RANK", "0") != "0":
        return
    best = model.records_[model.best_epoch_]
    if not np.isfinite(best.refinement):
        raise TrainingError(
            "training diverged: its log loss is infinite; try a smaller learning rate."
        )
    logits = {
        name: model.predict_logits(rows[name].inputs) for name in SCORED if len(rows[name].codes)
    }
    history = getattr(model.loss_, "history", None)
    facts = {
        "refinement": refinement_of(rows, logits),
        "epochs": len(model.records_),
        "best_epoch": model.best_epoch_,
        "seconds": time.perf_counter() - started,
        "weights": sum(part.numel() for part in model.model_.parameters()),
        "records": [record.to_dict() for record in model.records_],
        "gammas": history.to_dict() if history is not None and len(history) else None,
        "warnings": told,
        "scorer": Scorer.of(model, **_reads(config)).save(folder),
    }
    keep(folder, candidate, logits, facts)
    shutil.rmtree(folder / _CHECKPOINTS, ignore_errors=True)


def _reads(config: StudyConfig) -> dict[str, Any]:
    """Return what was done to the rows before the classifier saw them."""
    resized = config.image_size is not None
    return {"column": config.text, "redact": config.redact, "resize": resized}


def load_trained(folder: Path, candidate: Candidate, rows: StudyRows) -> TrainedCandidate | None:
    """Return what an earlier run left in a folder; None where that is damaged or not complete."""
    kept = kept_in(folder, candidate, rows)
    if kept is None:
        return None
    found = TrainedCandidate(candidate, folder, *kept)
    try:
        found.scorer()  # what cannot be loaded is trained again
    except (OSError, ValueError, LookupError, TypeError, CalibrantError):
        return None
    return found


def refinement_of(rows: StudyRows, logits: Mapping[str, FloatArray]) -> float:
    """Return the log loss of the choice rows after temperature scaling on them.

    A single candidate has no choice rows, as nothing is to be chosen: then it is that of the steer
    rows. It is taken from the logits that are kept, for networks and averages alike: a record of
    the training may have been made in fewer digits.
    """
    from calibrant.training.steer_figures import steer_figures

    split = rows.compared_on
    return steer_figures(logits[split], rows[split].codes).refinement


def keep(
    folder: Path, candidate: Candidate, logits: Mapping[str, FloatArray], facts: Mapping[str, Any]
) -> None:
    """Write the logits of a candidate, then its record, which marks the folder as complete."""
    arrays: dict[str, Any] = dict(logits)
    with write_atomically(folder / _LOGITS, name="logits") as draft, draft.open("wb") as file:
        np.savez(file, **arrays)
    own = {"loss": candidate.loss, "seed": candidate.seed, "way": candidate.way}
    told = {"format": 1, **own, "fingerprint": candidate.fingerprint, **facts}
    with write_atomically(folder / _DONE, name="candidate") as draft:
        draft.write_text(json.dumps(told), encoding="utf-8")


def kept_in(
    folder: Path, candidate: Candidate, rows: StudyRows
) -> tuple[dict[str, FloatArray], dict[str, Any]] | None:
    """Return the logits and facts that `keep` wrote; None where they are damaged or not these."""
    try:
        facts = json.loads((folder / _DONE).read_text(encoding="utf-8"))
        with np.load(folder / _LOGITS, allow_pickle=False) as saved:
            logits = {name: np.asarray(saved[name], dtype=np.float64) for name in saved.files}
        shapes = {name: (len(rows[name]), len(rows.classes)) for name in SCORED if len(rows[name])}
        whole = all(logits[name].shape == shape for name, shape in shapes.items())
        whole = whole and bool(np.isfinite(facts["refinement"])) and set(facts) >= _FACTS
        same = facts["fingerprint"] == candidate.fingerprint
    except (OSError, EOFError, ValueError, LookupError, TypeError, BadZipFile):
        return None
    return (logits, facts) if whole and same else None
