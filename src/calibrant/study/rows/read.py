"""Read and check the files of a study, and divide their rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from numpy.typing import NDArray

from calibrant.bundle.decisions import predict_columns
from calibrant.bundle.files import sha256_of
from calibrant.data import TableEncoder, redact
from calibrant.data.encoders.column_warning import ignore_column_warnings
from calibrant.data.encoders.reading_error import ReadingError
from calibrant.data.encoders.table_columns import Table
from calibrant.data.row_files import infer_types, read_cells
from calibrant.data.row_identity import same_rows
from calibrant.data.splits import Splits
from calibrant.errors import InputError, SplitMisuse
from calibrant.files.source import BatchLocation
from calibrant.formatting import format_count
from calibrant.inputs import FloatArray
from calibrant.study.rows.class_codes import (
    encode_classes,
    mask_labels,
    note_absent_classes,
    note_similar_classes,
    note_uncompared_classes,
    restore_int_labels,
)
from calibrant.study.rows.divide import divide_rows
from calibrant.study.rows.features import (
    drop_unnamed_columns,
    keep_codes,
    learn_features,
    match_features,
    read_written,
)
from calibrant.study.rows.read_images import IMAGE, WEIGHT, check_same_size, read_image_source
from calibrant.study.rows.rows import Inputs, SplitRows, StudyRows
from calibrant.study.rows.source import StudySource, get_column, is_text, mask_filled, note_left_out
from calibrant.study.settings.config import StudyConfig
from calibrant.thresholds.proof.largest_weight import check_largest_weight

_COLUMN = "name another column with --label"
_OTHER = {"text": _COLUMN, "table": _COLUMN, "image": "give each class one name or number"}
"""Remedy for labels that are not classes."""

MIN_CALIBRATE_ROWS = 20
"""Calibrate rows needed to choose a calibrator automatically."""


def read_study_rows(config: StudyConfig) -> StudyRows:
    """Read the logs and the golden set, and assign every row to a split.

    Raises `InputError` for a missing column, a single class, a class too small to be divided, texts
    that are all empty and golden classes that the logs lack, and `SplitMisuse` for rows in both
    files unless `overlap` is "drop". Splits of images are positions in the npz file, or in the
    sorted list of files.
    """
    notes: list[str] = []
    logs = _read_source("logs", config.data, config, notes)
    golden = None
    if config.golden is not None:
        golden = _read_source("golden", config.golden, config, notes, logs)
        check_same_size(logs, golden)
        logs = resolve_overlap(logs, golden, _input_columns(logs, config), config, notes)
    logs = _sample_rows(logs, config, notes)
    outside = {s.name: _mask_outside(s, config) for s in (logs, golden) if s is not None}
    if config.out_of_scope is not None and not any(map(np.any, outside.values())):
        raise InputError(
            f"no {logs.unit} has the label '{config.out_of_scope}' given by --out-of-scope: check "
            "its spelling, or leave it out."
        )
    weights = None if golden is None else _read_weights(golden, config)
    for source in (logs, golden):
        if source is not None:
            check_labels(source, outside[source.name], config)
    splits = divide_rows(logs, golden, outside, config, _input_columns(logs, config))
    repeats = _count_repeats(logs, splits, config)
    notes += [_describe_repeats(repeats, logs, config.kind)] if repeats else []
    check_sizes(len(splits.calibrate.ids), config, repeats)
    classes, codes, cut = encode_classes(logs, golden, outside, splits, config)
    inputs = _read_inputs(logs, golden, config)
    sources = {
        s.name: SplitRows(
            inputs[s.name],
            codes[s.name],
            weights if s.name == "golden" else None,
            s.positions,
        )
        for s in (logs, golden)
        if s is not None
    }
    notes += note_absent_classes(classes, codes, config)
    notes += note_uncompared_classes(classes, codes["logs"], splits)
    notes += note_similar_classes(classes)
    files = {"data": sha256_of(Path(config.data))}
    files |= {} if config.golden is None else {"golden": sha256_of(Path(config.golden))}
    rows = StudyRows(config.kind, classes, sources, splits, files, tuple(notes), cut)
    train = rows["train"].inputs
    if isinstance(train, Table):
        check_reserved_columns(train.names, classes, logs.file)
        check_table(train, config.categories, logs.file)
    return rows


def _count_repeats(logs: StudySource, splits: Splits, config: StudyConfig) -> int:
    """Count the rows left out because another row has the same text or image."""
    used = sum(len(part) for part in splits.parts().values() if part.source == "logs")
    return len(logs) - used if config.golden is None else 0


def _describe_repeats(n: int, logs: StudySource, kind: str) -> str:
    """Return the note about repeated rows that were left out."""
    return (
        f"{format_count(n, logs.unit)} with the {kind} of another {'was' if n == 1 else 'were'} "
        f"left out of calibrate and test: without a golden set each {kind} counts once there."
    )


def _read_source(
    name: str, file: str, config: StudyConfig, notes: list[str], logs: StudySource | None = None
) -> StudySource:
    if config.images:
        return read_image_source(name, file, config.image_size, notes, logs=logs)
    if Path(file).suffix == ".npz":
        raise InputError(f"{file} holds arrays, not columns: add --images if they are images.")
    texts = () if config.text is None else (config.text,)
    cells = read_cells(file, texts=texts)
    table = infer_types(cells, decimal=config.decimal, missing=config.missing)
    if not Path(file).exists():
        raise InputError(f"{file} is a pattern: name one file, or a folder of files like it.")
    column = str(config.label)
    get_column(table, column, file, flag="--label")
    table = _read_written_columns(table, file, config)
    labels = table.column(column)
    labels = pc.utf8_trim_whitespace(labels) if is_text(labels) else labels
    mask = mask_filled(labels)
    if name == "logs" and config.kind == "table":
        table = drop_unnamed_columns(table, config, file, notes)
        table = keep_codes(table, cells, config, notes)
    note_left_out(mask, f"a label in '{column}'", file, notes)
    mask = pc.and_(mask, mask_labels(labels, config, file, notes))
    if config.text is not None:
        has_text = _mask_texts(table, config.text, file)
        note_left_out(has_text, f"a text in '{config.text}'", file, notes)
        mask = pc.and_(mask, has_text)
    if not pc.any(mask).as_py():
        raise InputError(
            f"{file} has no row with both a text and a label: check the columns "
            f"'{config.text}' and '{column}'."
        )
    positions = np.arange(table.num_rows)
    label = f"the label '{column}'"
    source = StudySource(name, file, table, labels, positions, label, cells=cells)
    return source.where(mask)


def _read_written_columns(table: pa.Table, file: str, config: StudyConfig) -> pa.Table:
    """Read texts that are numbers or dates in a label to cut, in weights and in times."""
    names = {config.weight, config.time, config.label if config.cut else None}
    for i, name in enumerate(table.column_names):
        if name in names and is_text(table.column(name)):
            table = table.set_column(i, name, read_written(table.column(name), name, file, config))
    return table


def _mask_texts(table: pa.Table, name: str, file: str) -> pa.ChunkedArray:
    """Return a mask of the rows that have a text."""
    column = get_column(table, name, file, flag="--text")
    if not is_text(column):
        raise InputError(
            f"{file}: the column '{name}' holds {column.type}, not text: name the column of the "
            "messages with --text, or use --tabular."
        )
    return mask_filled(column)


def _sample_rows(logs: StudySource, config: StudyConfig, notes: list[str]) -> StudySource:
    if config.rows is None or config.rows >= len(logs):
        return logs
    rng = np.random.default_rng([config.seed, 1])
    sample = np.sort(rng.choice(len(logs), config.rows, replace=False))
    notes.append(
        f"{config.rows:,} of the {len(logs):,} {logs.unit}s of {Path(logs.file).name} were drawn "
        "at random, as requested."
    )
    return logs.take(sample)


def _mask_outside(source: StudySource, config: StudyConfig) -> NDArray[np.bool_]:
    """Return a mask of the out-of-scope rows."""
    if config.out_of_scope is None:
        return np.zeros(len(source), dtype=bool)
    labels = source.labels.to_pylist()
    spellings = (labels, restore_int_labels(labels))
    names = ([str(label) for label in spelling] for spelling in spellings)
    masks = [np.array(texts, dtype=object) == config.out_of_scope for texts in names]
    return np.asarray(masks[0] | masks[1], dtype=bool)


def _read_weights(golden: StudySource, config: StudyConfig) -> FloatArray | None:
    """Return the weights of the golden set, from a column or from its image file."""
    stored = WEIGHT if WEIGHT in golden.table.column_names and config.images else None
    name = config.weight or stored
    if name is None:
        check_largest_weight(config.largest_weight, None)
        return None
    from calibrant.inputs import as_weights

    values = golden.column(name)
    if not all(isinstance(v, int | float) and not isinstance(v, bool) for v in values):
        raise InputError(
            f"{golden.file}: the column '{name}' must hold a number for each row: weights are "
            "inverse inclusion probabilities."
        )
    weights = as_weights(np.asarray(values, dtype=np.float64), len(golden))
    check_largest_weight(config.largest_weight, weights)
    if config.hold and weights is not None and weights.min() < 1:
        raise InputError(
            f"{golden.file}: a promise needs weights of at least 1, since they are inverse "
            f"inclusion probabilities, got {weights.min():g}."
        )
    return weights


def _input_columns(source: StudySource, config: StudyConfig) -> list[str]:
    """Return the columns that the model reads; for images, the column with their hashes."""
    if config.text is not None or config.images:
        return [config.text or IMAGE]
    others = {config.label, config.weight, config.group, config.time, *config.drop}
    features = [name for name in source.table.column_names if name not in others]
    for name in (*config.drop, *config.categories):
        get_column(source.table, name, source.file, flag="--drop or --category")
    if not features:
        raise InputError(f"{source.file} has no column left to train on: drop fewer of them.")
    return features


def _read_inputs(
    logs: StudySource, golden: StudySource | None, config: StudyConfig
) -> dict[str, Inputs]:
    """Return what the model reads, by the name of the source."""
    sources = [source for source in (logs, golden) if source is not None]
    if config.kind != "table":
        return {source.name: _read_one(source, config) for source in sources}
    for source in sources:
        check_finite(source, _input_columns(source, config))
    features = learn_features(logs, _input_columns(logs, config), config)
    matched = {} if golden is None else {"golden": match_features(golden, features)}
    return {"logs": features, **matched}


def _read_one(source: StudySource, config: StudyConfig) -> Inputs:
    if source.images is not None:
        return source.images
    texts: list[str] = source.column(str(config.text))
    return cast(list[str], redact(texts)) if config.redact else texts


def check_labels(source: StudySource, outside: NDArray[np.bool_], config: StudyConfig) -> None:
    """Raise `InputError` for labels that are numbers, row ids, or too rare for every split."""
    if config.cut:
        return
    labels = [v for v, off in zip(source.labels.to_pylist(), outside, strict=True) if not off]
    counts = Counter(labels)
    where = f"{source.file}: {source.label}"
    remedy = f"{_OTHER[config.kind]}."
    odd = next((v for v in counts if isinstance(v, float) and not v.is_integer()), None)
    if odd is not None:
        cut = "" if config.images else "add --cut to cut it into low and high at its median, or "
        raise InputError(
            f"{where} holds numbers that are not integers, such as {odd!r}: {cut}{remedy}"
        )
    if len(counts) > max(2, len(labels) // 2):
        raise InputError(
            f"{where} has {len(counts):,} different values in {len(labels):,} {source.unit}s, so "
            f"it identifies {source.unit}s rather than classes: {remedy}"
        )
    _check_rare(source, counts, config)


def _check_rare(source: StudySource, counts: Counter[Any], config: StudyConfig) -> None:
    logs = source.name == "logs"
    parts = 2 if not logs else 4 if config.golden is None else 3
    few = [name for name, n in counts.items() if n < parts]
    if not counts and logs:
        raise InputError(
            f"{source.file}: every {source.unit} has the out-of-scope label "
            f"{config.out_of_scope!r}: give {source.unit}s of at least two classes."
        )
    if len(counts) < 2 and logs:
        raise InputError(
            f"{source.file}: {source.label} has only one class, {next(iter(counts))!r}: "
            f"give {source.unit}s of at least two classes."
        )
    if few and logs:
        n = counts[few[0]]
        also = f" ({len(few) - 1:,} other classes are as rare)" if len(few) > 1 else ""
        raise InputError(
            f"{source.file}: the class {few[0]!r} has {n} {source.unit}{'' if n == 1 else 's'}, "
            f"but each of the {parts} splits needs one{also}: merge it with another class, drop "
            f"its {source.unit}s, or collect more of them."
        )


def check_sizes(calibrate: int, config: StudyConfig, repeats: int = 0) -> None:
    """Raise `InputError` before training if there are too few rows to choose a calibrator on."""
    if config.calibrator == "auto" and calibrate < MIN_CALIBRATE_ROWS:
        remedy = (
            "label more golden rows"
            if config.golden is not None
            else "hold more rows out, like --shares 4:1:5, or give more of them"
        )
        if repeats:
            remedy = f"{repeats:,} with the {config.kind} of another were left out; give --golden"
        raise InputError(
            f"only {calibrate} rows are left to calibrate on, but choosing a calibrator needs "
            f"{MIN_CALIBRATE_ROWS}: {remedy}, or choose a simple one with --calibrator temperature."
        )


def check_reserved_columns(features: Sequence[str], classes: Sequence[Any], file: str) -> None:
    """Raise `InputError` for features named like a column that `calibrant predict` adds.

    They could be trained on, but `calibrant predict` could not add its columns to such a file.

    Examples
    --------
    >>> check_reserved_columns(["age", "prob_yes"], ["no", "yes"], "churn.csv")
    Traceback (most recent call last):
    ...
    calibrant.errors.InputError: churn.csv: 'prob_yes' is the name of a column that calibrant
    predict adds: rename it, or leave it out with --drop 'prob_yes'.
    """
    taken = [name for name in predict_columns(classes) if name in features]
    if not taken:
        return
    names = " and ".join(f"'{name}'" for name in taken)
    are, it = ("is the name of a column", "it") if len(taken) == 1 else ("are columns", "them")
    drops = " ".join(f"--drop '{name}'" for name in taken)
    raise InputError(
        f"{file}: {names} {are} that calibrant predict adds: rename {it}, or leave {it} out with "
        f"{drops}."
    )


def check_finite(source: StudySource, features: Sequence[str]) -> None:
    """Raise `InputError` for infinite numbers in any split, before training."""
    for name in features:
        column = source.table[name]
        if not pt.is_floating(column.type):
            continue
        infinite = np.isinf(column.to_numpy())
        if infinite.any():
            row = int(np.argmax(infinite))
            where = BatchLocation(Path(source.file)).row(int(source.positions[row]))
            raise InputError(
                f"{where}: '{name}' is {column[row].as_py()}: give a finite number, or leave the "
                "cell empty where the value is missing."
            )


def check_table(table: Table, categories: Sequence[str], file: str) -> None:
    """Raise `InputError` for ids, free text and other columns that cannot be encoded."""
    reasons: dict[str, str] = {}
    errors: list[ReadingError] = []
    for name in table.names:
        encoder = TableEncoder(categories=[name] if name in categories else [])
        try:
            with ignore_column_warnings():  # training warns about them
                encoder.fit(table.select([name]))
        except ReadingError as error:
            errors.append(error)
        except InputError as error:
            reasons[name] = str(error).removeprefix("X ").partition(": ")[0].rstrip(".")
    if errors:
        first = errors[0].with_others([*(each.column for each in errors[1:]), *reasons])
        raise InputError(first.describe(f"{file}: column {first.column!r}", command=True))
    if reasons:
        drops = " ".join(f"--drop '{name}'" for name in reasons)
        raise InputError(f"{file}: {next(iter(reasons.values()))}: leave it out with {drops}.")


def resolve_overlap(
    logs: StudySource,
    golden: StudySource,
    columns: list[str],
    config: StudyConfig,
    notes: list[str],
) -> StudySource:
    """Return the logs without the rows that are also in the golden set.

    A model could memorise such rows and would then be evaluated on them. With `overlap="refuse"`
    they raise `SplitMisuse`, as do logs of which no row is left.
    """
    both = same_rows(logs.table, golden.table, columns)
    if not len(both):
        return logs
    unit, row, units = logs.unit, "row ", "data rows"
    if logs.images is not None:
        row, units = "", "images"
    log_names, golden_names = logs.row_names(both[:5, 0]), golden.row_names(both[:5, 1])
    pairs = [
        f"{golden_name} ({row}{log_name} of the logs)"
        for log_name, golden_name in zip(log_names, golden_names, strict=True)
    ]
    repeated = np.unique(both[:, 0])
    if config.overlap == "refuse":
        rows = f"{unit} is" if len(repeated) == 1 else f"{unit}s are"
        raise SplitMisuse(
            f"{len(repeated):,} {rows} both in {logs.file} and in {golden.file}, so the model "
            f"would be evaluated on rows it was trained on: golden {units} {', '.join(pairs)}: "
            "remove them from one of the files, or add --overlap drop to leave them out of the "
            "logs."
        )
    if len(repeated) == len(logs):
        raise SplitMisuse(
            f"no {unit} of {logs.file} is left to train on, because all {len(logs):,} of them are "
            f"also in {golden.file}: give logs that are not the golden set, or leave --golden out "
            f"to hold out {unit}s of the logs."
        )
    were = f"1 {unit} was" if len(repeated) == 1 else f"{len(repeated):,} {unit}s were"
    also = "it is" if len(repeated) == 1 else "they are"
    notes.append(f"{were} left out of the logs because {also} also in the golden set.")
    return logs.take(np.setdiff1d(np.arange(len(logs)), repeated))
