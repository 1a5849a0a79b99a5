"""Labelled predictions with their logits: what an audit of promises is counted from."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Text, cast, func, select

from calibrant.store.database import Database
from calibrant.store.schema import erasures, labels, predictions

__all__ = ["AuditLog", "AuditState", "LabelledRow"]

_PIECE = 1_000
"""Rows that are read at a time."""


@dataclass(frozen=True, slots=True)
class AuditState:
    """What labels there are. They are added and erased, and never changed.

    Parameters
    ----------
    labels, erased : how many there are, and how many were erased
    latest : when the latest one was told; None where there is none
    """

    labels: int = 0
    erased: int = 0
    latest: datetime | None = None


@dataclass(frozen=True, slots=True)
class LabelledRow:
    """A prediction with the label that counts.

    Parameters
    ----------
    bundle : hash of the one that made it
    label : what it truly was, as it was told last
    before : the label that counted before, where only newer ones were asked for; None where there
        was none
    logits : of every class, in the bundle's order
    """

    bundle: str
    label: str
    before: str | None
    logits: list[float]


class AuditLog:
    """All predictions that have a label, whatever was decided about them.

    Parameters
    ----------
    database : with the store's tables

    Examples
    --------
    >>> import tempfile
    >>> from calibrant.store import Store
    >>> with Store.open(tempfile.mkdtemp() + "/calibrant.db") as store:
    ...     store.audits.state()
    AuditState(labels=0, erased=0, latest=None)
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def state(self) -> AuditState:
        """Return what labels there are: while that stays the same, so does every audit."""
        erased = select(func.coalesce(func.sum(erasures.c.labels), 0)).scalar_subquery()
        asked = select(func.count(), erased, func.max(labels.c.at)).select_from(labels)
        with self._database.read() as connection:
            n, gone, latest = connection.execute(asked).one()
        return AuditState(int(n), int(gone), latest)

    def only_newer(self, old: AuditState, new: AuditState) -> bool:
        """Tell whether all that came between two states are labels newer than the first.

        Parameters
        ----------
        old, new : in the order in which they were asked for
        """
        if old.latest is None or new.latest is None or old.erased != new.erased:
            return False
        asked = select(func.count()).where(labels.c.at > old.latest, labels.c.at <= new.latest)
        with self._database.read() as connection:
            return new.labels - old.labels == connection.execute(asked).scalar_one()

    def labelled(
        self,
        bundles: Collection[str],
        *,
        after: datetime | None = None,
        until: datetime | None = None,
    ) -> Iterator[list[LabelledRow]]:
        """Yield the labelled predictions of some bundles, a thousand at a time.

        They come in the order in which they were first labelled. Of several labels of a prediction
        the latest one counts.

        Parameters
        ----------
        bundles : their hashes
        after, until : only those that were told something after this moment; up to this moment
        """
        own = labels.c.prediction
        latest = (labels.c.at.desc(), labels.c.id.desc())
        told = select(
            own,
            labels.c.label,
            func.min(labels.c.at).over(partition_by=own).label("first"),
            func.row_number().over(partition_by=own, order_by=latest).label("rank"),
        )
        told = told if after is None else told.where(labels.c.at > after)
        last = (told if until is None else told.where(labels.c.at <= until)).subquery()
        # As text: a thousand lists of numbers are read much quicker as one.
        asked = (
            select(last.c.prediction, predictions.c.bundle, last.c.label,
                   cast(predictions.c.logits, Text))
            .join(predictions, predictions.c.id == last.c.prediction)
            .where(last.c.rank == 1, predictions.c.bundle.in_(list(bundles)))
            .order_by(last.c.first, last.c.prediction)
        )  # fmt: skip
        with (
            self._database.read() as connection,
            connection.execute(asked, execution_options={"yield_per": _PIECE}) as found,
        ):
            for piece in found.partitions():
                yield _read(piece, _before(connection, piece, after))


def _before(connection: Connection, rows: Sequence[Any], after: datetime | None) -> dict[str, str]:
    """Return, for predictions, the label that counted up to a moment."""
    if after is None:
        return {}
    asked = (
        select(labels.c.prediction, labels.c.label)
        .where(labels.c.prediction.in_([row[0] for row in rows]), labels.c.at <= after)
        .order_by(labels.c.at, labels.c.id)
    )
    return {row.prediction: row.label for row in connection.execute(asked)}


def _read(rows: Sequence[Any], before: dict[str, str]) -> list[LabelledRow]:
    logits = json.loads(f"[{','.join(row[3] for row in rows)}]")
    return [
        LabelledRow(bundle, label, before.get(id), each)
        for (id, bundle, label, _), each in zip(rows, logits, strict=True)
    ]
