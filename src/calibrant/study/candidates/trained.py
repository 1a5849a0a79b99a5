"""Training one candidate, and its saved logits, network and history."""

from __future__ import annotations

import json
import os
import shutil
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from calibrant.bundle.scorers import load_scorer
from calibrant.calibrators import TemperatureScaling
from calibrant.convert import log_probs_from_logits
from calibrant.data.encoders.column_warning import ColumnWarning
from calibrant.data.row_scorer import RowScorer
from calibrant.errors import CalibrantError, TrainingError
from calibrant.files.atomic_write import write_atomically
from calibrant.inputs import FloatArray, IntArray
from calibrant.study.candidates.candidate import StudyCandidate
from calibrant.study.candidates.classifier import build_classifier
from calibrant.study.candidates.processes import Progress
from calibrant.study.rows.rows import StudyRows
from calibrant.study.settings.config import StudyConfig
from calibrant.study.settings.models import is_network

_INTERNAL_PACKAGES = frozenset({"lightning_fabric", "torch", "triton"})
"""Packages whose warnings are about themselves, not about the training."""


SCORED_SPLITS = ("steer", "choice", "log_test", "calibrate", "test", "out_of_scope")
"""Splits that every trained candidate scores."""

_DONE, _LOGITS, _CHECKPOINTS = "done.json", "logits.npz", "checkpoints"
_FACTS = {
    "fingerprint", "refinement", "epochs", "best_epoch", "seconds", "weights", "records", "gammas",
    "warnings",
}  # fmt: skip


@dataclass(frozen=True)
class TrainedCandidate:
    """A trained candidate, as saved in its folder.

    Parameters
    ----------
    candidate : the candidate
    folder : folder with its network
    logits : (n, K) logits of each scored split, corrected for the shift caused by resampling and
        the loss
    facts : `refinement`, `epochs`, `best_epoch`, `seconds`, `weights`, `records`, `gammas`,
        `warnings`, and for a network `scorer`, the record of its files
    """

    candidate: StudyCandidate
    folder: Path
    logits: Mapping[str, FloatArray]
    facts: Mapping[str, Any]

    @property
    def refinement(self) -> float:
        """Log loss of the choice rows after temperature scaling; see `compute_refinement`."""
        return float(self.facts["refinement"])

    def scorer(self) -> RowScorer:
        """Load the model."""
        return load_scorer(self.facts["scorer"], self.folder)

    def choice_losses(self, rows: StudyRows) -> FloatArray:
        """Return the log loss of each choice row (n,), after temperature scaling on them.

        Their mean is `refinement`.
        """
        split = rows.compared_on
        return tempered_losses(self.logits[split], rows[split].codes)


def fit_and_save_candidate(
    rows: StudyRows,
    config: StudyConfig,
    candidate: StudyCandidate,
    folder: Path,
    progress: Progress,
) -> None:
    """Train a candidate, score the splits with it, and save both in its folder.

    An interrupted run resumes from its last checkpoint. `done.json` is written last and marks the
    folder as complete. If several processes train together, only the first one scores.
    """
    started = time.perf_counter()
    train, steer = rows["train"], rows["steer"]
    model = build_classifier(config, candidate, folder / _CHECKPOINTS, progress)
    with training_warnings() as messages:
        model.fit(
            train.inputs, rows.labels(train.codes), steer=(steer.inputs, rows.labels(steer.codes))
        )
    if config.devices > 1 and os.environ.get("RANK", "0") != "0":
        return
    best = model.records_[model.best_epoch_]
    if not np.isfinite(best.refinement):
        raise TrainingError(
            "training diverged, its log loss is infinite: try a smaller learning rate."
        )
    trained_after = time.perf_counter() - started
    scorer = model.to_scorer(**_preprocessing(config))
    # A network may be on a GPU; other models are scored as the bundle does, which knows what they
    # cannot read.
    scoring = model if is_network(config, candidate.model) else scorer
    logits = {
        name: scoring.predict_logits(rows[name].inputs)
        for name in SCORED_SPLITS
        if len(rows[name].codes)
    }
    scored_after = time.perf_counter() - started
    history = getattr(model.loss_, "history", None)
    facts = {
        "refinement": compute_refinement(rows, logits),
        "epochs": len(model.records_),
        "best_epoch": model.best_epoch_,
        "seconds": scored_after,
        "score_seconds": (scored_after - trained_after) / max(sum(map(len, logits.values())), 1),
        "weights": model.n_weights_,
        "records": [record.to_dict() for record in model.records_],
        "gammas": history.to_dict() if history is not None and len(history) else None,
        "warnings": messages,
        "scorer": scorer.save(folder),
    }
    save_candidate(folder, candidate, logits, facts)
    shutil.rmtree(folder / _CHECKPOINTS, ignore_errors=True)


