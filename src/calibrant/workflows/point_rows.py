"""Labelled scores for choosing and checking operating points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import InputError
from calibrant.files.source import ColumnOptions
from calibrant.inputs.row_sketch import ScoresAndLabels, fingerprint
from calibrant.scores import Scores, read_scores
from calibrant.scores.checks import clip_logits, floor_note
from calibrant.scores.columns import Layout, layout_of
from calibrant.scores.files import open_source
from calibrant.scores.read import class_order

if TYPE_CHECKING:
    from calibrant.calibrators import Calibrator

Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class FileCalibration:
    """Calibrator read from a file."""

    calibrator: Calibrator
    zero_as: float
    path: Path

    @property
    def classes(self) -> list[str]:
        """Classes it was fitted on, as text."""
        return [str(name) for name in self.calibrator.classes_.tolist()]

    def order(self, classes: Sequence[str], *, file: str) -> list[int]:
        """Return the positions of its classes among those of a file."""
        return class_order(classes, self.classes, files=(file, str(self.path)))

    def has_seen(self, logits: Floats, codes: NDArray[np.int64], order: Sequence[int]) -> bool:
        """Whether it was fitted on these rows; `order` picks its columns of the logits (n, K)."""
        from calibrant.calibrators.base.rows import CalibrationRows

        names = tuple(self.calibrator.classes_.tolist())
        rows = CalibrationRows(logits[:, order], np.argsort(order)[codes], None, names)
        return self.calibrator.has_seen_rows(rows)

    def log_probs(self, logits: Floats, order: Sequence[int], *, first: int = 0) -> Floats:
        """Calibrate logits (n, K), keeping the column order; `first` offsets rows in errors."""
        from calibrant.bundle.calibration import LEAST_LOG_PROB  # imports scikit-learn

        with np.errstate(all="ignore"):  # NaN is refused below
            ordered = np.ascontiguousarray(logits[:, order], dtype=np.float64)
            log_probs = self.calibrator.predict_log_proba(ordered)[:, np.argsort(order)]
        if np.isnan(log_probs).any():
            row = int(np.argmax(np.isnan(log_probs).any(axis=1)))
            raise InputError(
                f"the calibrator of {self.path} returned NaN for data row "
                f"{first + row + 1:,}: it is damaged, or the scores are far from those it was "
                "fitted on."
            )
        return np.ascontiguousarray(np.maximum(log_probs, LEAST_LOG_PROB))


@dataclass(frozen=True)
class PointRows:
    """Labelled rows for `select` and `check_transfer`."""

    codes: NDArray[np.int64]  # (n,) positions into `classes`
    # `probs` or `logits`, (n,) of the second class or (n, K); log-probabilities of a calibrator are
    # `logits`, to avoid rounding
    scores: dict[str, Any]
    weights: NDArray[np.float64] | None  # (n,) or None
    classes: tuple[str, ...]
    notes: tuple[str, ...] = ()
    seen: bool = False  # whether the calibrator was fitted on these rows

    @property
    def labels(self) -> NDArray[np.str_]:
        """Class name of each row."""
        return np.array(self.classes)[self.codes]

    @property
    def fingerprint(self) -> str:
        """Hash of labels and scores, in order."""
        return fingerprint(self.codes, *self.scores.values(), named=repr(self.classes))

    @property
    def sketch_input(self) -> ScoresAndLabels:
        """Input of a `RowSketch` of these rows."""
        (scores,) = self.scores.values()
        return ScoresAndLabels(np.asarray(scores), self.codes)


def read_layout(files: Sequence[Path], *, label: str) -> Layout:
    """Return the column layout of the first file; a lone column has no classes yet."""
    ask = ColumnOptions(label=label)
    return layout_of(open_source(files[0], ask), ask)


def read_point_rows(
    files: Sequence[Path],
    columns: dict[str, Any],
    *,
    kind: str,
    calibration: FileCalibration | None = None,
) -> PointRows:
    """Read labelled score files into memory."""
    need_logits = kind == "logit" or calibration is not None
    scores_in_file = read_scores(list(files), logits=need_logits, **columns)
    notes, seen = scores_in_file.notes, False
    if calibration is None:
        scores = (
            {"logits": scores_in_file.logits}
            if scores_in_file.logits is not None
            else {"probs": scores_in_file.probs}
        )
    else:
        logits, order = _logits_for(scores_in_file, calibration, str(files[0]), kind=kind)
        scores = {"logits": calibration.log_probs(logits, order)}
        seen = calibration.has_seen(logits, scores_in_file.labels, order)
        if scores_in_file.floored:  # the calibrator defines the value of 0
            note_in_file = floor_note(scores_in_file.floored, scores_in_file.zero_as)
            note_of_calibrator = floor_note(scores_in_file.floored, calibration.zero_as)
            notes = tuple(note_of_calibrator if note == note_in_file else note for note in notes)
        notes = (
            *notes,
            f"the scores were calibrated with {calibration.calibrator.method} first; the point "
            "file contains it, and decide applies it",
        )
    return PointRows(
        scores_in_file.labels, scores, scores_in_file.weights, scores_in_file.classes, notes, seen
    )


def reorder_classes(
    rows: PointRows, classes: Sequence[Any], *, files: tuple[str, str]
) -> PointRows:
    """Return rows with the classes in another order; `files` names both sources in errors."""
    names = tuple(str(name) for name in classes)
    order = class_order(rows.classes, names, files=files)
    ((kind, array),) = rows.scores.items()
    if array.ndim == 2:
        array = np.ascontiguousarray(array[:, order])
    elif order != [0, 1]:
        array = -array if kind == "logits" else 1.0 - array
    codes = np.argsort(order)[rows.codes]
    return replace(rows, codes=codes, scores={kind: array}, classes=names)


def _logits_for(
    scores: Scores, calibration: FileCalibration, file: str, *, kind: str
) -> tuple[Floats, list[int]]:
    """Return logits (n, K) for a calibrator, and the positions of its classes."""
    assert scores.logits is not None  # requested above
    order = calibration.order(scores.classes, file=file)
    logits = scores.logits
    if kind == "prob":
        logits = clip_logits(logits, calibration.zero_as)
    if logits.ndim == 1:
        logits = np.column_stack([-0.5 * logits, 0.5 * logits])
    return logits, order
