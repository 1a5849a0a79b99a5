"""Labelled predictions with logits, for audits of promises."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Text, cast, func, select

from calibrant.store.database import Database
from calibrant.store.schema import erasures, labels, predictions

_PIECE = 1_000  # Rows per query


@dataclass(frozen=True, slots=True)
class AuditState:
    """State of the labels, which are added and erased but never changed.

    Parameters
    ----------
    labels, erased : number of labels, and of erased labels
    latest : time of the latest label, or None
    """

    labels: int = 0
    erased: int = 0
    latest: datetime | None = None


@dataclass(frozen=True, slots=True)
class LabelledRow:
    """A prediction with its latest label.

    Parameters
    ----------
    bundle : hash of the bundle that made it
    label : true class, by the latest label
    before : previous latest label, if only newer ones were requested; else None
    logits : one per class, in the order of the bundle
    """

    bundle: str
    label: str
    before: str | None
    logits: list[float]


class AuditLog:
    """All predictions with a label, whatever their decision.

    Parameters
    ----------
    database : database with the tables of the store

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
        """Return the state of the labels; audits only change when it does."""
        erased = select(func.coalesce(func.sum(erasures.c.labels), 0)).scalar_subquery()
        query = select(func.count(), erased, func.max(labels.c.at)).select_from(labels)
        with self._database.read() as connection:
            n, gone, latest = connection.execute(query).one()
        return AuditState(int(n), int(gone), latest)

    def only_newer(self, old: AuditState, new: AuditState) -> bool:
        """Whether only newer labels were added between two states.

        Parameters
        ----------
        old, new : the earlier and the later state
        """
        if old.latest is None or new.latest is None or old.erased != new.erased:
            return False
        query = select(func.count()).where(labels.c.at > old.latest, labels.c.at <= new.latest)
        with self._database.read() as connection:
            return new.labels - old.labels == connection.execute(query).scalar_one()

    def labelled(
        self,
        bundles: Collection[str],
        *,
        after: datetime | None = None,
        until: datetime | None = None,
    ) -> Iterator[list[LabelledRow]]:
        """Yield the labelled predictions of some bundles, a thousand at a time.

        Predictions are in the order of their first label; the latest label counts.

        Parameters
        ----------
        bundles : hashes of the bundles
        after, until : only predictions labelled after `after`, by labels up to `until`
        """
        prediction = labels.c.prediction
        latest = (labels.c.at.desc(), labels.c.id.desc())
        ranked = select(
            prediction,
            labels.c.label,
            func.min(labels.c.at).over(partition_by=prediction).label("first"),
            func.row_number().over(partition_by=prediction, order_by=latest).label("rank"),
        )
        ranked = ranked if after is None else ranked.where(labels.c.at > after)
        last = (ranked if until is None else ranked.where(labels.c.at <= until)).subquery()
        # As text: parsing a thousand lists at once is much faster.
        query = (
            select(last.c.prediction, predictions.c.bundle, last.c.label,
                   cast(predictions.c.logits, Text))
            .join(predictions, predictions.c.id == last.c.prediction)
            .where(last.c.rank == 1, predictions.c.bundle.in_(list(bundles)))
            .order_by(last.c.first, last.c.prediction)
        )  # fmt: skip
        with (
            self._database.read() as connection,
            connection.execute(query, execution_options={"yield_per": _PIECE}) as result,
        ):
            for piece in result.partitions():
                yield _read(piece, _before(connection, piece, after))


def _before(connection: Connection, rows: Sequence[Any], after: datetime | None) -> dict[str, str]:
    """Return the latest label of each prediction up to `after`."""
    if after is None:
        return {}
    query = (
        select(labels.c.prediction, labels.c.label)
        .where(labels.c.prediction.in_([row[0] for row in rows]), labels.c.at <= after)
        .order_by(labels.c.at, labels.c.id)
    )
    return {row.prediction: row.label for row in connection.execute(query)}


def _read(rows: Sequence[Any], before: dict[str, str]) -> list[LabelledRow]:
    logits = json.loads(f"[{','.join(row[3] for row in rows)}]")
    return [
        LabelledRow(bundle, label, before.get(id), values)
        for (id, bundle, label, _), values in zip(rows, logits, strict=True)
    ]
