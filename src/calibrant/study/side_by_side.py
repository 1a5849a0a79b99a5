"""Train the candidates that are not trained yet, one after the other or side by side."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from calibrant.errors import CalibrantError, MissingExtra, TrainingError
from calibrant.study.candidate import Candidate
from calibrant.study.config import StudyConfig
from calibrant.study.rows import StudyRows
from calibrant.study.trained import TrainedCandidate, load_trained, train_candidate

__all__ = ["train_all"]

Progress = Callable[[str], None]
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

    Those that an earlier run finished are read from `folder`. One that fails is reported by its
    sentence and does not stop the others.
    """
    places = {candidate: folder / candidate.folder for candidate in candidates}
    found: dict[Candidate, Outcome] = {}
    for candidate, place in places.items():
        place.mkdir(parents=True, exist_ok=True)
        there = load_trained(place, candidate, rows)
        if there is not None:
            found[candidate] = there
            progress(f"{candidate.loss}: trained before, taken as it is")
    missing = [candidate for candidate in candidates if candidate not in found]
    jobs = min(_jobs(config), len(missing))
    if jobs > 1:
        _in_processes(rows, config, missing, places, jobs, progress, found)
    else:
        for candidate in missing:
            found[candidate] = _trained(rows, config, candidate, places[candidate], progress)
    return [found[candidate] for candidate in candidates]


def _jobs(config: StudyConfig) -> int:
    if config.jobs:
        return config.jobs
    from calibrant.models.cores import gpu_is_here

    return 1 if gpu_is_here() else len(os.sched_getaffinity(0))


def _trained(
    rows: StudyRows, config: StudyConfig, candidate: Candidate, folder: Path, progress: Progress
) -> Outcome:
    try:
        train_candidate(rows, config, candidate, folder, progress)
    except MissingExtra:
        raise
    except Exception as error:  # a user's own loss or network may raise anything
        ours = isinstance(error, CalibrantError)
        why = str(error) if ours else f"{type(error).__name__}: {error}"
        progress(f"{candidate.loss}: failed: {why}")
        return why
    found = load_trained(folder, candidate, rows)
    if found is None:
        raise TrainingError(
            f"what {candidate.loss} left in {folder} cannot be read again: is the disk full?"
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
    context = get_context("spawn")  # torch's threads do not survive a fork
    messages = context.Queue()
    teller = threading.Thread(target=_pass_on, args=(messages, progress), daemon=True)
    teller.start()
    pool = ProcessPoolExecutor(jobs, context, _start, (rows, config, jobs, messages, os.getpid()))
    try:
        running: dict[Future[str | None], Candidate] = {
            pool.submit(_work, candidate, places[candidate]): candidate for candidate in missing
        }
        for done in as_completed(running):
            candidate = running[done]
            why = done.result()
            kept = load_trained(places[candidate], candidate, rows)
            found[candidate] = why or kept or "what it left behind cannot be read again"
    except BrokenProcessPool:
        raise TrainingError(
            "a training process was killed, probably for want of memory: run it again with "
            "--jobs 1; candidates that are finished are kept."
        ) from None
    finally:
        for process in list((pool._processes or {}).values()):  # they would train to the end
            process.terminate()
        pool.shutdown(wait=True, cancel_futures=True)
        messages.put(None)
        teller.join(timeout=5)


def _pass_on(messages: Any, progress: Progress) -> None:
    while (message := messages.get()) is not None:
        progress(message)


def _start(rows: StudyRows, config: StudyConfig, jobs: int, messages: Any, parent: int) -> None:
    """Set a worker up: its rows, its share of the cores, and its end when the parent is gone."""
    import signal

    from calibrant.models.cores import use_threads

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what Ctrl-C means
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    use_threads(max(1, len(os.sched_getaffinity(0)) // jobs))
    _worker.update(rows=rows, config=config, messages=messages)
    threading.Thread(target=_leave_with, args=(parent,), daemon=True).start()


def _leave_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


def _work(candidate: Candidate, folder: Path) -> str | None:
    """Train in a worker; return why it failed, or None."""
    tell = _worker["messages"].put
    outcome = _trained(_worker["rows"], _worker["config"], candidate, folder, tell)
    return outcome if isinstance(outcome, str) else None
