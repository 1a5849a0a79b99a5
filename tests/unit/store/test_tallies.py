"""Counts by hour: which predictions they are about, and what they say of them."""

import random
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest
from sqlalchemy import event, select
from tests.databases import a_prediction, a_request, new_store, record_bundle
from tests.sentences import refuses
from tests.unit.store.recount import kept, recounted
from tests.unit.store.rows import START, hours, put, row

from calibrant.errors import StoreError, StoreUnavailable, UnknownBundle
from calibrant.store import ActedCount, HourCount, LoggedRequest, Store, new_id
from calibrant.store import erasure as erasing
from calibrant.store import tallies as tallying
from calibrant.store.schema import tallies
from calibrant.store.tallies import floor_to_hour, score_bin

MINUTE = timedelta(minutes=1)


@pytest.fixture
def filled(store):
    """Give a store with predictions of three hours and two bundles."""
    put(
        store,
        row(at=hours(0), probs=[0.75, 0.25]),
        row(at=hours(1) - MINUTE, probs=[0.5, 0.5], score=0.5),
        row(at=hours(1), decision="abstain", acted_as=None, score=0.55),
        row(at=hours(2), decision=None, acted_as=None, label="good", score=1.0),
        row(at=hours(2) + MINUTE, decision=None, acted_as=None, label="good", score=0.999),
    )
    other = row(at=hours(2), bundle="b2", probs=[0.25, 0.75], acted_as="good", score=0.05)
    put(store, other, bundle="b2")
    return store


def test_decisions_come_hour_by_hour_in_order(filled):
    assert filled.tallies.hours(START) == [
        HourCount(hours(0), "act", 2),
        HourCount(hours(1), "abstain", 1),
        HourCount(hours(2), None, 2),
        HourCount(hours(2), "act", 1),
    ]


def test_both_ends_are_whole_hours(filled):
    def found(since, until):
        return {count.hour for count in filled.tallies.hours(since, until)}

    assert found(hours(1) - MINUTE, hours(2)) == {hours(0), hours(1)}
    assert found(hours(1), hours(3) - MINUTE) == {hours(1)}
    assert found(hours(1) + MINUTE, hours(3)) == {hours(1), hours(2)}
    assert found(hours(1), hours(1) + MINUTE) == set()
    assert found(hours(3), None) == set()


def test_hours_are_those_of_utc_whatever_the_time_zone(filled):
    india = timezone(timedelta(hours=5.5))
    since = (hours(1) + MINUTE).astimezone(india)
    assert filled.tallies.hours(since)[0] == HourCount(hours(1), "abstain", 1)
    with refuses(StoreError, "time zone"):
        filled.tallies.hours(datetime(2026, 1, 1))


def test_acts_come_with_the_sum_of_their_probabilities(filled):
    assert filled.tallies.acted(START) == [ActedCount("bad", 2, 1.25), ActedCount("good", 1, 0.75)]
    assert filled.tallies.acted(hours(1)) == [ActedCount("good", 1, 0.75)]
    assert filled.tallies.acted(hours(1), hours(2)) == []


def test_scores_are_counted_in_twenty_bins_and_one_is_in_the_last(filled):
    counts = filled.tallies.scores(START)
    assert {place: n for place, n in enumerate(counts) if n} == {1: 1, 10: 1, 11: 1, 15: 1, 19: 2}
    assert filled.tallies.scores(hours(3)) == [0] * 20


def test_classes_are_counted_where_they_are_the_most_probable(filled):
    assert filled.tallies.labels(START) == [("bad", 4), ("good", 2)]


def test_one_bundle_can_be_asked_for(filled):
    tallies = filled.tallies
    assert tallies.hours(START, bundle="b2") == [HourCount(hours(2), "act", 1)]
    assert tallies.acted(START, bundle="b1") == [ActedCount("bad", 2, 1.25)]
    assert tallies.labels(START, hours(2), bundle="b1") == [("bad", 3)]
    assert sum(tallies.scores(START, bundle="b2")) == 1
    assert tallies.labels(START, bundle="never served") == []


def test_the_total_is_the_number_of_predictions(store, filled):
    assert filled.tallies.total() == filled.predictions.count() == 6
    filled.prune(hours(5))
    assert filled.tallies.total() == 0


def test_reading_counts_looks_at_no_prediction(filled):
    with filled._database.write() as connection:  # as if there were none
        connection.exec_driver_sql("DELETE FROM predictions")
    assert filled.tallies.total() == 6
    assert len(filled.tallies.hours(START)) == 4
    assert len(filled.tallies.acted(START)) == 2
    assert sum(filled.tallies.scores(START)) == 6
    assert len(filled.tallies.labels(START)) == 2


