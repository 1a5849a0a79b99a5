"""Read the files of a study: columns found, labels checked, nothing fixed silently."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from calibrant.bundle.files import sha256_of
from calibrant.data import TargetCut, read_rows, redact
from calibrant.data.splits import Splits
from calibrant.errors import InputError
from calibrant.inputs import FloatArray, IntArray
from calibrant.study.config import StudyConfig
from calibrant.study.dividing import divide
from calibrant.study.label_checks import check_labels, check_sizes
from calibrant.study.overlap import without_overlap
from calibrant.study.rows import OUTSIDE, SplitRows, StudyRows
from calibrant.study.table_checks import check_table

__all__ = ["read_study_rows"]


@dataclass(frozen=True)
class Source:
    """One file: its rows as they were read.

    Parameters
    ----------
    name : "logs" or "golden"
    file : where it was read from, for errors
    table : all its columns, rows without a label or a text left out
    labels : (n,) its labels, as the file has them
    places : (n,) position of each row in the file, from 0
    """

    name: str
    file: str
    table: pa.Table
    labels: pa.ChunkedArray
    places: IntArray

    def __len__(self) -> int:
        return len(self.places)

    def take(self, rows: IntArray) -> Source:
        """Return the rows at these positions."""
        at = pa.array(rows)
        return replace(
            self, table=self.table.take(at), labels=self.labels.take(at), places=self.places[rows]
        )

    def column(self, name: str) -> list[Any]:
        """Return a column as Python values, or say that it is not there."""
        return list(_column(self.table, name, self.file).to_pylist())


def read_study_rows(config: StudyConfig) -> StudyRows:
    """Read the logs and the golden set, and give every row its job.

    Raises `InputError` in one sentence for a column that is not there, a single class, a class too
    small to be divided, texts that are all empty, classes of the golden set that the logs lack, and
    (unless `overlap` is "drop") rows that stand in both.
    """
    notes: list[str] = []
    logs = _source("logs", config.data, config, notes)
    golden = None
    if config.golden is not None:
        golden = _source("golden", config.golden, config, notes)
        logs = without_overlap(logs, golden, _inputs_of(logs, config), config, notes)
    logs = _sampled(logs, config, notes)
    outside = {s.name: _outside(s, config) for s in (logs, golden) if s is not None}
    if config.out_of_scope is not None and not any(map(np.any, outside.values())):
        raise InputError(
            f"no row has the label '{config.out_of_scope}' that --out-of-scope names: check its "
            "spelling, or leave it out."
        )
    weights = None if golden is None else _weights(golden, config)
    for source in (logs, golden):
        if source is not None:
            check_labels(source, outside[source.name], config)
    splits = divide(logs, golden, outside, config, _inputs_of(logs, config))
    check_sizes(len(splits.calibrate.ids), config)
    classes, codes, cut = _classes(logs, golden, outside, splits, config)
    sources = {
        s.name: SplitRows(
            _inputs(s, config), codes[s.name], weights if s.name == "golden" else None, s.places
        )
        for s in (logs, golden)
        if s is not None
    }
    notes += _absent(classes, codes, config)
    kind = "table" if config.text is None else "text"
    files = {"data": sha256_of(Path(config.data))}
    files |= {} if config.golden is None else {"golden": sha256_of(Path(config.golden))}
    found = StudyRows(kind, classes, sources, splits, files, tuple(notes), cut)
    if kind == "table":
        check_table(found["train"].inputs, config.categories, logs.file)
    return found


def _absent(
    classes: Sequence[Any], codes: Mapping[str, IntArray], config: StudyConfig
) -> list[str]:
    """Say which classes the golden set has no row of."""
    if config.golden is None:
        return []
    lacking = [str(name) for k, name in enumerate(classes) if not (codes["golden"] == k).any()]
    if not lacking:
        return []
    shown = ", ".join(f"'{name}'" for name in lacking[:5]) + (" ..." if len(lacking) > 5 else "")
    return [f"The golden set has no row of {shown}: nothing on this page is about that."]


def _source(name: str, file: str, config: StudyConfig, notes: list[str]) -> Source:
    texts = () if config.text is None else (config.text,)
    table = read_rows(file, texts=texts)
    labels = _column(table, config.label, file, flag="--label")
    there = labels.is_valid()
    if pa.types.is_string(labels.type) or pa.types.is_large_string(labels.type):
        there = pc.and_(there, pc.not_equal(pc.utf8_trim_whitespace(labels), ""))
        labels = pc.utf8_trim_whitespace(labels)
    there = pc.fill_null(there, False)
    _left_out(there, f"a label in '{config.label}'", file, notes)
    if config.text is not None:
        column = _column(table, config.text, file, flag="--text")
        if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
            raise InputError(
                f"{file}: the column '{config.text}' holds {column.type}, not text: name the "
                "column of the messages with --text, or use --tabular."
            )
        worded = pc.fill_null(pc.not_equal(pc.utf8_trim_whitespace(column), ""), False)
        _left_out(worded, f"a text in '{config.text}'", file, notes)
        there = pc.and_(there, worded)
    places = np.flatnonzero(there.to_numpy(zero_copy_only=False))
    if not len(places):
        raise InputError(
            f"{file} has no row with both a text and a label: check the columns "
            f"'{config.text}' and '{config.label}'."
        )
    whole = Source(name, file, table, labels, np.arange(table.num_rows))
    return whole if len(places) == table.num_rows else whole.take(places)


def _column(table: pa.Table, name: str, file: str, *, flag: str = "") -> pa.ChunkedArray:
    if name in table.column_names:
        return table.column(name)
    from difflib import get_close_matches

    near = get_close_matches(name, table.column_names, n=1, cutoff=0.5)
    meant = f" (did you mean '{near[0]}'?)" if near else ""
    listed = ", ".join(f"'{one}'" for one in table.column_names[:12])
    more = " ..." if len(table.column_names) > 12 else ""
    how = f" with {flag}" if flag else ""
    raise InputError(
        f"{file} has no column '{name}'{meant}: name one of its columns{how}: {listed}{more}."
    )


def _left_out(there: Any, what: str, file: str, notes: list[str]) -> None:
    """Say how many rows lack something; refuse a file whose rows all do."""
    lacking = len(there) - int(pc.sum(there).as_py() or 0)
    if lacking == len(there):
        raise InputError(f"{file}: none of its {len(there):,} rows has {what}: check the file.")
    if lacking:
        rows = "1 row" if lacking == 1 else f"{lacking:,} rows"
        notes.append(f"Of {Path(file).name}, {rows} without {what} {_were(lacking)} left out.")


def _were(n: int) -> str:
    return "was" if n == 1 else "were"


def _sampled(logs: Source, config: StudyConfig, notes: list[str]) -> Source:
    if config.rows is None or config.rows >= len(logs):
        return logs
    rng = np.random.default_rng([config.seed, 1])
    kept = np.sort(rng.choice(len(logs), config.rows, replace=False))
    notes.append(
        f"{config.rows:,} of the {len(logs):,} rows of {Path(logs.file).name} were drawn at "
        "random, as asked."
    )
    return logs.take(kept)


def _outside(source: Source, config: StudyConfig) -> NDArray[np.bool_]:
    """Say which rows belong to no class."""
    if config.out_of_scope is None:
        return np.zeros(len(source), dtype=bool)
    names = np.array([str(label) for label in source.labels.to_pylist()], dtype=object)
    return np.asarray(names == config.out_of_scope, dtype=bool)


def _weights(golden: Source, config: StudyConfig) -> FloatArray | None:
    if config.weight is None:
        return None
    from calibrant.inputs import as_weights

    values = golden.column(config.weight)
    if not all(isinstance(v, int | float) and not isinstance(v, bool) for v in values):
        raise InputError(
            f"{golden.file}: the column '{config.weight}' must hold a number for each row, as "
            "weights are inverse inclusion probabilities."
        )
    return as_weights(np.asarray(values, dtype=np.float64), len(golden))


def _inputs_of(source: Source, config: StudyConfig) -> list[str]:
    """Return the columns that the model reads."""
    if config.text is not None:
        return [config.text]
    others = {config.label, config.weight, config.group, config.time, *config.drop}
    kept = [name for name in source.table.column_names if name not in others]
    for name in (*config.drop, *config.categories):
        _column(source.table, name, source.file, flag="--drop or --category")
    if not kept:
        raise InputError(f"{source.file} has no column left to learn from: drop fewer of them.")
    return kept


def _inputs(source: Source, config: StudyConfig) -> list[str] | pa.Table:
    columns = _inputs_of(source, config)
    if config.text is None:
        return source.table.select(columns)
    texts = source.column(config.text)
    return redact(texts) if config.redact else texts


def _classes(
    logs: Source,
    golden: Source | None,
    outside: dict[str, NDArray[np.bool_]],
    splits: Splits,
    config: StudyConfig,
) -> tuple[tuple[Any, ...], dict[str, IntArray], dict[str, Any] | None]:
    """Return the classes of the train rows, every row's code, and what cut a continuous label."""
    values = {s.name: _whole(s.labels.to_pylist()) for s in (logs, golden) if s is not None}
    cut = None
    if config.cut:
        cut = _fitted_cut([values["logs"][i] for i in splits.train.ids], logs, config)
        values = {name: cut.transform(some).tolist() for name, some in values.items()}
    names = _names(values["logs"], splits.train.ids, outside["logs"], logs, config)
    place = {str(name): k for k, name in enumerate(names)}
    codes = {}
    for source in (logs, golden):
        if source is not None:
            found = [place.get(str(v), OUTSIDE - 1) for v in values[source.name]]
            codes[source.name] = _checked(
                np.array(found, dtype=np.int64), values[source.name], outside, source, names
            )
    return names, codes, None if cut is None else cut.to_dict()


