"""The comparison of what was said with what is on record finds whatever may go wrong."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from tests.guarantees.serving_databases import Row
from tests.guarantees.serving_load import Asked, Told
from tests.guarantees.serving_record import compare
from tests.unit.bundle.parts import CLASSES

LOGITS = [[1.0, 0.0, -1.0], [0.5, 0.25, 0.0]]
AT, HOUR = "2026-01-31 12:45:00.000000", "2026-01-31 12:00:00.000000"
PROBS = [[0.5, 0.25, 0.25], [0.75, 0.125, 0.125]]


def answer(*ids):
    given = [
        {"id": id, "label": "defect", "decision": "act", "acted_as": "defect", "action": "refund",
         "probabilities": dict(zip(CLASSES, probs, strict=True))}
        for id, probs in zip(ids, PROBS, strict=True)
    ]  # fmt: skip
    return {"predictions": given, "bundle": {"hash": "b"}, "repeated": False}


def rows(key="k", ids=("p0", "p1")):
    return [
        Row(id, f":{key}", i, "b", "defect", "act", "defect", "refund", AT, PROBS[i][0],
            PROBS[i], LOGITS[i])
        for i, id in enumerate(ids)
    ]  # fmt: skip


def counted(rows):
    """Return the tallies of `rows`, whose parts are all powers of two."""
    n = len(rows)
    acted = sum(int(row.probs[0] * 10**9) for row in rows)
    bins = {
        bin: sum(row.score == score for row in rows) for bin, score in (("10", 0.5), ("15", 0.75))
    }
    made = [("acted", "defect", n, acted), ("decision", "act", n, 0), ("label", "defect", n, 0)]
    made += [("score", bin, found, 0) for bin, found in bins.items()]
    return [(kind, HOUR, "b", name, n, sum) for kind, name, n, sum in made if n]


def found(asked, rows, told=(), told_rows=(), faults=(), tallies=None):
    load = SimpleNamespace(asked=asked, told=told, faults=list(faults))
    there = counted(rows) if tallies is None else tallies
    return compare(
        load,
        SimpleNamespace(rows=lambda: rows, told=lambda: told_rows, tallies=lambda: there),
    )


ACKNOWLEDGED = Asked("k", LOGITS, answers=[answer("p0", "p1")])
DOUBTFUL = Asked("k", LOGITS, broken=1)


def test_all_is_well():
    again = Asked("k", LOGITS, answers=[answer("p0", "p1")] * 2, broken=1)
    got = found([again], rows())
    assert got.broken == {}
    assert (got.acknowledged, got.rows, got.retried, got.in_doubt) == (1, 2, 1, 0)


@pytest.mark.parametrize(("there", "on_record"), [([], 0), (rows(), 1)])
def test_what_is_in_doubt_may_be_there_or_not(there, on_record):
    got = found([DOUBTFUL], there)
    assert got.broken == {}
    assert (got.in_doubt, got.in_doubt_on_record) == (1, on_record)


@pytest.mark.parametrize(
    ("kind", "asked", "there"),
    [
        ("lost", ACKNOWLEDGED, []),
        ("lost", ACKNOWLEDGED, rows(ids=("p0", "p9"))),
        ("halves", DOUBTFUL, rows()[:1]),
        ("halves", DOUBTFUL, rows()[1:]),
        ("twice", DOUBTFUL, [*rows(), replace(rows()[0], id="p2")]),
        ("twice", DOUBTFUL, [*rows(), replace(rows()[0], id="p2", position=2)]),
        ("twice", Asked("k", LOGITS, answers=[answer("p0", "p1"), answer("q0", "q1")]), rows()),
        ("halves", Asked("k", [*LOGITS, LOGITS[0]], answers=[answer("p0", "p1")]), rows()),
        ("twice", ACKNOWLEDGED, rows("other")),
        ("strangers", DOUBTFUL, rows("other")),
        ("different", ACKNOWLEDGED, [replace(rows()[0], label="parts"), rows()[1]]),
        ("different", ACKNOWLEDGED, [replace(rows()[0], probs=PROBS[1]), rows()[1]]),
        ("different", ACKNOWLEDGED, [replace(rows()[0], decision=None), rows()[1]]),
        ("different", ACKNOWLEDGED, [replace(rows()[0], bundle="c"), rows()[1]]),
        ("different", ACKNOWLEDGED, [replace(rows()[0], logits=LOGITS[1]), rows()[1]]),
    ],
)
def test_each_kind_of_fault_is_found(kind, asked, there):
    assert kind in found([asked], there).broken


@pytest.mark.parametrize(
    ("kind", "acknowledged", "there"),
    [("lost", True, 0), ("halves", True, 1), ("halves", False, 1), ("twice", False, 3)],
)
def test_faults_of_outcomes_are_found(kind, acknowledged, there):
    told = [Told("t", "p0", acknowledged)]
    assert set(found([], [], told, [(":t:0", "p0")] * there).broken) == {kind}
    assert found([], [], told, [(":t:0", "p0")] * 2).broken == {}
    assert set(found([], [], told, [(":t:0", "p9")] * 2).broken) >= {"strangers"}


def test_what_clients_should_not_hear_is_kept():
    assert found([], [], faults=["500"]).broken == {"faults": ["500"]}


@pytest.mark.parametrize(
    "change",
    [
        lambda tallies: tallies[1:],
        lambda tallies: [*tallies, ("label", HOUR, "b", "parts", 1, 0)],
        lambda tallies: [(*tallies[0][:4], 3, tallies[0][5]), *tallies[1:]],
        lambda tallies: [(*tallies[0][:5], tallies[0][5] + 1), *tallies[1:]],
    ],
)
def test_a_tally_that_is_not_what_the_rows_say_is_found(change):
    assert set(found([DOUBTFUL], rows(), tallies=change(counted(rows()))).broken) == {"miscounted"}
