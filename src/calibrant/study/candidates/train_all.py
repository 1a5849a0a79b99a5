"""Train the candidates that are not cached yet, in sequence or in parallel."""

from __future__ import annotations

import errno
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, as_completed
from pathlib import Path
from typing import Any

from calibrant.cores import usable_cores
from calibrant.errors import CalibrantError, MissingExtra
from calibrant.study.candidates.candidate import StudyCandidate
from calibrant.study.candidates.combined import build_ensemble, load_mc_dropout, score_mc_dropout
from calibrant.study.candidates.devices import train_on_devices
from calibrant.study.candidates.processes import Progress, worker_pool
from calibrant.study.candidates.trained import (
    TrainedCandidate,
    fit_and_save_candidate,
    load_trained,
)
from calibrant.study.rows.rows import StudyRows
from calibrant.study.settings.config import StudyConfig

Outcome = TrainedCandidate | str
"""A trained candidate, or the reason why it could not be trained."""

_UNREADABLE = "its saved files cannot be read back: is the disk full?"

_worker: dict[str, Any] = {}


def train_candidates(
    rows: StudyRows,
    config: StudyConfig,
    candidates: Sequence[StudyCandidate],
    folder: Path,
    progress: Progress,
    known: Mapping[StudyCandidate, Outcome] | None = None,
) -> list[Outcome]:
    """Return the outcome of each candidate, in order.

    Models are trained first, then averaged. Candidates that an earlier run finished are read from
    `folder`; those of `known` are as they are. A candidate that fails is reported and does not stop
    the others.
    """
    outcomes = dict(known or {})
    for way in ("one", "mc_dropout"):
        same_way = [each for each in candidates if each.way == way and each not in outcomes]
        _load_or_train(rows, config, same_way, folder, progress, outcomes)
    for candidate in candidates:
        if candidate.way == "ensemble":
            members = [outcomes[member] for member in candidate.members]
            outcomes[candidate] = build_ensemble(candidate, members, folder, rows)
            if isinstance(outcomes[candidate], str):
                progress(f"{candidate.name}: failed: {outcomes[candidate]}")
    return [outcomes[candidate] for candidate in candidates]


def _load_or_train(
    rows: StudyRows,
    config: StudyConfig,
    candidates: Sequence[StudyCandidate],
    folder: Path,
    progress: Progress,
    outcomes: dict[StudyCandidate, Outcome],
) -> None:
    """Add the outcome of each candidate: cached ones from the folder, the others by training."""
    folders = {candidate: folder / candidate.folder for candidate in candidates}
    for candidate, path in folders.items():
        if any(isinstance(outcomes[member], str) for member in candidate.members):
            outcomes[candidate] = "the network that it averages could not be trained."
            continue
        path.mkdir(parents=True, exist_ok=True)
        cached = _load_cached(path, candidate, rows)
        if cached is not None:
            outcomes[candidate] = cached
            verb = "trained" if candidate.way == "one" else "scored"
            progress(f"{candidate.name}: {verb} before, reused")
    missing = [candidate for candidate in candidates if candidate not in outcomes]
    jobs = min(_count_jobs(config), len(missing))
    if jobs > 1:
        _train_in_processes(rows, config, missing, folders, jobs, progress, outcomes)
    else:
        for candidate in missing:
            outcomes[candidate] = _try_train(rows, config, candidate, folders[candidate], progress)


def _count_jobs(config: StudyConfig) -> int:
    if config.devices > 1:  # one candidate uses all devices
        return 1
    if config.jobs:
        return config.jobs
    from calibrant.models.cores import gpu_is_here

    return 1 if gpu_is_here() else usable_cores()


def _load_cached(
    folder: Path, candidate: StudyCandidate, rows: StudyRows
) -> TrainedCandidate | None:
    load = load_trained if candidate.way == "one" else load_mc_dropout
    return load(folder, candidate, rows)


def _try_train(
    rows: StudyRows,
    config: StudyConfig,
    candidate: StudyCandidate,
    folder: Path,
    progress: Progress,
) -> Outcome:
    """Train a network, or score with MC dropout; return the reason if that fails."""
    try:
        if candidate.way == "mc_dropout":
            score_mc_dropout(rows, candidate, folder, progress)
        elif config.devices > 1:
            train_on_devices(rows, config, candidate, folder, progress)
        else:
            fit_and_save_candidate(rows, config, candidate, folder, progress)
    except MissingExtra:
        raise
    except Exception as error:  # a user-defined loss or network may raise anything
        reason = _describe_failure(error)
        progress(f"{candidate.name}: failed: {reason}")
        return reason
    return _load_cached(folder, candidate, rows) or _UNREADABLE


def _describe_failure(error: Exception) -> str:
    """Return why a candidate could not be trained, with the remedy where the disk is full."""
    if isinstance(error, CalibrantError):
        return str(error)
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return (
            f"the disk is full ({error.strerror}): free some space, or choose a folder on another "
            "disk with --out, and run the command again."
        )
    return f"{type(error).__name__}: {error}"


def _train_in_processes(
    rows: StudyRows,
    config: StudyConfig,
    missing: Sequence[StudyCandidate],
    folders: dict[StudyCandidate, Path],
    jobs: int,
    progress: Progress,
    outcomes: dict[StudyCandidate, Outcome],
) -> None:
    """Train in `jobs` parallel processes."""
    saved = "finished candidates"
    with worker_pool(jobs, progress, _init_worker, (rows, config), saved) as pool:
        running: dict[Future[str | None], StudyCandidate] = {
            pool.submit(_train_in_worker, candidate, folders[candidate]): candidate
            for candidate in missing
        }
        for done in as_completed(running):
            candidate = running[done]
            reason = done.result()
            trained = _load_cached(folders[candidate], candidate, rows)
            outcomes[candidate] = reason or trained or _UNREADABLE


def _init_worker(progress: Progress, rows: StudyRows, config: StudyConfig) -> None:
    _worker.update(rows=rows, config=config, progress=progress)


def _train_in_worker(candidate: StudyCandidate, folder: Path) -> str | None:
    """Train in a worker process; return the reason if that fails, else None."""
    outcome = _try_train(_worker["rows"], _worker["config"], candidate, folder, _worker["progress"])
    return outcome if isinstance(outcome, str) else None
