"""What clients were told against what the database holds."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from tests.guarantees.serving_databases import Postgres, Row, Sqlite
from tests.guarantees.serving_load import Asked, Load
from tests.unit.bundle.parts import CLASSES

FAULTS = ("lost", "twice", "halves", "different", "strangers", "miscounted", "faults")
"""Kinds of what must not be."""


@dataclass
class Found:
    """What a comparison counted; every list must be empty.

    Parameters
    ----------
    acknowledged : requests that were answered with predictions
    rows : predictions on record
    retried : requests that were sent again after an attempt without success, and acknowledged
    unheard : those of them that were on record already, for only the answer had been lost
    in_doubt : requests of which their client never heard, and how many of them are on record
    outcomes : labels and outcomes that were acknowledged
    lost : acknowledged predictions that are not on record
    twice : requests that are on record more than once, or were answered in two ways
    halves : requests with some of their rows
    different : predictions on record that are not as they were answered
    strangers : rows on record that nobody asked for
    miscounted : tallies on record that are not what counting the rows again gives
    faults : answers that no client should get
    """

    acknowledged: int = 0
    rows: int = 0
    retried: int = 0
    unheard: int = 0
    in_doubt: int = 0
    in_doubt_on_record: int = 0
    outcomes: int = 0
    lost: list[str] = field(default_factory=list)
    twice: list[str] = field(default_factory=list)
    halves: list[str] = field(default_factory=list)
    different: list[str] = field(default_factory=list)
    strangers: list[str] = field(default_factory=list)
    miscounted: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    @property
    def broken(self) -> dict[str, list[str]]:
        """What must not be, by its kind; empty where all is well."""
        return {kind: found[:5] for kind in FAULTS if (found := getattr(self, kind))}


def compare(load: Load, database: Sqlite | Postgres) -> Found:
    """Compare the memory of clients with the store."""
    found, of_request, of_id = Found(faults=list(load.faults)), defaultdict(list), {}
    rows = database.rows()
    found.miscounted += _miscounted(rows, database.tallies())
    for row in rows:
        found.rows += 1
        of_request[row.request].append(row)
        of_id[row.id] = row
    for asked in load.asked:
        _compare(found, asked, of_request.pop(f":{asked.key}", []))
        for answer in asked.answers:
            _compare_answer(found, asked, answer, of_id)
    found.strangers += of_request
    _compare_told(found, load, database.told())
    return found


def _compare(found: Found, asked: Asked, rows: Sequence[Row]) -> None:
    found.acknowledged += bool(asked.answers)
    again = bool(asked.answers and (asked.broken or asked.refused))
    found.retried += again
    found.unheard += again and all(answer["repeated"] for answer in asked.answers)
    if asked.broken and not asked.answers:
        found.in_doubt += 1
        found.in_doubt_on_record += bool(rows)
    positions = [row.position for row in rows]
    if len(set(positions)) < len(positions) or len(positions) > len(asked.logits):
        found.twice.append(asked.key)
    elif rows and positions != list(range(len(asked.logits))):
        found.halves.append(asked.key)


def _compare_answer(
    found: Found, asked: Asked, answer: dict[str, Any], rows: dict[str, Row]
) -> None:
    given = answer["predictions"]
    if [each["id"] for each in given] != [e["id"] for e in asked.answers[0]["predictions"]]:
        found.twice.append(asked.key)
    if len(given) != len(asked.logits):
        found.halves.append(asked.key)
        return
    for position, (each, logits) in enumerate(zip(given, asked.logits, strict=True)):
        row = rows.get(each["id"])
        if row is None:
            found.lost.append(each["id"])
        elif row.request != f":{asked.key}":
            found.twice.append(asked.key)
        elif _said(each, answer, position, logits) != _kept(row):
            found.different.append(each["id"])


def _said(
    each: dict[str, Any], answer: dict[str, Any], position: int, logits: list[float]
) -> tuple[object, ...]:
    names = ("label", "decision", "acted_as", "action", "probabilities")
    return (position, answer["bundle"]["hash"], logits, *(each[name] for name in names))


def _kept(row: Row) -> tuple[object, ...]:
    probs = dict(zip(CLASSES, row.probs, strict=True))
    return (row.position, row.bundle, row.logits, row.label, row.decision, row.acted_as,
            row.action, probs)  # fmt: skip


def _compare_told(found: Found, load: Load, there: Sequence[tuple[str, str]]) -> None:
    """Each acknowledged outcome was a label and an outcome: two rows, of its prediction."""
    count = Counter(there)
    for told in load.told:
        rows = count.pop((f":{told.key}:0", told.prediction), 0)
        found.outcomes += 2 * told.acknowledged
        if rows == 1:
            found.halves.append(told.key)
        elif rows > 2:
            found.twice.append(told.key)
        elif told.acknowledged and rows == 0:
            found.lost.append(told.key)
    found.strangers += [id for id, _ in count]


def _miscounted(rows: Sequence[Row], tallies: Sequence[tuple[Any, ...]]) -> list[str]:
    """Count the rows again, and name the tallies that are not so."""
    n, billionths = Counter(), Counter()
    for row in rows:
        names = {"decision": row.decision or "", "label": row.label, "score": str(_bin(row.score))}
        if row.acted_as is not None:
            names["acted"] = row.acted_as
            chance = row.probs[CLASSES.index(row.acted_as)]
            billionths["acted", _hour(row.at), row.bundle, row.acted_as] += round(chance * 10**9)
        n.update((kind, _hour(row.at), row.bundle, name) for kind, name in names.items())
    counted = {key: (n[key], billionths[key]) for key in n}
    there = {(k, _hour(hour), *rest): (n, sum) for k, hour, *rest, n, sum in tallies}
    return [str(key) for key in counted.keys() | there if counted.get(key) != there.get(key)]


def _bin(score: float) -> int:
    return min(int(score * 20), 19)


def _hour(moment: str | datetime) -> str:
    if isinstance(moment, str):  # SQLite has it so, in UTC
        return moment[:13]
    return moment.astimezone(UTC).isoformat(" ")[:13]
