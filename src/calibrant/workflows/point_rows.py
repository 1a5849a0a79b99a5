"""The scores that a point is chosen on or decides about, in one form for both verbs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import InputError
from calibrant.files.source import ColumnOptions
from calibrant.inputs.fingerprint import fingerprint
from calibrant.inputs.row_sketch import ScoresAndLabels
from calibrant.scores import Scores, read_scores
from calibrant.scores.checks import clip_logits, floor_note
from calibrant.scores.classes import class_order
from calibrant.scores.columns import Layout, layout_of
from calibrant.scores.files import open_source

if TYPE_CHECKING:
    from calibrant.calibrators import Calibrator

__all__ = ["Calibration", "PointRows", "columns_of", "in_classes_of", "rows_of_scores"]

Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Calibration:
    """A calibrator that scores go through, and the name of the file it came from."""

    calibrator: Calibrator
    zero_as: float
    path: Path

    @property
    def classes(self) -> list[str]:
        """The classes it was fitted on, as text."""
        return [str(name) for name in self.calibrator.classes_.tolist()]

    def order(self, classes: Sequence[str], *, file: str) -> list[int]:
        """Return where its classes stand among those of a file."""
        return class_order(classes, self.classes, files=(file, str(self.path)))

    def has_seen(self, logits: Floats, codes: NDArray[np.int64], order: Sequence[int]) -> bool:
        """Whether it was fitted on these rows: logits (n, K) whose columns `order` names."""
        from calibrant.calibrators.base.rows import CalibrationRows

        names = tuple(self.calibrator.classes_.tolist())
        rows = CalibrationRows(logits[:, order], np.argsort(order)[codes], None, names)
        return self.calibrator.has_seen_rows(rows)

    def log_probs(self, logits: Floats, order: Sequence[int], *, first: int = 0) -> Floats:
        """Calibrate logits (n, K) whose columns `order` names; the columns stay where they are.

        `first` is the number of rows that came before, for errors.
        """
        from calibrant.bundle.calibration import LEAST_LOG_PROB  # with scikit-learn behind it

        with np.errstate(all="ignore"):  # what a damaged calibrator computes is refused below
            whole = np.ascontiguousarray(logits[:, order], dtype=np.float64)
            found = self.calibrator.predict_log_proba(whole)[:, np.argsort(order)]
        if np.isnan(found).any():
            row = int(np.argmax(np.isnan(found).any(axis=1)))
            raise InputError(
                f"the calibrator of {self.path} gives no probability for data row "
                f"{first + row + 1:,}: it is damaged, or the scores are far from those it was "
                "fitted on."
            )
        return np.ascontiguousarray(np.maximum(found, LEAST_LOG_PROB))


@dataclass(frozen=True)
class PointRows:
    """Labelled rows as `select` and `check_transfer` take them.

    `scores` holds either `probs` or `logits`: logits where the file has them, or where a calibrator
    computed its answers as logarithms, so that nothing is lost to rounding.

    Parameters
    ----------
    codes : (n,) positions into `classes`
    scores : `probs` or `logits`, (n,) of the second class or (n, K)
    weights : (n,) or None
    classes : class names
    notes : sentences that a user should be told
    seen : whether the calibrator that the scores went through was fitted on these rows
    """

    codes: NDArray[np.int64]
    scores: dict[str, Any]
    weights: NDArray[np.float64] | None
    classes: tuple[str, ...]
    notes: tuple[str, ...] = ()
    seen: bool = False

    @property
    def labels(self) -> NDArray[np.str_]:
        """The class of each row, by name."""
        return np.array(self.classes)[self.codes]

    @property
    def fingerprint(self) -> str:
        """A short text that differs for other rows: labels and scores, in their order."""
        return fingerprint(self.codes, *self.scores.values(), named=repr(self.classes))

    @property
    def sketched(self) -> ScoresAndLabels:
        """The rows as a sketch takes them, which knows a part of them again (see `RowSketch`)."""
        (scores,) = self.scores.values()
        return ScoresAndLabels(np.asarray(scores), self.codes)


def columns_of(files: Sequence[Path], *, label: str) -> Layout:
    """Return what the columns of the first file mean; a lone column's classes are not known yet."""
    ask = ColumnOptions(label=label)
    return layout_of(open_source(files[0], ask), ask)


def rows_of_scores(
    files: Sequence[Path],
    columns: dict[str, Any],
    *,
    kind: str,
    calibration: Calibration | None = None,
) -> PointRows:
    """Read labelled score files whole."""
    wanted = kind == "logit" or calibration is not None
    read = read_scores(list(files), logits=wanted, **columns)
    notes, seen = read.notes, False
    if calibration is None:
        found = {"logits": read.logits} if read.logits is not None else {"probs": read.probs}
    else:
        own_logits, order = _in_order(read, calibration, str(files[0]), kind=kind)
        found = {"logits": calibration.log_probs(own_logits, order)}
        seen = calibration.has_seen(own_logits, read.labels, order)
        if read.floored:  # what 0 means was settled when the calibrator was fitted
            own = floor_note(read.floored, read.zero_as)
            fitted = floor_note(read.floored, calibration.zero_as)
            notes = tuple(fitted if note == own else note for note in notes)
        notes = (
            *notes,
            f"the scores went through the calibrator {calibration.calibrator.method} first; the "
            "point file keeps it, and decide applies it",
        )
    return PointRows(read.labels, found, read.weights, read.classes, notes, seen)


def in_classes_of(rows: PointRows, classes: Sequence[Any], *, files: tuple[str, str]) -> PointRows:
    """Return rows with the classes in another order; `files` names what both come from."""
    names = tuple(str(name) for name in classes)
    order = class_order(rows.classes, names, files=files)
    ((kind, array),) = rows.scores.items()
    if array.ndim == 2:
        array = np.ascontiguousarray(array[:, order])
    elif order != [0, 1]:
        array = -array if kind == "logits" else 1.0 - array
    codes = np.argsort(order)[rows.codes]
    return replace(rows, codes=codes, scores={kind: array}, classes=names)


def _in_order(
    read: Scores, calibration: Calibration, file: str, *, kind: str
) -> tuple[Floats, list[int]]:
    """Return the logits (n, K) that a calibrator takes, and where its classes stand in them."""
    assert read.logits is not None  # they were asked for
    order = calibration.order(read.classes, file=file)
    logits = read.logits
    if kind == "prob":
        logits = clip_logits(logits, calibration.zero_as)
    if logits.ndim == 1:
        logits = np.column_stack([-0.5 * logits, 0.5 * logits])
    return logits, order
