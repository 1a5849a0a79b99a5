"""Read the files of a study: columns found, labels checked, nothing fixed silently."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from calibrant.bundle.files import sha256_of
from calibrant.data import read_rows, redact
from calibrant.data.splits import Splits
from calibrant.errors import InputError
from calibrant.formatting import format_count
from calibrant.inputs import FloatArray
from calibrant.study.rows.class_codes import absent_classes, coded, uncompared_classes, whole_labels
from calibrant.study.rows.divide import divide
from calibrant.study.rows.label_checks import check_labels, check_sizes
from calibrant.study.rows.overlap import without_overlap
from calibrant.study.rows.read_images import IMAGE, WEIGHT, check_same_size, image_source
from calibrant.study.rows.rows import Inputs, SplitRows, StudyRows
from calibrant.study.rows.source import Source, column_of, filled, is_text, left_out
from calibrant.study.rows.table_checks import check_columns, check_finite, check_table
from calibrant.study.settings.config import StudyConfig
from calibrant.thresholds.proof.largest_weight import check_largest_weight

__all__ = ["read_study_rows"]


def read_study_rows(config: StudyConfig) -> StudyRows:
    """Read the logs and the golden set, and give every row its job.

    Raises `InputError` in one sentence for a column that is not there, a single class, a class too
    small to be divided, texts that are all empty, classes of the golden set that the logs lack, and
    (unless `overlap` is "drop") rows that stand in both. Of images, the splits are positions in
    the npz file, or among the files of the folder, sorted by name.
    """
    notes: list[str] = []
    logs = _source("logs", config.data, config, notes)
    golden = None
    if config.golden is not None:
        golden = _source("golden", config.golden, config, notes, logs)
        check_same_size(logs, golden)
        logs = without_overlap(logs, golden, _inputs_of(logs, config), config, notes)
    logs = _sampled(logs, config, notes)
    outside = {s.name: _outside(s, config) for s in (logs, golden) if s is not None}
    if config.out_of_scope is not None and not any(map(np.any, outside.values())):
        raise InputError(
            f"no {logs.unit} has the label '{config.out_of_scope}' that --out-of-scope names: "
            "check its spelling, or leave it out."
        )
    weights = None if golden is None else _weights(golden, config)
    for source in (logs, golden):
        if source is not None:
            check_labels(source, outside[source.name], config)
    splits = divide(logs, golden, outside, config, _inputs_of(logs, config))
    repeats = _repeats(logs, splits, config)
    notes += [_repeats_words(repeats, logs, config.kind)] if repeats else []
    check_sizes(len(splits.calibrate.ids), config, repeats)
    classes, codes, cut = coded(logs, golden, outside, splits, config)
    sources = {
        s.name: SplitRows(
            _inputs(s, config), codes[s.name], weights if s.name == "golden" else None, s.places
        )
        for s in (logs, golden)
        if s is not None
    }
    notes += absent_classes(classes, codes, config)
    notes += uncompared_classes(classes, codes["logs"], splits)
    files = {"data": sha256_of(Path(config.data))}
    files |= {} if config.golden is None else {"golden": sha256_of(Path(config.golden))}
    found = StudyRows(config.kind, classes, sources, splits, files, tuple(notes), cut)
    if config.kind == "table":
        for source in (logs, golden):
            if source is not None:
                check_finite(source, _inputs_of(source, config))
        check_columns(_inputs_of(logs, config), classes, logs.file)
        check_table(found["train"].inputs, config.categories, logs.file)
    return found


def _repeats(logs: Source, splits: Splits, config: StudyConfig) -> int:
    """Return how many rows have no job, because one with the same text or image has it."""
    used = sum(len(part) for part in splits.parts().values() if part.source == "logs")
    return len(logs) - used if config.golden is None else 0


def _repeats_words(n: int, logs: Source, kind: str) -> str:
    """Say that rows were left out of those that judge."""
    return (
        f"{format_count(n, logs.unit)} with the {kind} of another {'was' if n == 1 else 'were'} "
        f"left out of those that calibrate and test: without a golden set each {kind} counts once "
        "there."
    )


def _source(
    name: str, file: str, config: StudyConfig, notes: list[str], logs: Source | None = None
) -> Source:
    if config.images:
        return image_source(name, file, config.image_size, notes, logs=logs)
    if Path(file).suffix == ".npz":
        raise InputError(f"{file} holds arrays, not columns: add --images if they are images.")
    texts = () if config.text is None else (config.text,)
    table = read_rows(file, texts=texts)
    if not Path(file).exists():
        raise InputError(f"{file} is a pattern: name one file, or a folder of files like it.")
    column = str(config.label)
    labels = column_of(table, column, file, flag="--label")
    there = filled(labels)
    labels = pc.utf8_trim_whitespace(labels) if is_text(labels) else labels
    left_out(there, f"a label in '{column}'", file, notes)
    if config.text is not None:
        worded = _worded(table, config.text, file)
        left_out(worded, f"a text in '{config.text}'", file, notes)
        there = pc.and_(there, worded)
    if not pc.any(there).as_py():
        raise InputError(
            f"{file} has no row with both a text and a label: check the columns "
            f"'{config.text}' and '{column}'."
        )
    places = np.arange(table.num_rows)
    return Source(name, file, table, labels, places, f"the label '{column}'").where(there)


def _worded(table: pa.Table, name: str, file: str) -> pa.ChunkedArray:
    """Say which rows have a text."""
    column = column_of(table, name, file, flag="--text")
    if not is_text(column):
        raise InputError(
            f"{file}: the column '{name}' holds {column.type}, not text: name the column of the "
            "messages with --text, or use --tabular."
        )
    return filled(column)


def _sampled(logs: Source, config: StudyConfig, notes: list[str]) -> Source:
    if config.rows is None or config.rows >= len(logs):
        return logs
    rng = np.random.default_rng([config.seed, 1])
    kept = np.sort(rng.choice(len(logs), config.rows, replace=False))
    notes.append(
        f"{config.rows:,} of the {len(logs):,} {logs.unit}s of {Path(logs.file).name} were drawn "
        "at random, as asked."
    )
    return logs.take(kept)


def _outside(source: Source, config: StudyConfig) -> NDArray[np.bool_]:
    """Say which rows belong to no class."""
    if config.out_of_scope is None:
        return np.zeros(len(source), dtype=bool)
    labels = source.labels.to_pylist()
    names = ([str(label) for label in each] for each in (labels, whole_labels(labels)))
    either = [np.array(each, dtype=object) == config.out_of_scope for each in names]
    return np.asarray(either[0] | either[1], dtype=bool)


def _weights(golden: Source, config: StudyConfig) -> FloatArray | None:
    """Return the weights of the golden set: a column of its rows, or what lies by its images."""
    own = WEIGHT if WEIGHT in golden.table.column_names and config.images else None
    name = config.weight or own
    if name is None:
        check_largest_weight(config.largest_weight, None)
        return None
    from calibrant.inputs import as_weights

    values = golden.column(name)
    if not all(isinstance(v, int | float) and not isinstance(v, bool) for v in values):
        raise InputError(
            f"{golden.file}: the column '{name}' must hold a number for each row, as "
            "weights are inverse inclusion probabilities."
        )
    weights = as_weights(np.asarray(values, dtype=np.float64), len(golden))
    check_largest_weight(config.largest_weight, weights)
    if config.hold and weights is not None and weights.min() < 1:
        raise InputError(
            f"{golden.file}: weights must be inverse inclusion probabilities, so for a promise "
            f"none can be below 1, got {weights.min():g}."
        )
    return weights


def _inputs_of(source: Source, config: StudyConfig) -> list[str]:
    """Return the columns that the model reads, or by which equal images are known."""
    if config.text is not None or config.images:
        return [config.text or IMAGE]
    others = {config.label, config.weight, config.group, config.time, *config.drop}
    kept = [name for name in source.table.column_names if name not in others]
    for name in (*config.drop, *config.categories):
        column_of(source.table, name, source.file, flag="--drop or --category")
    if not kept:
        raise InputError(f"{source.file} has no column left to learn from: drop fewer of them.")
    return kept


def _inputs(source: Source, config: StudyConfig) -> Inputs:
    if source.images is not None:
        return source.images
    columns = _inputs_of(source, config)
    if config.text is None:
        return source.table.select(columns)
    texts = source.column(config.text)
    return redact(texts) if config.redact else texts
