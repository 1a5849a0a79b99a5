"""Train one candidate on several devices, with one process per device."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

from calibrant.cores import usable_cores
from calibrant.errors import InputError
from calibrant.study.candidates.candidate import StudyCandidate
from calibrant.study.candidates.processes import Progress, forward_progress, send_arguments
from calibrant.study.candidates.trained import fit_and_save_candidate
from calibrant.study.rows.rows import StudyRows
from calibrant.study.settings.config import StudyConfig


def refuse_torchrun() -> None:
    """Raise `InputError` under torchrun: several studies would write to the same folder."""
    if int(os.environ.get("WORLD_SIZE", "1")) > 1 and "LOCAL_WORLD_SIZE" in os.environ:
        raise InputError(
            "a study starts its own processes: leave torchrun out and set how many devices train "
            "one candidate together (--devices 2)."
        )


def train_on_devices(
    rows: StudyRows,
    config: StudyConfig,
    candidate: StudyCandidate,
    folder: Path,
    progress: Progress,
) -> None:
    """Run `fit_and_save_candidate` on `config.devices` devices together.

    The first process scores the splits and writes the folder. If one process fails, the others are
    terminated and its error is raised.
    """
    from calibrant.training.ranks import run_on_ranks

    args = (rows, config, candidate, folder)
    with (
        forward_progress(progress) as (context, messages),
        send_arguments(context, args, config.devices) as arguments,
    ):
        run_on_ranks(_train_on_rank, (arguments, messages), config.devices)


def _train_on_rank(arguments: Any, messages: Any) -> None:
    """Run in each process that trains a candidate."""
    from calibrant.models.cores import use_threads

    rows, config, candidate, folder = pickle.loads(arguments.get())
    use_threads(max(1, usable_cores() // config.devices))
    fit_and_save_candidate(rows, config, candidate, folder, messages.put)
