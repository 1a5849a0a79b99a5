"""Calibrator files: saved, loaded, applied to score files, and packed with their rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.errors import InputError
from calibrant.files.atomic_write import read_json, write_json
from calibrant.files.source import ColumnOptions
from calibrant.files.write_table import check_table_file, write_tables
from calibrant.scores import read_scores
from calibrant.scores.checks import floor_note
from calibrant.scores.columns import layout_of
from calibrant.scores.files import count_rows, open_source
from calibrant.scores.read import are_boolean, reorder_classes
from calibrant.scores.tables import ScoreTable
from calibrant.workflows.progress import Progress, no_progress

if TYPE_CHECKING:
    import pyarrow as pa

    from calibrant.bundle import CalibRows
    from calibrant.bundle.calibration import BundleCalibration
    from calibrant.calibrators import Calibrator


def write_calibrator(saved: Mapping[str, Any], path: Path, *, name: str = "-o") -> None:
    """Write the dict that `Calibrator.to_dict` returned."""
    write_json(saved, path, name=name)


def read_calibrator(path: Path, *, flag: str = "--apply") -> tuple[Calibrator, float]:
    """Load a calibrator and its replacement for a probability of 0; `flag` named the file."""
    saved = read_json(path, what="calibrator", maker="calibrate -o", flag=flag)
    return build_calibrator(saved, path)


def build_calibrator(saved: Any, path: Path) -> tuple[Calibrator, float]:
    """Build a calibrator from the content of the file `path`."""
    from calibrant.bundle.calibration import BundleCalibration

    if isinstance(saved, Mapping) and "params" not in saved and "threshold" in saved:
        raise InputError(
            f"{path} is a point, not a calibrator: name a file written by calibrate -o."
        )
    try:
        calibration = BundleCalibration.from_dict(saved)
        return calibration.calibrator, calibration.zero_as
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise InputError(
            f"{path} is a damaged calibrator ({type(error).__name__}): fit and save it again."
        ) from error


@dataclass(frozen=True)
class AppliedCalibrator:
    """Number of calibrated rows, the method, its classes, and notes for the user."""

    rows: int
    method: str
    classes: tuple[str, ...]
    notes: tuple[str, ...] = ()


def apply_file(
    path: Path,
    scores: list[str],
    out: Path | None,
    columns: dict[str, Any],
    *,
    progress: Progress = no_progress,
) -> AppliedCalibrator:
    """Calibrate the scores of files with the calibrator in `path`, in constant memory."""
    if out is None:
        raise InputError("-o is missing: name the file for the new scores, like -o out.parquet.")
    check_table_file(out, name="-o")
    calibrator, floor = read_calibrator(path)
    table = ScoreTable(scores, zero_as=floor, **columns)
    if out.resolve() in {file.resolve() for file in (path, *table.files)}:
        raise InputError(f"-o {out} is also an input file: choose another name.")
    classes = [str(name) for name in calibrator.classes_.tolist()]
    order = table.order(classes, name=str(path))
    floored: list[int] = []
    with progress("calibrating", count_rows(table.files)) as advance:

        def new_tables() -> Iterator[pa.Table]:
            for new, n in _calibrate_batches(table, calibrator, order):
                yield new
                floored.append(n)
                advance(new.num_rows)

        rows = write_tables(out, new_tables(), name="-o")
    notes = (*table.notes, *([floor_note(sum(floored), floor)] if sum(floored) else []))
    return AppliedCalibrator(rows, calibrator.method, tuple(classes), notes)


def _calibrate_batches(
    table: ScoreTable, calibrator: Calibrator, order: list[int]
) -> Iterator[tuple[pa.Table, int]]:
    """Yield each batch with calibrated probabilities, and how many zeros were raised."""
    back = np.argsort(order)
    seen = 0
    for batch in table.batches():
        if calibrator.method == "identity" and batch.probs is not None:
            probs = batch.probs.astype(np.float64)  # the identity keeps a 0
        else:
            with np.errstate(all="ignore"):  # non-finite results are refused below
                probs = calibrator.predict_proba(batch.logits[:, order])[:, back]
        if not np.isfinite(probs).all():
            row = int(np.argmin(np.isfinite(probs).all(axis=1)))
            raise InputError(
                "the calibrator returned a non-finite probability for data row "
                f"{seen + row + 1:,}: it is damaged, or the scores are far from the fitted ones."
            )
        seen += len(probs)
        yield table.with_probs(batch, probs), batch.floored


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
