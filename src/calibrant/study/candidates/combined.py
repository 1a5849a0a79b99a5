"""Candidates that are averages of trained networks: ensembles, and MC dropout."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibrant.bundle.files import sha256_of
from calibrant.errors import TrainingError
from calibrant.inputs import FloatArray
from calibrant.study.candidates.candidate import Candidate
from calibrant.study.candidates.trained import (
    SCORED,
    TrainedCandidate,
    keep,
    kept_in,
    load_trained,
    refinement_of,
)
from calibrant.study.rows.rows import StudyRows

if TYPE_CHECKING:
    from calibrant.models.scorer import Scorer

__all__ = ["CombinedCandidate", "ensemble_of", "load_thinned", "score_thinned"]

MASK_SEED = 0
"""Of what MC dropout leaves out: the same in every study, so that a bundle can be made again."""


@dataclass(frozen=True)
class CombinedCandidate(TrainedCandidate):
    """An average of trained networks, judged and packed as one model.

    Parameters
    ----------
    candidate, folder, logits, facts : as of a trained one; no epochs and no records of its own
    members : the networks that it averages
    """

    members: tuple[TrainedCandidate, ...] = ()

    def scorer(self) -> Scorer:
        """Return the running model, which holds its members."""
        from calibrant.models.scorer import Scorer

        if self.candidate.way == "ensemble":
            return Scorer.together([one.scorer() for one in self.members])
        return Scorer.thinned(self.members[0].scorer(), self.candidate.passes, seed=MASK_SEED)


def ensemble_of(
    candidate: Candidate, outcomes: Sequence[TrainedCandidate | str], folder: Path, rows: StudyRows
) -> CombinedCandidate | str:
    """Average the networks of all seeds of a loss; nothing is trained, and nothing scored again."""
    members = tuple(one for one in outcomes if isinstance(one, TrainedCandidate))
    if len(members) < 2:
        return (
            f"an ensemble needs at least two networks, but {len(members)} of the {len(outcomes)} "
            f"of {candidate.loss} could be trained."
        )
    from calibrant.models.ensemble import logits_together

    shifts = [one.facts["scorer"]["log_shift"] for one in members]
    logits = {
        name: logits_together([one.logits[name] for one in members], shifts)
        for name in _splits(rows)
    }
    return CombinedCandidate(
        candidate, folder / candidate.folder, logits, _facts(members, logits, rows), members
    )


def score_thinned(
    rows: StudyRows, candidate: Candidate, folder: Path, progress: Callable[[str], None]
) -> None:
    """Score all splits with thinned copies of a trained network, and keep that in a folder."""
    started = time.perf_counter()
    member = _member(folder, candidate, rows)
    if member is None:
        raise TrainingError(f"what {candidate.members[0].name} left behind cannot be read again.")
    model = CombinedCandidate(candidate, folder, {}, {}, (member,)).scorer()
    logits: dict[str, FloatArray] = {}
    for name in _splits(rows):
        progress(f"{candidate.name}: scoring the {name.replace('_', ' ')} rows")
        logits[name] = model.predict_logits(rows[name].inputs)
    facts = _facts((member,), logits, rows)
    facts["seconds"] += time.perf_counter() - started
    facts["network"] = _weights_of(member)
    keep(folder, candidate, logits, facts)


def load_thinned(folder: Path, candidate: Candidate, rows: StudyRows) -> CombinedCandidate | None:
    """Return what an earlier run left in a folder.

    None where that is damaged or not complete, or where the network was trained again since: the
    logits are those of other weights then.
    """
    kept = kept_in(folder, candidate, rows)
    member = None if kept is None else _member(folder, candidate, rows)
    if kept is None or member is None or kept[1].get("network") != _weights_of(member):
        return None
    return CombinedCandidate(candidate, folder, *kept, (member,))


def _member(folder: Path, candidate: Candidate, rows: StudyRows) -> TrainedCandidate | None:
    one = candidate.members[0]
    return load_trained(folder.parent / one.folder, one, rows)


def _weights_of(member: TrainedCandidate) -> str:
    """Return a hash of the weights of a trained network."""
    from calibrant.models.saved_parts import WEIGHTS

    return sha256_of(member.folder / WEIGHTS)


def _splits(rows: StudyRows) -> list[str]:
    return [name for name in SCORED if len(rows[name])]


def _facts(
    members: Sequence[TrainedCandidate], logits: dict[str, FloatArray], rows: StudyRows
) -> dict[str, Any]:
    """Return what is known: the figure that chooses, and what its members cost together."""
    return {
        "refinement": refinement_of(rows, logits),
        "epochs": 0,
        "best_epoch": 0,
        "seconds": sum(one.facts["seconds"] for one in members),
        "weights": sum(one.facts["weights"] for one in members),
        "records": [],
        "gammas": None,
        "warnings": [],
    }
