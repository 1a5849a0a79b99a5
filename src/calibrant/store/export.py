"""Export of predictions with labels and outcomes to Parquet, page by page.

Each page is read in a short transaction: memory is constant, the write-ahead log does not grow, and
erasures do not wait for the end of an export.
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

METADATA = b"calibrant.bundles"
"""Metadata key for the classes of each bundle, in the order of `logits`."""

_PAGE = 2_000
_PAGE_SCORES = 400_000  # Maximum rows and logits per page

_MOMENT = pa.timestamp("us", "UTC")
_OUTCOME = pa.struct(
    [("name", pa.string()), ("at", _MOMENT), ("value", pa.float64()), ("text", pa.string())]
)
_COLUMNS_BEFORE: dict[str, pa.DataType] = {
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
_COLUMNS_AFTER: dict[str, pa.DataType] = {
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
"""Columns before and after `prob_<class>`."""


@dataclass(frozen=True)
class _Range:
    """Rows to export: their `conditions`, and the classes of each bundle.

    The conditions exclude the start: each page starts after the last one, and of two lower bounds
    on the time SQLite might search from the earlier one.
    """

    since: datetime | None
    conditions: tuple[ColumnElement[bool], ...]
    names: Mapping[str, str]
    classes: Mapping[str, Sequence[str]]

    @property
    def every_class(self) -> list[str]:
        return list(dict.fromkeys(name for classes in self.classes.values() for name in classes))

    @cached_property
    def known(self) -> dict[str, frozenset[str]]:
        """Classes of each bundle as sets."""
        return {hash: frozenset(classes) for hash, classes in self.classes.items()}

    @property
    def page(self) -> int:
        return min(_PAGE, max(1, _PAGE_SCORES // max(1, len(self.every_class))))

    @property
    def schema(self) -> pa.Schema:
        columns = {**_COLUMNS_BEFORE, **{f"prob_{name}": pa.float64() for name in self.every_class}}
        known = {
            hash: {"name": self.names[hash], "classes": list(classes)}
            for hash, classes in self.classes.items()
        }
        about = json.dumps(known, ensure_ascii=False).encode()
        return pa.schema(list({**columns, **_COLUMNS_AFTER}.items()), metadata={METADATA: about})


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
    """Write predictions with their latest label and outcomes, oldest first; return the count.

    With `labelled`, rows whose label is not a class of their bundle are left out, because they
    have no probability for it.
    """
    path = check_export(path, since, until, name=name)
    conditions: list[ColumnElement[bool]] = []
    conditions += [] if until is None else [predictions.c.at < until]
    conditions += [] if use_case is None else [predictions.c.use_case == use_case]
    conditions += [exists().where(labels.c.prediction == predictions.c.id)] if labelled else []
    if labelled and left_out is None:
        left_out = Counter()
    tables = _tables(database, since, conditions, left_out if labelled else None)
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
        raise InputError(f"{name} {path}: the export is Parquet: use a name ending in .parquet.")
    if since is not None and until is not None and since >= until:
        raise InputError(
            f"since must be before until, got {since.isoformat()} and {until.isoformat()}."
        )
    return path


def _tables(
    database: Database,
    since: datetime | None,
    conditions: Sequence[ColumnElement[bool]],
    left_out: Counter[str] | None,
) -> Iterator[pa.Table]:
    """Yield the pages; an empty export has one empty page."""
    with database.read(patient=True) as connection:
        selection = _select_range(connection, since, conditions)
    last: Row[Any] | None = None
    while True:
        with database.read(patient=True) as connection:
            rows = _page(connection, selection, last)
            ids = [row.id for row in rows]
            known, outcomes_of = _labels(connection, ids), _outcomes(connection, ids)
        if rows or last is None:
            rows_with_class = (
                rows if left_out is None else _keep_known_labels(rows, selection, known, left_out)
            )
            yield _table(rows_with_class, selection, known, outcomes_of)
        if len(rows) < selection.page:
            return
        last = rows[-1]


def _select_range(
    connection: Connection, since: datetime | None, conditions: Sequence[ColumnElement[bool]]
) -> _Range:
    """Find the bundles of the rows and the latest row, which ends the export."""
    at = predictions.c.at
    seen = connection.execute(
        select(predictions.c.bundle, func.max(at).label("last"))
        .where(*conditions, *([] if since is None else [at >= since]))
        .group_by(predictions.c.bundle)
    ).all()
    hashes = [row.bundle for row in seen]
    known = connection.execute(
        select(bundles).where(bundles.c.hash.in_(hashes)).order_by(bundles.c.at, bundles.c.hash)
    ).all()
    ends = [at <= max(row.last for row in seen)] if seen else []
    return _Range(
        since,
        (*conditions, *ends, predictions.c.bundle.in_(hashes)),
        {row.hash: row.name for row in known},
        {row.hash: [str(name) for name in row.classes] for row in known},
    )


def _page(connection: Connection, selection: _Range, last: Row[Any] | None) -> Sequence[Row[Any]]:
    """Read the page after the row `last`, by time and id."""
    at, id = predictions.c.at, predictions.c.id
    start = selection.since if last is None else last.at
    after = [] if start is None else [at >= start]
    after += [] if last is None else [or_(at > last.at, id > last.id)]
    query = select(predictions).where(*selection.conditions, *after).order_by(at, id)
    return connection.execute(query.limit(selection.page)).all()


def _labels(connection: Connection, ids: Sequence[str]) -> dict[str, Row[Any]]:
    """Return the latest label of each labelled prediction."""
    query = select(labels).where(labels.c.prediction.in_(ids)).order_by(labels.c.at, labels.c.id)
    return {row.prediction: row for row in connection.execute(query)}


def _outcomes(connection: Connection, ids: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
    query = select(outcomes).where(outcomes.c.prediction.in_(ids))
    by_prediction: dict[str, list[dict[str, Any]]] = {}
    for row in connection.execute(query.order_by(outcomes.c.at, outcomes.c.id)):
        outcome = {"name": row.name, "at": row.at, "value": row.value, "text": row.text}
        by_prediction.setdefault(row.prediction, []).append(outcome)
    return by_prediction


def _keep_known_labels(
    rows: Sequence[Row[Any]],
    selection: _Range,
    known: Mapping[str, Row[Any]],
    left_out: Counter[str],
) -> list[Row[Any]]:
    """Keep rows whose label is a class of their bundle, and count the other labels."""
    rows_with_class = []
    for row in rows:
        label = known.get(row.id)  # None if erased by now
        if label is not None and label.label in selection.known[row.bundle]:
            rows_with_class.append(row)
        elif label is not None:
            left_out[label.label] += 1
    return rows_with_class


def _table(
    rows: Sequence[Row[Any]],
    selection: _Range,
    known: Mapping[str, Row[Any]],
    outcomes_of: Mapping[str, list[dict[str, Any]]],
) -> pa.Table:
    records = [
        _record(row, selection, known.get(row.id), outcomes_of.get(row.id, [])) for row in rows
    ]
    return pa.Table.from_pylist(records, schema=selection.schema)


def _record(
    row: Row[Any], selection: _Range, label: Row[Any] | None, outcomes_of: list[dict[str, Any]]
) -> dict[str, Any]:
    columns = dict(row._mapping)
    text, other = _input(columns.pop("input"))
    columns |= {
        "text": text,
        "input": other,
        "predicted": columns.pop("label"),
        "outcomes": outcomes_of,
    }
    classes = selection.classes.get(row.bundle, ())
    columns |= {f"prob_{name}": p for name, p in zip(classes, row.probs, strict=False)}
    if label is not None:
        columns |= {"label": label.label, "label_source": label.source, "labelled_at": label.at}
    return columns


def _input(value: Any) -> tuple[str | None, str | None]:
    """Return a text input as text, and any other as JSON."""
    if isinstance(value, dict) and list(value) == ["text"] and isinstance(value["text"], str):
        return value["text"], None
    return None, None if value is None else json.dumps(value, ensure_ascii=False)
