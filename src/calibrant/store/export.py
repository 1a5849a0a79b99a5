"""Predictions with their labels and outcomes as one parquet file, written page by page.

Pages are read in short transactions of their own: constant memory on every database, no log that
grows meanwhile, and nobody who forgets a unit has to wait for the end of an export.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
from sqlalchemy import ColumnElement, Connection, Row, exists, func, or_, select

from calibrant.errors import InputError
from calibrant.files.atomic_write import check_writable
from calibrant.files.write_table import write_tables
from calibrant.store.database import Database
from calibrant.store.schema import bundles, labels, outcomes, predictions

__all__ = ["METADATA", "check_export", "export"]

METADATA = b"calibrant.bundles"
"""Key of the file's metadata that says which classes the bundles have, in the order of `logits`."""

_PAGE = 2_000
_PAGE_SCORES = 400_000
"""Rows of a page, and numbers in its `logits`: with many classes it has fewer rows."""

_MOMENT = pa.timestamp("us", "UTC")
_OUTCOME = pa.struct(
    [("name", pa.string()), ("at", _MOMENT), ("value", pa.float64()), ("text", pa.string())]
)
_BEFORE: dict[str, pa.DataType] = {
    "id": pa.string(),
    "at": _MOMENT,
    "bundle": pa.string(),
    "request": pa.string(),
    "position": pa.int32(),
    "unit": pa.string(),
    "use_case": pa.string(),
    "branch": pa.string(),
    "key": pa.string(),
    "text": pa.string(),
    "input": pa.string(),
    "input_hash": pa.string(),
    "logits": pa.list_(pa.float64()),
    "predicted": pa.string(),
    "score": pa.float64(),
}
_AFTER: dict[str, pa.DataType] = {
    "decision": pa.string(),
    "acted_as": pa.string(),
    "action": pa.string(),
    "operating_point": pa.int32(),
    "asked_point": pa.int32(),
    "out_of_scope": pa.bool_(),
    "latency_ms": pa.float64(),
    "label": pa.string(),
    "label_source": pa.string(),
    "labelled_at": _MOMENT,
    "outcomes": pa.list_(_OUTCOME),
}
"""The columns before and after `prob_<class>`."""


