"""Refit and evaluate the calibrators of finished runs on their saved logits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from calibrant.errors import InputError
from calibrant.inputs import FloatArray, IntArray
from reproductions.experiment import Experiment
from reproductions.figures import run_figures
from reproductions.record import figures_in_record, write_record
from reproductions.score_files import SAVED_PARTS, read_logits, score_file

__all__ = ["calibrate_again", "check_extras", "saved_logits"]

_OF_THE_NETWORK = ("ood", "report")
"""Extras that no calibrator but temperature has a part in: a change of the others leaves them."""


def calibrate_again(record: Path) -> None:
    """Measure a run again without training it; what is not about calibrators stays as it was.

    Parameters
    ----------
    record : file of the run, with its logits beside it
    """
    state: dict[str, Any] = json.loads(record.read_text(encoding="utf-8"))
    calib, test = saved_logits(record)
    figures = run_figures(calib, test)
    write_record(record, {**state, **figures_in_record(figures)}, figures.losses)


def saved_logits(record: Path) -> list[tuple[FloatArray, IntArray]]:
    """Read the logits and labels that a run kept, and hold them against its record."""
    rows = json.loads(record.read_text(encoding="utf-8"))["rows"]
    saved = [read_logits(record, part) for part in SAVED_PARTS]
    for part, (_, labels) in zip(SAVED_PARTS, saved, strict=True):
        if len(labels) != rows[part]:
            raise InputError(
                f"{score_file(record, part)} holds {len(labels):,} rows, but the run has "
                f"{rows[part]:,}: run it --again."
            )
    return saved


def check_extras(experiment: Experiment) -> None:
    """Refuse an experiment with figures that need more than the kept logits."""
    odd = [name for name in experiment.extras if name not in _OF_THE_NETWORK]
    if odd:
        raise InputError(
            f"{experiment.name} has figures ({', '.join(odd)}) that need its networks, of which "
            "only logits are kept: run it --again."
        )
