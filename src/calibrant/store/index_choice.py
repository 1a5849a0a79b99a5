"""Which index a search on SQLite walks: it keeps no figures, so a few rows are counted for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, func, literal, select
from sqlalchemy.sql.expression import UnaryExpression
from sqlalchemy.sql.operators import custom_op

from calibrant.store.schema import predictions

__all__ = ["leading", "unindexed"]

_FEW = 2_000
"""Rows that are looked at one by one in a few milliseconds."""


def leading(
    connection: Connection, asked: Mapping[str, str], scores: Sequence[ColumnElement[bool]]
) -> str | None:
    """Choose the condition whose index is walked; None where it is the one of all rows by time.

    A condition that few rows meet leads. Where all of them are common, a page of the newest is
    found soon, whichever leads: the index of each also tells the others.
    """
    if "unit" in asked:
        return "unit"
    names = [name for name in ("label", "decision", "use_case") if name in asked]
    if len(names) < 2 and not scores:
        return names[0] if names else None
    met = {name: [predictions.c[name] == asked[name]] for name in names}
    if scores:
        met["score"] = list(scores)
    few = {name: _counted(connection, conditions) for name, conditions in met.items()}
    rarest = min(few, key=lambda name: few[name])
    if few[rarest] < _FEW:
        return rarest
    return names[0] if names else None


def unindexed(column: ColumnElement[Any]) -> ColumnElement[Any]:
    """Keep SQLite from choosing a column's index."""
    return UnaryExpression(column, operator=custom_op("+"), type_=column.type)


def _counted(connection: Connection, conditions: Sequence[ColumnElement[bool]]) -> int:
    """Count rows, up to a few."""
    there = select(literal(1)).select_from(predictions).where(*conditions).limit(_FEW).subquery()
    return connection.execute(select(func.count()).select_from(there)).scalar_one()