@dataclass(frozen=True)
class _Range:
    """Which rows are written: `conditions` of them, and the classes of each bundle in them.

    The conditions say nothing about where it starts: each page starts behind the last one, and of
    two bounds on the time SQLite might take the earlier one to look from.
    """

    since: datetime | None
    conditions: tuple[ColumnElement[bool], ...]
    names: Mapping[str, str]
    classes: Mapping[str, Sequence[str]]

    @property
    def every_class(self) -> list[str]:
        return list(dict.fromkeys(name for each in self.classes.values() for name in each))

    @cached_property
    def known(self) -> dict[str, frozenset[str]]:
        """The classes of each bundle, to look labels up."""
        return {hash: frozenset(classes) for hash, classes in self.classes.items()}

    @property
    def page(self) -> int:
        return min(_PAGE, max(1, _PAGE_SCORES // max(1, len(self.every_class))))

    @property
    def schema(self) -> pa.Schema:
        columns = {**_BEFORE, **{f"prob_{name}": pa.float64() for name in self.every_class}}
        known = {
            hash: {"name": self.names[hash], "classes": list(classes)}
            for hash, classes in self.classes.items()
        }
        about = json.dumps(known, ensure_ascii=False).encode()
        return pa.schema(list({**columns, **_AFTER}.items()), metadata={METADATA: about})


def export(
    database: Database,
    path: str | os.PathLike[str],
    since: datetime | None = None,
    until: datetime | None = None,
    *,
    use_case: str | None = None,
    labelled: bool = False,
    left_out: Counter[str] | None = None,
    name: str = "path",
) -> int:
    """Write predictions with their latest label and all outcomes, oldest first; return how many.

    With `labelled`, rows whose label is no class of their bundle are left out: nobody gave it a
    probability, and no score file can hold it.
    """
    path = check_export(path, since, until, name=name)
    asked: list[ColumnElement[bool]] = []
    asked += [] if until is None else [predictions.c.at < until]
    asked += [] if use_case is None else [predictions.c.use_case == use_case]
    asked += [exists().where(labels.c.prediction == predictions.c.id)] if labelled else []
    if labelled and left_out is None:
        left_out = Counter()
    tables = _tables(database, since, asked, left_out if labelled else None)
    return write_tables(path, tables, name=name, private=True)


def check_export(
    path: str | os.PathLike[str],
    since: datetime | None,
    until: datetime | None,
    *,
    name: str = "path",
) -> Path:
    """Refuse a file that cannot be written, or an empty range."""
    path = check_writable(path, name=name)
    if path.suffix.lower() != ".parquet":
        raise InputError(f"{name} {path}: the export is parquet, so let the name end in .parquet.")
    if since is not None and until is not None and since >= until:
        raise InputError(
            f"since must lie before until, got {since.isoformat()} and {until.isoformat()}."
        )
    return path


def _tables(
    database: Database,
    since: datetime | None,
    asked: Sequence[ColumnElement[bool]],
    left_out: Counter[str] | None,
) -> Iterator[pa.Table]:
    """Yield the pages, the first of them even where it is empty."""
    with database.read(patient=True) as connection:
        found = _range_of(connection, since, asked)
    last: Row[Any] | None = None
    while True:
        with database.read(patient=True) as connection:
            rows = _page(connection, found, last)
            ids = [row.id for row in rows]
            known, came = _labels(connection, ids), _outcomes(connection, ids)
        if rows or last is None:
            kept = rows if left_out is None else _of_classes(rows, found, known, left_out)
            yield _table(kept, found, known, came)
        if len(rows) < found.page:
            return
        last = rows[-1]


def _range_of(
    connection: Connection, since: datetime | None, asked: Sequence[ColumnElement[bool]]
) -> _Range:
    """Find the bundles behind the rows, and where the rows end: later ones are left out."""
    at = predictions.c.at
    seen = connection.execute(
        select(predictions.c.bundle, func.max(at).label("last"))
        .where(*asked, *([] if since is None else [at >= since]))
        .group_by(predictions.c.bundle)
    ).all()
    hashes = [row.bundle for row in seen]
    known = connection.execute(
        select(bundles).where(bundles.c.hash.in_(hashes)).order_by(bundles.c.at, bundles.c.hash)
    ).all()
    ends = [at <= max(row.last for row in seen)] if seen else []
    return _Range(
        since,
        (*asked, *ends, predictions.c.bundle.in_(hashes)),
        {row.hash: row.name for row in known},
        {row.hash: [str(name) for name in row.classes] for row in known},
    )


def _page(connection: Connection, found: _Range, last: Row[Any] | None) -> Sequence[Row[Any]]:
    """Read the rows after `last`, by time and then by id."""
    at, id = predictions.c.at, predictions.c.id
    start = found.since if last is None else last.at
    after = [] if start is None else [at >= start]
    after += [] if last is None else [or_(at > last.at, id > last.id)]
    query = select(predictions).where(*found.conditions, *after).order_by(at, id)
    return connection.execute(query.limit(found.page)).all()


def _labels(connection: Connection, ids: Sequence[str]) -> dict[str, Row[Any]]:
    """Return the latest label of each prediction that has one."""
    query = select(labels).where(labels.c.prediction.in_(ids)).order_by(labels.c.at, labels.c.id)
    return {row.prediction: row for row in connection.execute(query)}


def _outcomes(connection: Connection, ids: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
    query = select(outcomes).where(outcomes.c.prediction.in_(ids))
    found: dict[str, list[dict[str, Any]]] = {}
    for row in connection.execute(query.order_by(outcomes.c.at, outcomes.c.id)):
        told = {"name": row.name, "at": row.at, "value": row.value, "text": row.text}
        found.setdefault(row.prediction, []).append(told)
    return found


def _of_classes(
    rows: Sequence[Row[Any]],
    found: _Range,
    known: Mapping[str, Row[Any]],
    left_out: Counter[str],
) -> list[Row[Any]]:
    """Return the rows whose label is a class of their bundle, and count the labels of others."""
    kept = []
    for row in rows:
        label = known.get(row.id)  # forgotten meanwhile: no label
        if label is not None and label.label in found.known[row.bundle]:
            kept.append(row)
        elif label is not None:
            left_out[label.label] += 1
    return kept


def _table(
    rows: Sequence[Row[Any]],
    found: _Range,
    known: Mapping[str, Row[Any]],
    came: Mapping[str, list[dict[str, Any]]],
) -> pa.Table:
    made = [_record(row, found, known.get(row.id), came.get(row.id, [])) for row in rows]
    return pa.Table.from_pylist(made, schema=found.schema)


def _record(
    row: Row[Any], found: _Range, label: Row[Any] | None, came: list[dict[str, Any]]
) -> dict[str, Any]:
    columns = dict(row._mapping)
    text, other = _input(columns.pop("input"))
    columns |= {"text": text, "input": other, "predicted": columns.pop("label"), "outcomes": came}
    classes = found.classes.get(row.bundle, ())
    columns |= {f"prob_{name}": p for name, p in zip(classes, row.probs, strict=False)}
    if label is not None:
        columns |= {"label": label.label, "label_source": label.source, "labelled_at": label.at}
    return columns


def _input(given: Any) -> tuple[str | None, str | None]:
    """Return an input that is a text as that text, and any other as JSON."""
    if isinstance(given, dict) and list(given) == ["text"] and isinstance(given["text"], str):
        return given["text"], None
    return None, None if given is None else json.dumps(given, ensure_ascii=False)