CLASSES = ("bad", "good", "größer")
BUNDLES = ("b1", "b2")


def a_store(store):
    for hash in BUNDLES:
        put(store, bundle=hash, classes=CLASSES)
    return store


def a_varied_request(chance, *, units=8):
    """Return a request of some rows, of which any may be of another hour, class and decision."""
    id, made = new_id(), []
    for position in range(chance.choice((1, 1, 2, 3))):
        weights = [chance.random() ** 3 for _ in CLASSES]
        probs = [weight / sum(weights) for weight in weights]
        decision = chance.choice(("act", "act", "clear", "abstain", "out_of_scope", None))
        made.append(
            a_prediction(
                id, position, id=new_id(), bundle=chance.choice(BUNDLES), probs=probs,
                at=hours(chance.randrange(6)) + timedelta(seconds=3600 * chance.random()),
                unit=f"customer-{chance.randrange(units)}",
                label=CLASSES[probs.index(max(probs))], score=max(probs), decision=decision,
                acted_as=chance.choice(CLASSES) if decision == "act" else None,
                asked_point=chance.choice([None, None, 1]),
            )
        )  # fmt: skip
    return LoggedRequest(id, "asked", tuple(made))


def add(store, chance, sent):
    """Add new requests, some of them twice, with some that were sent before and some conflicts."""
    batch = [a_varied_request(chance) for _ in range(chance.randrange(1, 9))]
    again = chance.sample(sent, min(len(sent), chance.randrange(4)))
    sent += batch
    batch += again + batch[: chance.randrange(2)]
    batch += [replace(request, hash="something else") for request in again[:1]]
    chance.shuffle(batch)
    store.predictions.add(batch)


@pytest.mark.parametrize("seed", range(2))
def test_tallies_are_a_recount_after_every_step(store, monkeypatch, seed):
    monkeypatch.setattr(erasing, "_CHUNK", 5)
    monkeypatch.setattr(erasing, "_PAUSE", 0)
    chance, sent, most = random.Random(seed), [], 0
    a_store(store)
    for _ in range(40):
        step = chance.random()
        if step < 0.8:
            add(store, chance, sent)
        elif step < 0.95:
            store.forget(f"customer-{chance.randrange(8)}")
        else:
            store.prune(hours(6 * chance.random()))
        assert kept(store) == recounted(store)
        most = max(most, store.predictions.count())
    assert most > 20
    store.prune(hours(7))
    assert kept(store) == {}


def test_a_prediction_is_counted_by_decision_class_score_and_act(store):
    put(store, row(at=START + timedelta(minutes=59, seconds=59), probs=[0.75, 0.25], score=0.75))
    put(store, row(at=hours(1), label="good", score=1.0, decision=None, acted_as=None))
    assert kept(store) == {
        ("decision", START, "b1", "act"): (1, 0),
        ("label", START, "b1", "bad"): (1, 0),
        ("score", START, "b1", "15"): (1, 0),
        ("acted", START, "b1", "bad"): (1, 750_000_000),
        ("decision", hours(1), "b1", ""): (1, 0),
        ("label", hours(1), "b1", "good"): (1, 0),
        ("score", hours(1), "b1", "19"): (1, 0),
    }


def test_what_a_point_did_that_a_request_asked_for_is_a_decision_but_no_act_of_the_bundle(store):
    put(store, row(acted_as="bad"), row(acted_as="bad", asked_point=1))
    assert kept(store)["decision", START, "b1", "act"][0] == 2
    assert kept(store)["acted", START, "b1", "bad"][0] == 1


def test_the_probability_is_that_of_the_class_acted_on_in_the_order_of_its_bundle(store):
    put(store, row(probs=[0.7, 0.3], label="bad", acted_as="good"))
    other = row(bundle="b2", probs=[0.6, 0.4], label="good", acted_as="good")
    put(store, other, bundle="b2", classes=("good", "bad"))
    assert kept(store)["acted", START, "b1", "good"] == (1, 300_000_000)
    assert kept(store)["acted", START, "b2", "good"] == (1, 600_000_000)


@pytest.mark.parametrize("changes", [{"acted_as": "unheard of"}, {"probs": [1.0]}])
def test_acting_on_a_class_without_a_probability_is_refused_and_leaves_nothing(store, changes):
    put(store, row())
    before = kept(store)
    bad = row(**({"acted_as": "good"} | changes))
    with refuses(StoreError, "no probability", "class"):
        put(store, row(), bad)
    assert (kept(store), store.predictions.count()) == (before, 1)


