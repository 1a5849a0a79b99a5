"""Labels of a score file become positions in the list of classes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from calibrant.errors import InputError
from calibrant.files.source import Ask, Place, Source
from calibrant.inputs import IntArray
from calibrant.inputs.value_names import MISSING, is_gap, name_of, spellings
from calibrant.scores.columns import Layout

__all__ = ["TRUTH", "class_codes", "names_of", "settle_classes"]

TRUTH = {"false": 0, "true": 1, "0": 0, "1": 1}
_GAPS = ("na", "n/a", "#n/a", "null", "none")  # no label, where no class is called so


def settle_classes(
    layout: Layout, sources: Iterable[Source], ask: Ask, pair: tuple[str, str] | None
) -> Layout:
    """Name the two classes behind a lone `prob` or `logit`.

    Without `positive` the labels must be 0 and 1, or false and true. With it, the other value
    that occurs is the negative class; as a rule the first batch shows both. `pair` are the names
    that the file itself gives.
    """
    if not layout.lone:
        return layout
    if pair is not None:
        return replace(layout, classes=_checked_pair(pair, ask.positive), named_by="classes")
    if ask.positive is not None:
        return _with_positive(layout, sources, ask.positive)
    first = next(_values(sources, layout.label), None)
    truth = str(first).strip().lower() in ("true", "false")
    return replace(layout, classes=("False", "True") if truth else ("0", "1"))


def _checked_pair(pair: tuple[str, str], positive: str | None) -> tuple[str, str]:
    if positive is not None and positive != pair[1]:
        raise InputError(
            f"--positive {positive} contradicts the archive, whose lone scores are of '{pair[1]}', "
            f"the second of its classes '{pair[0]}' and '{pair[1]}': leave --positive out."
        )
    return pair


def _with_positive(layout: Layout, sources: Iterable[Source], positive: str) -> Layout:
    """Find the other class; read on until the positive one is seen too, or say that it is not."""
    others: list[str] = []
    seen = False
    for value in _values(sources, layout.label):
        if positive in spellings(value):
            seen = True
        elif not is_gap(value) and name_of(value) not in others:
            others.append(name_of(value))
        if len(others) + seen > 1:
            break
    found = replace(
        layout, classes=(next(iter(others), f"not {positive}"), positive), named_by="--positive"
    )
    if seen or len(others) != 1:
        return found
    note = (
        f"No label is '{positive}', so all rows count as not '{positive}' and the scores as "
        "probabilities of a class that does not occur; check --positive."
    )
    return replace(found, notes=(*found.notes, note))


def class_codes(column: pa.Array, layout: Layout, place: Place) -> IntArray:
    """Find each label among the classes.

    Labels are matched as text, so that the number 3 finds `prob_3`.
    """
    where, column = place.column(layout.label), _plain(column)
    if not _is_nameable(column.type):
        raise InputError(
            f"{place.file}: {where} has type {column.type}: "
            "a label is a name, a whole number, true or false."
        )
    if column.null_count:
        row = int(pc.index(column.is_null(), True).as_py())
        raise _missing_label(place, row, where)
    k = len(layout.classes)
    if pa.types.is_integer(column.type) and layout.classes == tuple(map(str, range(k))):
        codes: NDArray[Any] = column.to_numpy(zero_copy_only=False)
        if codes.min() >= 0 and codes.max() < k:
            return codes.astype(np.int64, copy=False)
    return _look_up(column, layout, place)


def names_of(column: pa.Array, name: str, place: Place) -> NDArray[np.str_]:
    """Turn a column of single values into text; a missing value is the name '(missing)'."""
    if pa.types.is_nested(column.type):
        raise InputError(
            f"{place.file}: {place.column(name)} has type {column.type}, which holds several "
            "values in one row: name a column of single values."
        )
    encoded = _plain(column).dictionary_encode()
    names = [name_of(value) for value in encoded.dictionary.to_pylist()]
    places = pc.fill_null(encoded.indices, len(names)).to_numpy(zero_copy_only=False)
    found: NDArray[np.str_] = np.array([*names, MISSING])[places]
    return found


def _look_up(column: pa.Array, layout: Layout, place: Place) -> IntArray:
    encoded = column.dictionary_encode()
    position = {name: i for i, name in enumerate(layout.classes)}
    truth = layout.lone and not layout.named_by
    found: list[int] = []
    for value in encoded.dictionary.to_pylist():
        code = _position(value, position, truth=truth)
        if code is None:
            at = pc.index(encoded.indices, len(found)).as_py()
            raise _unknown_label(value, layout, place, int(at))
        found.append(code)
    codes: IntArray = np.array(found, dtype=np.int64)[
        encoded.indices.to_numpy(zero_copy_only=False)
    ]
    return codes


def _position(value: Any, position: Mapping[str, int], *, truth: bool) -> int | None:
    for spelling in spellings(value):
        if spelling in position:
            return position[spelling]
        if truth and spelling.lower() in TRUTH:
            return TRUTH[spelling.lower()]
    return None


def _values(sources: Iterable[Source], label: str) -> Iterator[Any]:
    """Yield the distinct labels of each batch, until the caller has seen enough."""
    for source in sources:
        for batch in source.batches((), (label,), 1 << 16):
            column = _plain(batch.column(label))
            if not _is_nameable(column.type):
                return
            yield from pc.unique(column).to_pylist()


def _unknown_label(value: Any, layout: Layout, place: Place, row: int) -> InputError:
    where = place.column(layout.label)
    if is_gap(value) or name_of(value).lower() in _GAPS:
        return _missing_label(place, row, where)
    shown = f"{place.row(row)}, {where}: label {name_of(value)!r}"
    if layout.lone and not layout.named_by:
        return InputError(
            f"{shown} is not 0, 1, true or false: name the class that '{layout.values[0]}' is the "
            "probability of with --positive NAME."
        )
    if layout.named_by == "--positive":
        negative, positive = layout.classes
        return InputError(
            f"{shown} is neither the positive class '{positive}' nor '{negative}': a lone "
            f"'{layout.values[0]}' knows two classes, so correct the label or --positive."
        )
    listed = ", ".join(f"'{name}'" for name in layout.classes[:8])
    more = f" and {len(layout.classes) - 8} more" if len(layout.classes) > 8 else ""
    remedy = "or the array classes" if layout.lone else "or add its score column"
    return InputError(
        f"{shown} is not among the classes {listed}{more}: correct the label {remedy}."
    )


def _missing_label(place: Place, row: int, where: str) -> InputError:
    return InputError(f"{place.row(row)}, {where}: the label is missing: fill or drop that row.")


def _plain(column: pa.Array) -> pa.Array:
    """Turn what Arrow's functions treat unevenly into plain text: views of it, and UUIDs."""
    if isinstance(column.type, pa.BaseExtensionType):
        words = [None if value is None else str(value) for value in column.to_pylist()]
        return pa.array(words, pa.string())
    kind = str(column.type)  # the types are younger than the oldest pyarrow that is supported
    return column.cast(pa.string()) if kind == "string_view" else column


def _is_nameable(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    tests = (
        pa.types.is_integer,
        pa.types.is_floating,
        pa.types.is_boolean,
        pa.types.is_string,
        pa.types.is_large_string,
        pa.types.is_binary,
        pa.types.is_large_binary,
        pa.types.is_decimal,
        pa.types.is_null,
    )
    return any(test(kind) for test in tests)
