"""Race the models, compare losses on the winner, and mix what was trained."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from calibrant.study.candidates.candidate import StudyCandidate, list_candidates, list_racers
from calibrant.study.candidates.processes import Progress
from calibrant.study.candidates.train_all import Outcome, train_candidates
from calibrant.study.candidates.trained import TrainedCandidate
from calibrant.study.candidates.weighted import build_weighted
from calibrant.study.choose import compare_candidates
from calibrant.study.rows.rows import StudyRows
from calibrant.study.settings.config import StudyConfig


@dataclass(frozen=True)
class TrainedStudy:
    """All candidates of a study with their outcomes.

    Parameters
    ----------
    candidates : those of the race first, then those of the winner, the weighted ensemble last
    outcomes : the outcome of each
    models : the models, the winner of the race first
    """

    candidates: tuple[StudyCandidate, ...]
    outcomes: tuple[Outcome, ...]
    models: tuple[str, ...]


def train_study(
    rows: StudyRows, config: StudyConfig, folder: Path, progress: Progress
) -> TrainedStudy:
    """Race the models with cross-entropy, then train the other losses on the winner."""
    racers = list_racers(config, rows.files, rows.splits)
    outcomes: dict[StudyCandidate, Outcome] = {}
    if racers:
        trained = train_candidates(rows, config, racers, folder, progress)
        outcomes |= dict(zip(racers, trained, strict=True))
    models = _order_models(rows, config, outcomes)
    if racers and any(isinstance(outcome, TrainedCandidate) for outcome in outcomes.values()):
        progress(f"{models[0]} won the race of the models")
    own = list_candidates(config, rows.files, rows.splits, models[0])
    trained = train_candidates(rows, config, own, folder, progress, outcomes)
    outcomes |= dict(zip(own, trained, strict=True))
    if config.compares:
        ready = [each for each in outcomes.values() if isinstance(each, TrainedCandidate)]
        ensemble = build_weighted(ready, folder, rows, seed=config.seed)
        if ensemble is not None:
            outcomes[ensemble.candidate] = ensemble
    return TrainedStudy(tuple(outcomes), tuple(outcomes.values()), models)


def _order_models(
    rows: StudyRows, config: StudyConfig, outcomes: dict[StudyCandidate, Outcome]
) -> tuple[str, ...]:
    """Return the models with the winner of the race first; as they are if there was no race."""
    models = config.models
    if not any(isinstance(outcome, TrainedCandidate) for outcome in outcomes.values()):
        return models
    racers = list(outcomes)
    comparison = compare_candidates(rows, racers, list(outcomes.values()), models)
    winner = racers[comparison.chosen].model
    return (winner, *(model for model in models if model != winner))
