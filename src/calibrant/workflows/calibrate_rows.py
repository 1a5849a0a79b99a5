"""Labelled score files as the calibrate rows of a bundle."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.files.source import ColumnOptions
from calibrant.scores import read_scores
from calibrant.scores.checks import floor_note
from calibrant.scores.classes import are_boolean, reorder_classes
from calibrant.scores.columns import layout_of
from calibrant.scores.files import open_source, score_files

if TYPE_CHECKING:
    from calibrant.bundle import CalibRows
    from calibrant.bundle.calibration import BundleCalibration

__all__ = ["calib_files", "read_calib"]


def calib_files(path: str) -> list[Path]:
    """Return the files that are meant, which must be there."""
    return score_files(path)


def read_calib(
    files: Sequence[Path],
    classes: Sequence[Any],
    calibration: BundleCalibration | None,
    *,
    label: str = "label",
) -> tuple[CalibRows, tuple[str, ...]]:
    """Read the rows, and sentences that a user should be told.

    Where the files hold probabilities, their logarithms are the logits, and a 0 counts as it does
    for the calibrator.
    """
    from calibrant.bundle import CalibRows

    names = tuple(str(name) for name in classes)
    read = read_scores(
        list(files), logits=True, label=label, positive=_positive(files[0], names, label)
    )
    found = reorder_classes(read, names, files=(str(files[0]), "the bundle"))
    notes = [note for note in found.notes if not note.startswith("The positive class")]
    logits = found.logits
    assert logits is not None  # they were asked for
    if found.floored and calibration is not None:  # what 0 means was settled when it was fitted
        logits = calibration.logits(found.probs.astype(np.float64))
        own = floor_note(found.floored, found.zero_as)
        fitted = floor_note(found.floored, calibration.zero_as)
        notes = [fitted if note == own else note for note in notes]
    return CalibRows(logits.astype(np.float64), found.labels, found.weights), tuple(notes)


def _positive(file: Path, names: tuple[str, ...], label: str) -> str | None:
    """Return the class that a lone column is of, where the file does not say it itself."""
    ask = ColumnOptions(label=label)
    source = open_source(file, ask)
    if not layout_of(source, ask).lone or source.pair is not None or are_boolean(names):
        return None
    return names[-1]
