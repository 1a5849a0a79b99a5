"""Train one candidate on several devices: a process for each, and one voice for all."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from calibrant.cores import usable_cores
from calibrant.errors import InputError
from calibrant.study.candidates.candidate import Candidate
from calibrant.study.candidates.processes import Progress, passed_on
from calibrant.study.candidates.trained import train_candidate
from calibrant.study.rows.rows import StudyRows
from calibrant.study.settings.config import StudyConfig

__all__ = ["refuse_torchrun", "train_on_devices"]


def refuse_torchrun() -> None:
    """Say that a study starts its own processes: several studies would write into one folder."""
    if int(os.environ.get("WORLD_SIZE", "1")) > 1 and "LOCAL_WORLD_SIZE" in os.environ:
        raise InputError(
            "a study starts its processes itself: leave torchrun out and say how many devices "
            "train one candidate together (--devices 2)."
        )


def train_on_devices(
    rows: StudyRows, config: StudyConfig, candidate: Candidate, folder: Path, progress: Progress
) -> None:
    """Train a candidate as `train_candidate` does, on `config.devices` devices together.

    The first process scores the splits and writes the folder. If one process fails, the others are
    ended and its reason is raised.
    """
    from calibrant.training.ranks import run_on_ranks

    with passed_on(progress) as (_, messages):
        run_on_ranks(_on_rank, (rows, config, candidate, folder, messages), config.devices)


def _on_rank(
    rows: StudyRows, config: StudyConfig, candidate: Candidate, folder: Path, messages: Any
) -> None:
    """Be one of the processes that train a candidate."""
    from calibrant.models.cores import use_threads

    use_threads(max(1, usable_cores() // config.devices))
    train_candidate(rows, config, candidate, folder, messages.put)
