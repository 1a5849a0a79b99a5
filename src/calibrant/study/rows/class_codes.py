"""Classes of a study, taken from its train rows, the class code of every row, missing labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from calibrant.data import TargetCut
from calibrant.data.splits import Splits
from calibrant.errors import InputError
from calibrant.inputs import IntArray
from calibrant.study.rows.rows import OUTSIDE
from calibrant.study.rows.source import StudySource, is_text
from calibrant.study.settings.config import StudyConfig

MISSING_LABELS = (
    "NA", "N/A", "n/a", "#N/A", "<NA>", "NULL", "Null", "null", "NaN", "nan", "NAN", "NaT",
)  # fmt: skip
"""Words that programs write for a missing value; "none" and "-" may be the name of a class."""


def encode_classes(
    logs: StudySource,
    golden: StudySource | None,
    outside: Mapping[str, NDArray[np.bool_]],
    splits: Splits,
    config: StudyConfig,
) -> tuple[tuple[Any, ...], dict[str, IntArray], dict[str, Any] | None]:
    """Return the classes of the train rows, every row's code, and the cut of a numeric label."""
    values = {
        s.name: restore_int_labels(s.labels.to_pylist()) for s in (logs, golden) if s is not None
    }
    cut = None
    if config.cut:
        cut = _fit_cut([values["logs"][i] for i in splits.train.ids], logs)
        values = {name: cut.transform(labels).tolist() for name, labels in values.items()}
    names = _class_names(values["logs"], splits.train.ids, outside["logs"], logs)
    code_of = {str(name): k for k, name in enumerate(names)}
    codes = {}
    for source in (logs, golden):
        if source is not None:
            raw = [code_of.get(str(v), OUTSIDE - 1) for v in values[source.name]]
            codes[source.name] = _check_codes(
                np.array(raw, dtype=np.int64), values[source.name], outside, source, names
            )
    return names, codes, None if cut is None else cut.to_dict()


def note_absent_classes(
    classes: Sequence[Any], codes: Mapping[str, IntArray], config: StudyConfig
) -> list[str]:
    """Return a note about the classes that have no golden row."""
    if config.golden is None:
        return []
    lacking = [str(name) for k, name in enumerate(classes) if not (codes["golden"] == k).any()]
    if not lacking:
        return []
    return [
        f"The golden set has no row of {_quote_names(lacking)}: no figure on this page covers that."
    ]


def note_uncompared_classes(classes: Sequence[Any], codes: IntArray, splits: Splits) -> list[str]:
    """Return a note about the classes that have no choice row, if there are choice rows."""
    present = set(codes[splits.choice.ids].tolist())
    lacking = [str(name) for k, name in enumerate(classes) if k not in present]
    if not present or not lacking:
        return []
    return [
        f"There is no choice row of {_quote_names(lacking)}: the candidates were not compared on "
        "that."
    ]


def note_similar_classes(classes: Sequence[Any]) -> list[str]:
    """Return a note about classes whose names differ only in case or blanks.

    Examples
    --------
    >>> note_similar_classes(["NO", "YES", "no"])
    ["The classes 'NO' and 'no' differ only in case or blanks and are taken as different classes:
    make them equal in the file if they are one."]
    """
    alike: dict[str, list[str]] = {}
    for name in map(str, classes):
        alike.setdefault("".join(name.split()).casefold(), []).append(name)
    groups = [" and ".join(f"'{name}'" for name in names) for names in alike.values() if names[1:]]
    if not groups:
        return []
    differ = "differ" if len(groups) == 1 else "each differ"
    return [
        f"The classes {', '.join(groups)} {differ} only in case or blanks and are taken as "
        "different classes: make them equal in the file if they are one."
    ]


def mask_labels(
    labels: pa.ChunkedArray, config: StudyConfig, file: str, notes: list[str]
) -> pa.ChunkedArray:
    """Return a mask of the rows whose label is not a word for a missing one, and note the others.

    A word is a class if the settings name it, or if the label column is in `categories`.
    """
    every = pa.chunked_array([pa.array([True] * len(labels), pa.bool_())])
    if not is_text(labels) or config.label in config.categories:
        return every
    words = [
        word for word in (*MISSING_LABELS, *config.missing) if word not in config.named_classes
    ]
    missing = pc.fill_null(pc.is_in(labels, value_set=pa.array(words, labels.type)), False)
    n = int(pc.sum(missing).as_py() or 0)
    if not n:
        return every
    shown = ", ".join(f"'{word}'" for word in pc.unique(labels.filter(missing)).to_pylist())
    remedy = f"add --category {quote(str(config.label))} if it is the name of a class"
    if n == len(labels):
        raise InputError(
            f"{file}: every label in '{config.label}' is {shown}, which stands for a missing one: "
            f"check the file, or {remedy}."
        )
    rows = "1 row" if n == 1 else f"{n:,} rows"
    notes.append(
        f"{rows} of {Path(file).name} with {shown} in '{config.label}', which stands for a missing "
        f"label, {'was' if n == 1 else 'were'} left out: {remedy}."
    )
    return pc.invert(missing)


def _quote_names(names: Sequence[str]) -> str:
    return ", ".join(f"'{name}'" for name in names[:5]) + (" ..." if len(names) > 5 else "")


def restore_int_labels(labels: Sequence[Any]) -> list[Any]:
    """Return labels with integral floats as ints: a missing label turns a column into floats.

    Examples
    --------
    >>> restore_int_labels([3.0, 2.5, "a"])
    [3, 2.5, 'a']
    """
    return [int(v) if isinstance(v, float) and v.is_integer() else v for v in labels]


def _fit_cut(labels: Sequence[Any], logs: StudySource) -> TargetCut:
    if not all(isinstance(v, int | float) and not isinstance(v, bool) for v in labels):
        raise InputError(
            f"{logs.file}: {logs.label} cannot be cut at its median because it does not hold "
            "numbers: leave --cut out."
        )
    return TargetCut().fit(np.asarray(labels, dtype=np.float64))


def _class_names(
    labels: Sequence[Any], train: IntArray, outside: NDArray[np.bool_], logs: StudySource
) -> tuple[Any, ...]:
    """Return the classes of the train rows, sorted."""
    names = {labels[i] for i in train if not outside[i]}
    if len(names) < 2:
        only = next(iter(names), None)
        raise InputError(
            f"{logs.file}: {logs.label} has only one class, {only!r}: give {logs.unit}s of at "
            "least two classes."
        )
    return tuple(sorted(names))


def _check_codes(
    codes: IntArray,
    values: Sequence[Any],
    outside: Mapping[str, NDArray[np.bool_]],
    source: StudySource,
    names: Sequence[Any],
) -> IntArray:
    """Return codes with out-of-scope rows marked; a label without train rows is an error."""
    codes[outside[source.name]] = OUTSIDE
    unknown = np.flatnonzero(codes < OUTSIDE)
    if len(unknown):
        first = values[unknown[0]]
        units = "data rows" if source.unit == "row" else "images"
        rows = ", ".join(source.row_names(unknown[:5]))
        listed = ", ".join(repr(name) for name in names[:8])
        problem = (
            "the logs do not train on" if source.name == "golden" else f"no train {source.unit} has"
        )
        raise InputError(
            f"{source.file} has the label {first!r}, which {problem} ({units} {rows}; the classes "
            f"are {listed}): correct it, add {source.unit}s of it to the logs, or name it with "
            "--out-of-scope."
        )
    return codes
