"""Runs of an experiment, in sequence or in parallel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from calibrant.study.candidates.processes import Progress, worker_pool
from calibrant.study.candidates.trained import training_warnings
from reproductions.experiment import Experiment, Method
from reproductions.parts import Parts
from reproductions.setting import setting_of
from reproductions.unfinished import unfinished

__all__ = ["Run", "run_all"]

_worker: dict[str, Any] = {}


@dataclass(frozen=True)
class Run:
    """One method with one seed, and the path of its record."""

    path: Path
    method: Method
    seed: int

    def __str__(self) -> str:
        return f"{self.method.label}, seed {self.seed}"


def run_all(
    experiment: Experiment,
    runs: Sequence[Run],
    parts: Parts,
    overrides: Mapping[str, Any] | None,
    *,
    jobs: int,
    tell: Progress,
) -> None:
    """Train every run and write its record; finished ones are kept if a later one fails.

    An interrupted run resumes from its last checkpoint when it is run again.

    Parameters
    ----------
    experiment : at the size that is wanted
    runs : that are missing
    parts : the rows
    overrides : arguments of the classifier from the command line
    jobs : runs at a time, each in a process of its own; with 1 they are this process's own
    tell : gets one-line messages
    """
    jobs = min(jobs, len(runs))
    if jobs < 2:
        for number, run in enumerate(runs, 1):
            tell(f"{experiment.name}: {run} ({number} of {len(runs)})")
            _run(experiment, run, parts, overrides, tell)
        return
    tell(f"{experiment.name}: {jobs} of {len(runs)} runs at a time")
    args = (experiment, parts, overrides)
    with worker_pool(jobs, tell, _start, args, "runs that are finished") as pool:
        running = {pool.submit(_work, run): run for run in runs}
        for number, done in enumerate(as_completed(running), 1):
            done.result()
            tell(f"{experiment.name}: {running[done]} is done ({number} of {len(runs)})")


def _run(
    experiment: Experiment,
    run: Run,
    parts: Parts,
    overrides: Mapping[str, Any] | None,
    tell: Progress,
) -> None:
    from reproductions.extras import extra_figures
    from reproductions.figures import run_figures
    from reproductions.fitting import fit
    from reproductions.record import record_of, write_record
    from reproductions.score_files import SAVED_PARTS, as_saved, write_scores

    setting = setting_of(experiment, run.method, overrides)
    with unfinished(run.path, setting) as folder:
        with training_warnings() as warnings:
            fitted = fit(
                experiment,
                run.method,
                run.seed,
                parts,
                overrides=overrides,
                folder=folder,
                tell=tell,
            )
        saved = {part: as_saved(fitted.logits[part]) for part in SAVED_PARTS}
        figures = run_figures(
            (saved["calib"], parts.calib.labels), (saved["test"], parts.test.labels)
        )
        record = record_of(fitted, figures, experiment.size, extra_figures(fitted))
        details = {"given": dict(overrides or {}), "setting": setting, "warnings": warnings}
        run.path.unlink(missing_ok=True)  # an earlier record is not that of these logits
        write_scores(run.path, saved, parts)
        write_record(run.path, {**record, **details}, figures.losses)


def _start(
    tell: Progress, experiment: Experiment, parts: Parts, overrides: Mapping[str, Any] | None
) -> None:
    _worker.update(tell=tell, experiment=experiment, parts=parts, overrides=overrides)


def _work(run: Run) -> None:
    """Train one run in a process that trained others before: nothing is read or compiled again."""
    experiment: Experiment = _worker["experiment"]
    _worker["tell"](f"{experiment.name}: {run}")
    _run(experiment, run, _worker["parts"], _worker["overrides"], _worker["tell"])
