"""Make the candidates that are not there yet, one after the other or side by side."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, as_completed
from pathlib import Path
from typing import Any

from calibrant.cores import usable_cores
from calibrant.errors import CalibrantError, MissingExtra, TrainingError
from calibrant.study.candidates.candidate import Candidate
from calibrant.study.candidates.combined import ensemble_of, load_thinned, score_thinned
from calibrant.study.candidates.devices import train_on_devices
from calibrant.study.candidates.processes import Progress, working_side_by_side
from calibrant.study.candidates.trained import TrainedCandidate, load_trained, train_candidate
from calibrant.study.rows.rows import StudyRows
from calibrant.study.settings.config import StudyConfig

__all__ = ["Outcome", "train_all"]

Outcome = TrainedCandidate | str
"""A trained candidate, or one sentence about why it could not be trained."""

_worker: dict[str, Any] = {}


def train_all(
    rows: StudyRows,
    config: StudyConfig,
    candidates: Sequence[Candidate],
    folder: Path,
    progress: Progress,
) -> list[Outcome]:
    """Return what became of each candidate, in their order.

    Networks are trained first, then what averages them is made. Those that an earlier run finished
    are read from `folder`. One that fails is reported by its sentence and does not stop the others.
    """
    found: dict[Candidate, Outcome] = {}
    for way in ("one", "mc_dropout"):
        asked = [candidate for candidate in candidates if candidate.way == way]
        _make(rows, config, asked, folder, progress, found)
    for candidate in candidates:
        if candidate.way == "ensemble":
            members = [found[one] for one in candidate.members]
            found[candidate] = ensemble_of(candidate, members, folder, rows)
            if isinstance(found[candidate], str):
                progress(f"{candidate.name}: failed: {found[candidate]}")
    return [found[candidate] for candidate in candidates]


def _make(
    rows: StudyRows,
    config: StudyConfig,
    candidates: Sequence[Candidate],
    folder: Path,
    progress: Progress,
    found: dict[Candidate, Outcome],
) -> None:
    """Take what is there from the folder, and make the rest."""
    places = {candidate: folder / candidate.folder for candidate in candidates}
    for candidate, place in places.items():
        if any(isinstance(found[one], str) for one in candidate.members):
            found[candidate] = "the network that it would be made from could not be trained."
            continue
        place.mkdir(parents=True, exist_ok=True)
        there = _loaded(place, candidate, rows)
        if there is not None:
            found[candidate] = there
            was = "trained" if candidate.way == "one" else "scored"
            progress(f"{candidate.name}: {was} before, taken as it is")
    missing = [candidate for candidate in candidates if candidate not in found]
    jobs = min(_jobs(config), len(missing))
    if jobs > 1:
        _in_processes(rows, config, missing, places, jobs, progress, found)
    else:
        for candidate in missing:
            found[candidate] = _made(rows, config, candidate, places[candidate], progress)


def _jobs(config: StudyConfig) -> int:
    if config.devices > 1:  # one candidate takes all of them
        return 1
    if config.jobs:
        return config.jobs
    from calibrant.models.cores import gpu_is_here

    return 1 if gpu_is_here() else usable_cores()


def _loaded(folder: Path, candidate: Candidate, rows: StudyRows) -> TrainedCandidate | None:
    load = load_trained if candidate.way == "one" else load_thinned
    return load(folder, candidate, rows)


def _made(
    rows: StudyRows, config: StudyConfig, candidate: Candidate, folder: Path, progress: Progress
) -> Outcome:
    """Train a network, or score with thinned copies of one, and read it from its folder."""
    try:
        if candidate.way == "mc_dropout":
            score_thinned(rows, candidate, folder, progress)
        elif config.devices > 1:
            train_on_devices(rows, config, candidate, folder, progress)
        else:
            train_candidate(rows, config, candidate, folder, progress)
    except MissingExtra:
        raise
    except Exception as error:  # a user's own loss or network may raise anything
        ours = isinstance(error, CalibrantError)
        why = str(error) if ours else f"{type(error).__name__}: {error}"
        progress(f"{candidate.name}: failed: {why}")
        return why
    found = _loaded(folder, candidate, rows)
    if found is None:
        raise TrainingError(
            f"what {candidate.name} left in {folder} cannot be read again: is the disk full?"
        )
    return found


def _in_processes(
    rows: StudyRows,
    config: StudyConfig,
    missing: Sequence[Candidate],
    places: dict[Candidate, Path],
    jobs: int,
    progress: Progress,
    found: dict[Candidate, Outcome],
) -> None:
    """Train in processes of their own, as many at a time as there are jobs."""
    kept = "candidates that are finished"
    with working_side_by_side(jobs, progress, _start, (rows, config), kept) as pool:
        running: dict[Future[str | None], Candidate] = {
            pool.submit(_work, candidate, places[candidate]): candidate for candidate in missing
        }
        for done in as_completed(running):
            candidate = running[done]
            why = done.result()
            there = _loaded(places[candidate], candidate, rows)
            found[candidate] = why or there or "what it left behind cannot be read again"


def _start(tell: Progress, rows: StudyRows, config: StudyConfig) -> None:
    _worker.update(rows=rows, config=config, tell=tell)


def _work(candidate: Candidate, folder: Path) -> str | None:
    """Train in a worker; return why it failed, or None."""
    outcome = _made(_worker["rows"], _worker["config"], candidate, folder, _worker["tell"])
    return outcome if isinstance(outcome, str) else None
