"""The tallies of a store, and the same counted again from its predictions."""

from collections import Counter
from datetime import datetime, timedelta

from sqlalchemy import select

from calibrant.store.schema import bundles, predictions, tallies


def kept(store):
    """Return the tallies on record: n and billionths by kind, hour, bundle and name."""
    with store._database.read() as connection:
        rows = connection.execute(select(tallies)).all()
    return {tuple(row[:4]): tuple(row[4:]) for row in rows}


def recounted(store):
    """Count all predictions again, the slow and plain way."""
    n, billionths = Counter(), Counter()
    with store._database.read() as connection:
        classes = dict(connection.execute(select(bundles.c.hash, bundles.c.classes)).all())
        rows = connection.execute(select(predictions)).all()
    for row in rows:
        into = row.at.timestamp() % 3600
        where = (datetime.fromtimestamp(row.at.timestamp() - into, row.at.tzinfo), row.bundle)
        assert row.at - where[0] < timedelta(hours=1)
        place = sum(row.score >= edge / 20 for edge in range(1, 20))
        n["decision", *where, row.decision or ""] += 1
        n["label", *where, row.label] += 1
        n["score", *where, str(place)] += 1
        if row.acted_as is not None and row.asked_point is None:
            chance = row.probs[classes[row.bundle].index(row.acted_as)]
            n["acted", *where, row.acted_as] += 1
            billionths["acted", *where, row.acted_as] += round(chance * 1e9)
    return {cell: (n[cell], billionths[cell]) for cell in n}
