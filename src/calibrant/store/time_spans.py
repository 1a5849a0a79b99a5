"""When predictions of some kind were made, by the tallies: a search need not look elsewhere."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy import Connection, select

from calibrant.store.schema import tallies
from calibrant.store.tally_updates import DECISION, LABEL, SCORE, score_bin

__all__ = ["span"]


def span(
    connection: Connection,
    *,
    bundle: str | None,
    label: str | None,
    decision: str | None,
    scores: tuple[float | None, float | None],
) -> tuple[datetime, datetime] | None:
    """Return a time outside of which no prediction meets all conditions; None where none does.

    A prediction that meets each of them alone is counted in a tally, so the first and the last
    hour of such tallies bound what can be found.
    """
    asked: list[tuple[str, Sequence[str] | None]] = [(DECISION, None)]  # any prediction
    if label is not None:
        asked.append((LABEL, [label]))
    if decision is not None:
        asked.append((DECISION, [decision]))
    if scores != (None, None):
        asked.append((SCORE, _bins(*scores)))
    found = [_hours(connection, kind, names, bundle) for kind, names in asked]
    hours = [each for each in found if each is not None]
    if len(hours) < len(asked):
        return None
    first, last = max(each[0] for each in hours), min(each[1] for each in hours)
    return None if first > last else (first, last + timedelta(hours=1))


def _bins(low: float | None, high: float | None) -> list[str]:
    """Return the names of the bins that scores between two bounds may lie in."""
    low, high = 0.0 if low is None else low, 1.0 if high is None else high
    if math.isnan(low) or math.isnan(high):
        return []
    first, last = (score_bin(min(max(bound, 0.0), 1.0)) for bound in (low, high))
    return [str(place) for place in range(first, last + 1)]


def _hours(
    connection: Connection, kind: str, names: Sequence[str] | None, bundle: str | None
) -> tuple[datetime, datetime] | None:
    """Return the first and the last hour of some tallies, None where there is none."""
    hour = tallies.c.hour
    asked = select(hour).where(tallies.c.kind == kind).limit(1)
    if names is not None:
        asked = asked.where(tallies.c.name.in_(names))
    if bundle is not None:
        asked = asked.where(tallies.c.bundle == bundle)
    first = connection.scalar(asked.order_by(hour))
    last = connection.scalar(asked.order_by(hour.desc()))
    return None if first is None or last is None else (first, last)
