"""Calibration rows of a bundle, read from labelled score files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.files.source import ColumnOptions
from calibrant.scores import read_scores
from calibrant.scores.checks import floor_note
from calibrant.scores.columns import layout_of
from calibrant.scores.files import open_source, score_files
from calibrant.scores.read import are_boolean, reorder_classes

if TYPE_CHECKING:
    from calibrant.bundle import CalibRows
    from calibrant.bundle.calibration import BundleCalibration


def find_calib_files(path: str) -> list[Path]:
    """Return the score files of a path, which must exist."""
    return score_files(path)


def read_calib_rows(
    files: Sequence[Path],
    classes: Sequence[Any],
    calibration: BundleCalibration | None,
    *,
    label: str = "label",
) -> tuple[CalibRows, tuple[str, ...]]:
    """Read the rows and the notes to show the user.

    Probabilities become logits by their logarithm, with 0 replaced as the calibrator does.
    """
    from calibrant.bundle import CalibRows

    names = tuple(str(name) for name in classes)
    scores_in_file = read_scores(
        list(files), logits=True, label=label, positive=_lone_class(files[0], names, label)
    )
    scores = reorder_classes(scores_in_file, names, files=(str(files[0]), "the bundle"))
    notes = [note for note in scores.notes if not note.startswith("The positive class")]
    logits = scores.logits
    assert logits is not None  # requested above
    if scores.floored and calibration is not None:  # the calibrator defines the value of 0
        logits = calibration.logits(scores.probs.astype(np.float64))
        note_in_file = floor_note(scores.floored, scores.zero_as)
        note_of_calibrator = floor_note(scores.floored, calibration.zero_as)
        notes = [note_of_calibrator if note == note_in_file else note for note in notes]
    return CalibRows(logits.astype(np.float64), scores.labels, scores.weights), tuple(notes)


def _lone_class(file: Path, names: tuple[str, ...], label: str) -> str | None:
    """Return the class of a lone column if the file does not name it."""
    ask = ColumnOptions(label=label)
    source = open_source(file, ask)
    if not layout_of(source, ask).lone or source.pair is not None or are_boolean(names):
        return None
    return names[-1]