def _preprocessing(config: StudyConfig) -> dict[str, Any]:
    """Return how rows were preprocessed before training."""
    resized = config.image_size is not None
    return {"column": config.text, "redact": config.redact, "resize": resized}


def load_trained(
    folder: Path, candidate: StudyCandidate, rows: StudyRows
) -> TrainedCandidate | None:
    """Return a saved candidate, or None if its folder is incomplete or damaged."""
    saved = read_saved(folder, candidate, rows)
    if saved is None:
        return None
    trained = TrainedCandidate(candidate, folder, *saved)
    try:
        trained.scorer()  # a model that cannot be loaded is trained again
    except (OSError, ValueError, LookupError, TypeError, CalibrantError):
        return None
    return trained


def compute_refinement(rows: StudyRows, logits: Mapping[str, FloatArray]) -> float:
    """Return the log loss of the choice rows after temperature scaling on them.

    A single candidate has no choice rows, so the steer rows are used instead. Networks and averages
    are both measured on their saved logits: training records may have lower precision.
    """
    from calibrant.fitting.steer_figures import steer_figures

    split = rows.compared_on
    return steer_figures(logits[split], rows[split].codes).refinement


def tempered_losses(logits: FloatArray, codes: IntArray) -> FloatArray:
    """Return the log loss of each row (n,), after temperature scaling on the same rows.

    The temperature is that of `steer_figures`, so that the mean is the refinement.
    """
    classes = range(logits.shape[1])
    scaling = TemperatureScaling(smooth=True).fit(logits, codes, classes=classes)
    log_probs = log_probs_from_logits(logits / float(scaling.temperature_))
    return -log_probs[np.arange(len(codes)), codes]


def save_candidate(
    folder: Path,
    candidate: StudyCandidate,
    logits: Mapping[str, FloatArray],
    facts: Mapping[str, Any],
) -> None:
    """Save the logits of a candidate, then its record, which marks the folder as complete."""
    arrays: dict[str, Any] = dict(logits)
    with write_atomically(folder / _LOGITS, name="logits") as draft, draft.open("wb") as file:
        np.savez(file, **arrays)
    identity = {name: getattr(candidate, name) for name in ("model", "loss", "seed", "way")}
    record = {"format": 1, **identity, "fingerprint": candidate.fingerprint, **facts}
    with write_atomically(folder / _DONE, name="candidate") as draft:
        draft.write_text(json.dumps(record), encoding="utf-8")


def read_saved(
    folder: Path, candidate: StudyCandidate, rows: StudyRows
) -> tuple[dict[str, FloatArray], dict[str, Any]] | None:
    """Return the logits and facts that `save_candidate` wrote, or None if damaged or outdated."""
    try:
        facts = json.loads((folder / _DONE).read_text(encoding="utf-8"))
        with np.load(folder / _LOGITS, allow_pickle=False) as saved:
            logits = {name: np.asarray(saved[name], dtype=np.float64) for name in saved.files}
        shapes = {
            name: (len(rows[name]), len(rows.classes)) for name in SCORED_SPLITS if len(rows[name])
        }
        whole = all(logits[name].shape == shape for name, shape in shapes.items())
        whole = whole and bool(np.isfinite(facts["refinement"])) and set(facts) >= _FACTS
        same = facts["fingerprint"] == candidate.fingerprint
    except (OSError, EOFError, ValueError, LookupError, TypeError, BadZipFile):
        return None
    return (logits, facts) if whole and same else None


@contextmanager
def training_warnings() -> Iterator[list[str]]:
    """Yield a list that is filled with the distinct warnings when the block ends.

    Warnings about columns name the remedy on the command line.

    Examples
    --------
    >>> with training_warnings() as messages:
    ...     warnings.warn("no row of class 3", UserWarning, stacklevel=1)
    >>> messages
    ['no row of class 3']
    """
    messages: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield messages
    relevant = (
        warning
        for warning in caught
        if issubclass(warning.category, UserWarning) and not _is_internal(warning.filename)
    )
    messages += sorted({_text(warning.message) for warning in relevant})


def _text(warning: Warning | str) -> str:
    return warning.command_text if isinstance(warning, ColumnWarning) else str(warning)


def _is_internal(file: str) -> bool:
    return not _INTERNAL_PACKAGES.isdisjoint(Path(file).parts)
