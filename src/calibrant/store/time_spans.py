"""Time range of matching predictions, from the tallies, to narrow a search."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy import Connection, select

from calibrant.store.schema import tallies
from calibrant.store.tally_updates import DECISION, LABEL, SCORE, score_bin

__all__ = ["find_hours"]


def find_hours(
    connection: Connection,
    *,
    bundle: str | None,
    label: str | None,
    decision: str | None,
    scores: tuple[float | None, float | None],
) -> tuple[datetime, datetime] | None:
    """Return a time range that contains all matches; None if there are none.

    Each condition alone has tallies, whose first and last hours bound the matches.
    """
    groups: list[tuple[str, Sequence[str] | None]] = [(DECISION, None)]  # any prediction
    if label is not None:
        groups.append((LABEL, [label]))
    if decision is not None:
        groups.append((DECISION, [decision]))
    if scores != (None, None):
        groups.append((SCORE, _bins(*scores)))
    ranges = [_hours(connection, kind, names, bundle) for kind, names in groups]
    hours = [hours_of for hours_of in ranges if hours_of is not None]
    if len(hours) < len(groups):
        return None
    first, last = max(hours_of[0] for hours_of in hours), min(hours_of[1] for hours_of in hours)
    return None if first > last else (first, last + timedelta(hours=1))


def _bins(low: float | None, high: float | None) -> list[str]:
    """Return the names of the bins of scores between two bounds."""
    low, high = 0.0 if low is None else low, 1.0 if high is None else high
    if math.isnan(low) or math.isnan(high):
        return []
    first, last = (score_bin(min(max(bound, 0.0), 1.0)) for bound in (low, high))
    return [str(bin) for bin in range(first, last + 1)]


def _hours(
    connection: Connection, kind: str, names: Sequence[str] | None, bundle: str | None
) -> tuple[datetime, datetime] | None:
    """Return the first and last hour of some tallies, or None."""
    hour = tallies.c.hour
    query = select(hour).where(tallies.c.kind == kind).limit(1)
    if names is not None:
        query = query.where(tallies.c.name.in_(names))
    if bundle is not None:
        query = query.where(tallies.c.bundle == bundle)
    first = connection.scalar(query.order_by(hour))
    last = connection.scalar(query.order_by(hour.desc()))
    return None if first is None or last is None else (first, last)
