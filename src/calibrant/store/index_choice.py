"""Choice of the index for a search on SQLite, which has no statistics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, func, literal, select
from sqlalchemy.sql.expression import UnaryExpression
from sqlalchemy.sql.operators import custom_op

from calibrant.store.schema import predictions

__all__ = ["choose_index", "unindexed"]

_LIMIT = 2_000
"""Rows that can be scanned in a few milliseconds."""


def choose_index(
    connection: Connection, conditions: Mapping[str, str], scores: Sequence[ColumnElement[bool]]
) -> str | None:
    """Choose the condition whose index is used; None for the index by time.

    The rarest condition is chosen. If all are common, any index finds a page of the newest rows
    quickly, because each covers the other columns.
    """
    if "unit" in conditions:
        return "unit"
    names = [name for name in ("label", "decision", "use_case") if name in conditions]
    if len(names) < 2 and not scores:
        return names[0] if names else None
    groups = {name: [predictions.c[name] == conditions[name]] for name in names}
    if scores:
        groups["score"] = list(scores)
    counts = {name: _count_some(connection, conditions) for name, conditions in groups.items()}
    rarest = min(counts, key=lambda name: counts[name])
    if counts[rarest] < _LIMIT:
        return rarest
    return names[0] if names else None


def unindexed(column: ColumnElement[Any]) -> ColumnElement[Any]:
    """Prevent SQLite from using the index of a column."""
    return UnaryExpression(column, operator=custom_op("+"), type_=column.type)


def _count_some(connection: Connection, conditions: Sequence[ColumnElement[bool]]) -> int:
    """Count rows, up to the limit."""
    some_rows = (
        select(literal(1)).select_from(predictions).where(*conditions).limit(_LIMIT).subquery()
    )
    return connection.execute(select(func.count()).select_from(some_rows)).scalar_one()