def test_a_batch_that_is_refused_counts_nothing(store):
    with pytest.raises(UnknownBundle):
        store.predictions.add([a_request("good"), a_request("strange", bundle="c" * 64)])
    with pytest.raises(StoreError, match="score_is_probability"):
        store.predictions.add([a_request("good"), a_request("bad", score=2.0)])
    assert kept(store) == {}


def test_a_commit_that_fails_leaves_the_tallies_as_they_were(store):
    put(a_store(store), row(unit="customer-17"), row())
    before = kept(store)

    def fail(connection):
        raise StoreUnavailable("the disk is full.")

    event.listen(store._database.engine, "commit", fail)
    chance = random.Random(0)
    for step in (
        lambda: store.predictions.add([a_varied_request(chance)]),
        lambda: store.forget("customer-17"),
        lambda: store.prune(hours(1)),
    ):
        with pytest.raises(StoreUnavailable, match="the disk is full"):
            step()
    event.remove(store._database.engine, "commit", fail)
    assert kept(store) == before == recounted(store)


def test_two_writers_of_the_same_tallies_in_another_order_do_not_wait_for_each_other(store):
    put(store)
    a, b = (("label", START, "b1", name) for name in "ab")
    done = []

    def write_both():
        with store._database.write() as connection:
            tallying._write(connection, {b: (10, 0), a: (10, 0)}, 1)
        done.append(True)

    late = threading.Thread(target=write_both)
    with store._database.write() as connection:
        tallying._write(connection, {a: (1, 0)}, 1)
        late.start()
        late.join(timeout=0.2)  # it waits for "a", and has not written "b"
        assert late.is_alive()
        tallying._write(connection, {b: (1, 0)}, 1)
    late.join(timeout=30)
    assert done == [True]
    assert kept(store) == {a: (11, 0), b: (11, 0)}


def test_writers_and_erasers_of_the_same_hour_never_harm_each_other(tmp_path, monkeypatch):
    """On PostgreSQL all of them are in the middle of a transaction at the same time."""
    monkeypatch.setattr(erasing, "_CHUNK", 5)
    with new_store("postgresql", tmp_path) as url, Store(url) as store:
        a_store(store)

        def work(seed):
            chance, sent = random.Random(seed), []
            for _ in range(25):
                add(store, chance, sent)
                if chance.random() < 0.2:
                    store.forget(f"customer-{chance.randrange(8)}")
                if chance.random() < 0.1:
                    store.prune(hours(2 * chance.random()))

        with ThreadPoolExecutor(6) as pool:
            list(pool.map(work, range(6)))  # raises what any of them raised
        assert kept(store) == recounted(store)
        assert store.predictions.count() > 20


def test_two_that_erase_the_same_rows_take_them_back_once(tmp_path):
    with new_store("postgresql", tmp_path) as url, Store(url) as store:
        rows = [row(unit=f"customer-{i % 2}", at=hours(i % 3)) for i in range(40)]
        put(store, *rows)

        def work(i):
            return store.prune(hours(2)) if i % 2 else store.forget("customer-0")

        with ThreadPoolExecutor(4) as pool:
            erased = list(pool.map(work, range(4)))
        assert kept(store) == recounted(store)
        assert sum(each.predictions for each in erased) == 40 - store.predictions.count()


def test_classes_of_a_bundle_are_read_once(store, monkeypatch):
    asked = []

    def note(_connection, _cursor, statement, *_):
        asked.append(statement) if "FROM bundles" in statement else None

    event.listen(store._database.engine, "before_cursor_execute", note)
    for i in range(3):
        store.predictions.add([a_request(f"request-{i}", rows=2)])
    assert len(asked) == 1


def test_a_tally_names_no_unit_no_request_and_no_input(store):
    record_bundle(store)
    store.predictions.add([a_request(unit="customer-17", input={"text": "a secret"})])
    with store._database.read() as connection:
        found = str(connection.execute(select(tallies)).all())
    assert "customer-17" not in found
    assert "request-1" not in found
    assert "secret" not in found


def test_example_of_score_bin():
    assert (score_bin(0.0), score_bin(0.55), score_bin(1.0)) == (0, 11, 19)


def test_example_of_floor_to_hour():
    assert (
        floor_to_hour(datetime.fromisoformat("2026-01-31T12:45+05:30")).isoformat()
        == "2026-01-31T07:00:00+00:00"
    )
