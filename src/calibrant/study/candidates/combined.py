"""Candidates that average trained networks: ensembles and MC dropout."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from calibrant.bundle.files import sha256_of
from calibrant.data.row_scorer import RowScorer
from calibrant.errors import TrainingError
from calibrant.inputs import FloatArray
from calibrant.study.candidates.candidate import StudyCandidate
from calibrant.study.candidates.trained import (
    SCORED_SPLITS,
    TrainedCandidate,
    compute_refinement,
    load_trained,
    read_saved,
    save_candidate,
)
from calibrant.study.rows.rows import StudyRows

MASK_SEED = 0
"""Seed of the MC dropout masks, fixed so that bundles are reproducible."""


@dataclass(frozen=True)
class CombinedCandidate(TrainedCandidate):
    """An average of trained networks, evaluated and packed as one model.

    Parameters
    ----------
    candidate, folder, logits, facts : as in `TrainedCandidate`, without epochs and records
    members : the networks that it averages
    """

    members: tuple[TrainedCandidate, ...] = ()

    def scorer(self) -> RowScorer:
        """Load the model with its members."""
        from calibrant.models.scorer import Scorer

        members = [member.scorer() for member in self.members]
        networks = [member for member in members if isinstance(member, Scorer)]
        assert len(networks) == len(members)  # averages of seeds and of passes are for networks
        if self.candidate.way == "ensemble":
            return Scorer.ensemble(networks)
        return Scorer.mc_dropout(networks[0], self.candidate.passes, seed=MASK_SEED)


def build_ensemble(
    candidate: StudyCandidate,
    outcomes: Sequence[TrainedCandidate | str],
    folder: Path,
    rows: StudyRows,
) -> CombinedCandidate | str:
    """Average the networks of all seeds of a loss from their saved logits."""
    members = tuple(each for each in outcomes if isinstance(each, TrainedCandidate))
    if len(members) < 2:
        return (
            f"an ensemble needs at least two networks, but {len(members)} of the {len(outcomes)} "
            f"of {candidate.loss} could be trained."
        )
    from calibrant.models.ensemble import average_logits

    shifts = [member.facts["scorer"]["log_shift"] for member in members]
    logits = {
        name: average_logits([member.logits[name] for member in members], shifts)
        for name in scored_splits(rows)
    }
    return CombinedCandidate(
        candidate, folder / candidate.folder, logits, combined_facts(members, logits, rows), members
    )


def score_mc_dropout(
    rows: StudyRows, candidate: StudyCandidate, folder: Path, progress: Callable[[str], None]
) -> None:
    """Score all splits with MC dropout passes of a trained network, and save the logits."""
    started = time.perf_counter()
    member = _load_member(folder, candidate, rows)
    if member is None:
        raise TrainingError(f"the saved network of {candidate.members[0].name} cannot be read.")
    model = CombinedCandidate(candidate, folder, {}, {}, (member,)).scorer()
    logits: dict[str, FloatArray] = {}
    for name in scored_splits(rows):
        progress(f"{candidate.name}: scoring the {name.replace('_', ' ')} rows")
        logits[name] = model.predict_logits(rows[name].inputs)
    facts = combined_facts((member,), logits, rows)
    facts["seconds"] += time.perf_counter() - started
    facts["network"] = _hash_weights(member)
    save_candidate(folder, candidate, logits, facts)


def load_mc_dropout(
    folder: Path, candidate: StudyCandidate, rows: StudyRows
) -> CombinedCandidate | None:
    """Return a saved MC dropout candidate.

    None if its folder is incomplete or damaged, or if the network was retrained since: the saved
    logits then belong to other weights.
    """
    saved = read_saved(folder, candidate, rows)
    member = None if saved is None else _load_member(folder, candidate, rows)
    if saved is None or member is None or saved[1].get("network") != _hash_weights(member):
        return None
    return CombinedCandidate(candidate, folder, *saved, (member,))


def _load_member(
    folder: Path, candidate: StudyCandidate, rows: StudyRows
) -> TrainedCandidate | None:
    member = candidate.members[0]
    return load_trained(folder.parent / member.folder, member, rows)


def _hash_weights(member: TrainedCandidate) -> str:
    """Return a hash of the weights of a trained network."""
    from calibrant.models.saved_parts import WEIGHTS

    return sha256_of(member.folder / WEIGHTS)


def scored_splits(rows: StudyRows) -> list[str]:
    """Return the splits that have rows to score."""
    return [name for name in SCORED_SPLITS if len(rows[name])]


def combined_facts(
    members: Sequence[TrainedCandidate], logits: dict[str, FloatArray], rows: StudyRows
) -> dict[str, Any]:
    """Return the refinement, and the total cost of the members."""
    return {
        "refinement": compute_refinement(rows, logits),
        "epochs": 0,
        "best_epoch": 0,
        "seconds": sum(member.facts["seconds"] for member in members),
        "weights": sum(member.facts["weights"] for member in members),
        "records": [],
        "gammas": None,
        "score_seconds": sum(member.facts.get("score_seconds", 0.0) for member in members),
        "warnings": [],
    }