def _whole(labels: Sequence[Any]) -> list[Any]:
    """Return labels with whole numbers as such: a missing label made floats of all of them."""
    return [int(v) if isinstance(v, float) and v.is_integer() else v for v in labels]


def _fitted_cut(labels: Sequence[Any], logs: Source, config: StudyConfig) -> TargetCut:
    if not all(isinstance(v, int | float) and not isinstance(v, bool) for v in labels):
        raise InputError(
            f"{logs.file}: the label '{config.label}' is to be cut at its median, but it does not "
            "hold numbers: leave --cut out."
        )
    return TargetCut().fit(np.asarray(labels, dtype=np.float64))


def _names(
    labels: Sequence[Any],
    train: IntArray,
    outside: NDArray[np.bool_],
    logs: Source,
    config: StudyConfig,
) -> tuple[Any, ...]:
    """Return the classes of the train rows, sorted."""
    whole = {labels[i] for i in train if not outside[i]}
    if len(whole) < 2:
        only = next(iter(whole), None)
        raise InputError(
            f"{logs.file}: the label '{config.label}' has one class only, {only!r}: rows of at "
            "least two classes are needed."
        )
    return tuple(sorted(whole))


def _checked(
    codes: IntArray,
    values: Sequence[Any],
    outside: dict[str, NDArray[np.bool_]],
    source: Source,
    names: Sequence[Any],
) -> IntArray:
    """Refuse labels that the train rows lack."""
    codes[outside[source.name]] = OUTSIDE
    unknown = np.flatnonzero(codes < OUTSIDE)
    if len(unknown):
        first = values[unknown[0]]
        rows = ", ".join(f"{source.places[i] + 1:,}" for i in unknown[:5])
        listed = ", ".join(repr(name) for name in names[:8])
        what = "the logs do not train on" if source.name == "golden" else "no train row has"
        raise InputError(
            f"{source.file} has the label {first!r}, which {what} (data rows {rows}; the classes "
            f"are {listed}): correct it, add rows of it to the logs, or name it with "
            "--out-of-scope."
        )
    return codes
