"""Predictions: written whole and once, by whomever, and found again."""

import multiprocessing
import os
import random
import signal
import threading
from datetime import UTC, datetime, timedelta, timezone

import pytest
from sqlalchemy import delete, event, text
from tests.databases import (
    BUNDLE,
    a_prediction,
    a_request,
    many_requests,
    new_store,
    record_bundle,
)
from tests.sentences import refuses

from calibrant.errors import InputError, StoreError, StoreUnavailable, UnknownBundle
from calibrant.store import Logged, LoggedRequest, Store, new_id, predictions
from calibrant.store.records import DECISIONS
from calibrant.store.schema import predictions as table

START = datetime(2026, 1, 1, tzinfo=UTC)


def test_what_goes_in_comes_out(store):
    request = a_request(rows=3)
    assert store.predictions.add([request]) == [Logged(request.predictions)]
    assert store.predictions.of_request("request-1") == request.predictions
    for prediction in request.predictions:
        found = store.predictions.get(prediction.id)
        assert found == prediction
        assert [type(x) for x in found.logits] == [float] * 3
    assert store.predictions.count() == 3


def test_what_may_be_absent_is_absent_again(store):
    absent = [
        *("unit", "use_case", "branch", "key", "input", "decision", "acted_as", "action"),
        *("operating_point", "out_of_scope"),
    ]
    one = a_request(**dict.fromkeys(absent))
    store.predictions.add([one])
    assert store.predictions.get(one.predictions[0].id) == one.predictions[0]


@pytest.mark.parametrize(
    "value",
    [0.1 + 0.2, 1e-300, -1.7976931348623157e308, 5e-324, 1e22, 0.0, 123456789.123456789],
)
def test_numbers_come_back_to_the_last_bit(store, value):
    one = a_request(logits=[value], probs=[1.0], latency_ms=abs(value), score=1 / 3)
    store.predictions.add([one])
    assert store.predictions.get(one.predictions[0].id) == one.predictions[0]


def test_texts_come_back_as_they_were(store):
    hard = "'; DROP TABLE predictions; -- <b>&amp;</b> \\u0000 \\ \" %s ? :x \x01 \u202e 😀\r\n"
    one = a_request(hard, unit=hard, label=hard, input={hard: [hard, {"x": None}]}, action=hard)
    store.predictions.add([one])
    assert store.predictions.of_request(hard) == one.predictions
    assert store.predictions.search(unit=hard, label=hard) == list(one.predictions)


def test_moments_of_any_zone_are_the_same_moments(store):
    moment = datetime(2026, 7, 1, 12, 30, 0, 1, tzinfo=timezone(timedelta(hours=-7)))
    one = a_request(at=moment)
    store.predictions.add([one])
    found = store.predictions.get(one.predictions[0].id)
    assert found.at == moment
    assert found.at.tzinfo is UTC


def test_nothing_is_found_where_there_is_nothing(store):
    assert store.predictions.get("nothing") is None
    assert store.predictions.of_request("nothing") == ()
    assert store.predictions.search() == []
    assert store.predictions.add([]) == []
    assert store.predictions.count() == 0


def test_a_request_that_is_repeated_is_answered_from_the_store(store):
    first, again = a_request(rows=2), a_request(rows=2, label="another")
    store.predictions.add([first])
    assert store.predictions.add([again]) == [Logged(first.predictions, repeated=True)]
    assert store.predictions.add([first]) == [Logged(first.predictions, repeated=True)]
    assert store.predictions.count() == 2


def test_the_same_id_for_something_else_is_a_conflict(store):
    store.predictions.add([a_request(rows=2)])
    other = a_request(rows=3, hash="something else")
    assert store.predictions.add([other]) == [Logged((), conflict=True)]
    assert store.predictions.count() == 2


def test_old_and_new_and_double_requests_may_come_in_one_batch(store):
    old, new = a_request("old", rows=2), a_request("new", rows=3)
    store.predictions.add([old])
    double, clash = a_request("new", rows=3), a_request("new", hash="something else")
    assert store.predictions.add([new, old, double, new, clash]) == [
        Logged(new.predictions),
        Logged(old.predictions, repeated=True),
        Logged(new.predictions, repeated=True),
        Logged(new.predictions, repeated=True),
        Logged((), conflict=True),
    ]
    assert store.predictions.count() == 5


def test_a_batch_may_be_large(store):
    requests = [a_request(f"request-{i}", rows=1 + i % 2) for i in range(2_500)]
    assert not any(logged.repeated for logged in store.predictions.add(requests))
    assert all(logged.repeated for logged in store.predictions.add(requests))
    assert store.predictions.count() == 3_750


@pytest.mark.parametrize(
    "bad",
    [
        a_request("bad", logits=[float("nan")]),
        a_request("bad", probs=[float("inf")]),
        a_request("bad", score=float("nan")),
        a_request("bad", latency_ms=float("inf")),
        a_request("bad", latency_ms=float("nan")),
        a_request("bad", at=datetime(2026, 1, 1)),
        a_request("bad", unit="a\0b"),
        a_request("bad", input={"text": "a\0b"}),
        a_request("bad\0"),
        a_request("bad", action="half \ud83d"),
        a_request("bad", input={"text": "half \ud83d"}),
        a_request("bad", input={"text": object()}),
        a_request("bad", rows=0),
        LoggedRequest("bad", "asked", (a_prediction("bad", 1),)),
        LoggedRequest("bad", "asked", (a_prediction("bad", 0), a_prediction("bad", 0))),
        LoggedRequest("bad", "asked", (a_prediction("worse", 0),)),
        LoggedRequest("bad", "asked", (a_prediction("bad", 0), a_prediction("bad", 1, score=9))),
    ],
)
def test_one_bad_row_and_nothing_of_the_batch_is_written(store, bad):
    with pytest.raises(StoreError) as caught:
        store.predictions.add([a_request("good"), bad])
    assert not isinstance(caught.value, StoreUnavailable)
    assert store.predictions.count() == 0
    store.predictions.add([a_request("good")])
    assert store.predictions.count() == 1


def test_the_id_of_another_prediction_is_refused_and_nothing_is_lost(store):
    store.predictions.add([a_request(id="request-1", rows=1)])
    taken = store.predictions.of_request("request-1")[0].id
    thief = LoggedRequest("thief", "asked", (a_prediction("thief", id=taken),))
    with pytest.raises(StoreError, match="refused"):
        store.predictions.add([a_request("good"), thief])
    assert store.predictions.count() == 1


def rivals(number):
    """Return the same requests as every other rival, but with rows of its own."""
    order = [f"request-{i}" for i in range(25)]
    random.Random(number).shuffle(order)
    return [a_request(id, rows=3, unit=f"rival-{number}") for id in order]


def check_rivals(store, answers):
    """Every request is one rival's, whole, and all others were told so."""
    for id in (f"request-{i}" for i in range(25)):
        stored = store.predictions.of_request(id)
        assert len(stored) == 3
        assert len({prediction.unit for prediction in stored}) == 1
        told = [logged for answer in answers for logged in answer if logged.predictions == stored]
        ours = [logged for logged in told if not logged.repeated]
        assert len(told) == len(answers)
        assert len(ours) == 1


def test_threads_that_add_the_same_requests_at_once_write_each_once(store):
    answers, barrier = [None] * 6, threading.Barrier(6)

    def add(number):
        batch = rivals(number)
        barrier.wait()
        answers[number] = store.predictions.add(batch)

    threads = [threading.Thread(target=add, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check_rivals(store, answers)


def _add_at_once(url, number, barrier, answers):
    try:
        with Store(url) as store:
            batch = rivals(number)
            store.check()
            barrier.wait()
            answers.put([store.predictions.add([request])[0] for request in batch])
    except Exception as error:
        answers.put(repr(error))


def test_processes_that_add_the_same_requests_at_once_write_each_once(database_url):
    with Store(database_url) as store:
        record_bundle(store)
    start = multiprocessing.get_context("fork")
    barrier, queue = start.Barrier(4), start.Queue()
    processes = [
        start.Process(target=_add_at_once, args=(database_url, number, barrier, queue))
        for number in range(4)
    ]
    for process in processes:
        process.start()
    answers = [queue.get(timeout=60) for _ in processes]
    for process in processes:
        process.join(timeout=60)
    with Store(database_url) as store:
        check_rivals(store, answers)


def test_a_request_whose_writer_fails_is_written_by_the_one_that_waited(store):
    """The second waits for the first, which then leaves nothing behind."""
    second = []
    late = threading.Thread(target=lambda: second.extend(store.predictions.add([a_request()])))

    def fail():
        with store._database.write() as connection:
            predictions.insert_first(connection, [(a_prediction(), "asked")])
            late.start()
            late.join(timeout=0.2)
            assert late.is_alive()
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    late.join(timeout=30)
    assert [logged.repeated for logged in second] == [False]
    assert store.predictions.count() == 1


def test_two_that_add_the_same_requests_in_another_order_do_not_wait_for_each_other(store):
    second = []
    batch = [a_request("b"), a_request("a")]
    late = threading.Thread(target=lambda: second.extend(store.predictions.add(batch)))
    with store._database.write() as connection:
        predictions.insert_first(connection, [(a_prediction("a"), "asked")])
        late.start()
        late.join(timeout=0.2)  # it waits for "a", and has not written "b"
        assert predictions.insert_first(connection, [(a_prediction("b"), "asked")]) == {"b"}
    late.join(timeout=30)
    assert [logged.repeated for logged in second] == [True, True]
    assert store.predictions.count() == 2


def test_a_request_that_is_erased_while_it_is_repeated_harms_no_other(store, monkeypatch):
    """On PostgreSQL another may delete it between the two statements of one transaction."""
    old, new = a_request("old", unit="gone"), a_request("new", unit="stays")
    store.predictions.add([old])
    real = predictions._read_requests

    def erased_first(connection, ids):
        connection.execute(delete(table).where(table.c.unit == "gone"))
        return real(connection, ids)

    monkeypatch.setattr(predictions, "_read_requests", erased_first)
    assert store.predictions.add([old, new]) == [Logged((), erased=True), Logged(new.predictions)]
    monkeypatch.undo()
    assert store.predictions.of_request("new") == new.predictions
    assert store.predictions.add([old]) == [Logged(old.predictions)]


@pytest.mark.parametrize("gone", [0, 2])
def test_a_request_that_lost_some_of_its_rows_is_erased_and_harms_no_other(store, gone):
    partial, new = a_request("partial", rows=3), a_request("new", rows=2)
    store.predictions.add([partial])
    with store._database.write() as connection:
        connection.execute(delete(table).where(table.c.id == partial.predictions[gone].id))
    other = a_request("partial", rows=3, hash="something else")
    assert store.predictions.add([new, partial]) == [
        Logged(new.predictions),
        Logged((), erased=True),
    ]
    assert store.predictions.add([other]) == [Logged((), conflict=True)]
    assert store.predictions.count() == 4


def test_the_latest_moment_and_how_many_came_since_are_told(store):
    assert (store.predictions.latest(), store.predictions.recent(START)) == (None, 0)
    store.predictions.add(many_requests(5, start=START, every=timedelta(seconds=10)))
    assert store.predictions.latest() == START + timedelta(seconds=40)
    assert store.predictions.recent(START) == 5
    assert store.predictions.recent(START + timedelta(seconds=20)) == 3
    assert store.predictions.recent(START + timedelta(seconds=20, microseconds=1)) == 2
    with refuses(StoreError, "time zone"):
        store.predictions.recent(datetime(2026, 1, 1))


@pytest.mark.parametrize(
    "asked",
    [
        {"bundle": "never served"},
        {"label": "never given"},
        {"decision": "out_of_scope"},
        {"min_score": 0.75},
        {"max_score": 0.6},
        {"min_score": float("nan")},
        {"min_score": float("inf")},
        {"label": "early", "decision": "clear"},
    ],
)
def test_where_tallies_say_that_nothing_is_there_no_prediction_is_read(store, asked):
    late = START + timedelta(hours=9)
    store.predictions.add([a_request("r1", at=START, label="early", decision="act")])
    store.predictions.add([a_request("r2", at=late, label="late", decision="clear")])
    ran = []
    event.listen(store._database.engine, "before_cursor_execute", lambda *args: ran.append(args[2]))
    assert store.predictions.search(**asked) == []
    assert [statement for statement in ran if "FROM predictions" in statement] == []


def test_a_prediction_of_a_bundle_that_is_not_on_record_is_refused(store):
    strange = a_request("strange", rows=2, bundle="c" * 64)
    late = LoggedRequest(
        "late", "asked", (a_prediction("late"), a_prediction("late", 1, bundle="c" * 64))
    )
    for bad in (strange, late):
        with refuses(UnknownBundle, "not recorded", "c" * 64, "record its bundle"):
            store.predictions.add([a_request("good"), bad])
        assert store.predictions.count() == 0
    record_bundle(store, "c" * 64)
    assert store.predictions.add([strange]) == [Logged(strange.predictions)]


def _add_until_killed(url, pipe):
    with Store(url) as store:
        while True:
            batch = [a_request(new_id(), rows=2) for _ in range(4)]
            store.predictions.add(batch)
            for request in batch:
                os.write(pipe, f"{request.id}\n".encode())


def test_what_was_acknowledged_survives_a_kill(database_url):
    with Store(database_url) as store:
        record_bundle(store)
    start = multiprocessing.get_context("fork")
    ours, theirs = os.pipe()
    process = start.Process(target=_add_until_killed, args=(database_url, theirs))
    process.start()
    os.close(theirs)
    told = b""
    while told.count(b"\n") < 60:
        part = os.read(ours, 4096)
        assert part  # it was not ended by an error
        told += part
    os.kill(process.pid, signal.SIGKILL)
    while part := os.read(ours, 65536):
        told += part
    process.join()
    os.close(ours)
    acknowledged = told.decode().split("\n")[:-1]
    with Store(database_url) as store:
        for id in acknowledged:
            assert len(store.predictions.of_request(id)) == 2
        assert store.predictions.count() % 8 == 0  # batches are there whole or not at all


def test_a_full_disk_takes_nothing_of_a_batch_and_recovers(tmp_path):
    with new_store("sqlite", tmp_path) as url, Store(url) as store:
        record_bundle(store)
        with store._database.read() as connection:
            pages = connection.execute(text("PRAGMA page_count")).scalar_one()
        limit = [f"PRAGMA max_page_count = {pages + 20}"]
        store.close()
        event.listen(store._database.engine, "checkout", lambda c, *_: c.execute(limit[0]))
        kept = []

        def fill():
            for _ in range(50):
                kept.extend(store.predictions.add([a_request(new_id()) for _ in range(10)]))

        with pytest.raises(StoreUnavailable, match="is full"):
            fill()
        assert 0 < store.predictions.count() == len(kept)
        limit[0] = "PRAGMA max_page_count = 1000000"
        kept += store.predictions.add([a_request(new_id()) for _ in range(10)])
        assert store.predictions.count() == len(kept)


@pytest.fixture(scope="module")
def varied():
    """Return predictions that differ in all that is searched by, some at the same moment."""
    rng = random.Random(7)
    made = []
    for number in range(300):
        at = START + timedelta(seconds=rng.randrange(60))
        changes = {
            "unit": rng.choice([None, "a", "b", "c"]),
            "use_case": rng.choice([None, "returns", "tickets"]),
            "label": rng.choice(["late", "broken", "other"]),
            "decision": rng.choice([None, *DECISIONS]),
            "score": rng.randrange(11) / 10,
            "branch": rng.choice([None, "control", "new"]),
            "key": rng.choice([None, "abc123abc123"]),
            "bundle": rng.choice([BUNDLE, "c" * 64]),
        }
        made.append(a_request(f"request-{number}", at=at, **changes))
    return made


def plain_search(requests, *, limit=100, before=None, **asked):
    """Search without a database."""
    rows = [prediction for request in requests for prediction in request.predictions]
    rows.sort(key=lambda row: (row.at, row.id), reverse=True)
    if before is not None:
        rows = rows[[row.id for row in rows].index(before) + 1 :]
    rules = {
        "min_score": lambda row, value: row.score >= value,
        "max_score": lambda row, value: row.score <= value,
        "since": lambda row, value: row.at >= value,
        "until": lambda row, value: row.at < value,
    }
    for name, value in asked.items():
        rule = rules.get(name, lambda row, value, name=name: getattr(row, name) == value)
        rows = [row for row in rows if rule(row, value)]
    return rows[:limit]


def test_a_search_finds_what_a_plain_one_finds(store, varied):
    record_bundle(store, "c" * 64).predictions.add(varied)
    rng = random.Random(8)
    moments = [START + timedelta(seconds=s) for s in (0, 10, 31, 60)]
    choices = {
        "unit": ["a", "b", "nobody"],
        "use_case": ["returns", "nothing"],
        "label": ["late", "other"],
        "decision": ["act", "abstain"],
        "bundle": [BUNDLE, "c" * 64, "nothing"],
        "branch": ["control", "nothing"],
        "key": ["abc123abc123"],
        "min_score": [0.0, 0.3, 0.7],
        "max_score": [0.2, 0.7, 1.0],
        "since": moments,
        "until": moments,
        "limit": [1, 7, 1000],
        "before": [request.predictions[0].id for request in varied[:5]],
    }
    for _ in range(200):
        names = rng.sample(sorted(choices), rng.randrange(5))
        asked = {name: rng.choice(choices[name]) for name in names}
        assert store.predictions.search(**asked) == plain_search(varied, **asked), asked


def test_page_after_page_gives_all_rows_once_also_those_of_one_moment(store):
    store.predictions.add([a_request("one", rows=7, at=START), *many_requests(7)])
    seen, before = [], None
    while page := store.predictions.search(before=before, limit=3):
        seen += page
        before = page[-1].id
    assert seen == store.predictions.search(limit=1000)
    assert len({row.id for row in seen}) == 14


def test_a_page_after_an_unknown_prediction_is_refused(store):
    with refuses(InputError, "before='nothing'", "id"):
        store.predictions.search(before="nothing")


@pytest.mark.parametrize("limit", [0, -1, 10_001])
def test_the_length_of_a_page_has_bounds(store, limit):
    with refuses(InputError, "limit", "between 1 and 10,000"):
        store.predictions.search(limit=limit)


@pytest.mark.parametrize(
    ("asked", "index"),
    [
        ({}, "at_score"),
        ({"label": "late"}, "label_at_score"),
        ({"decision": "act"}, "decision_at_score"),
        ({"use_case": "returns"}, "use_case_at_score"),
        ({"label": "late", "decision": "act"}, "label_at_score"),
        ({"use_case": "returns", "decision": "act"}, "decision_at_score"),
        ({"label": "late", "min_score": 0.1}, "label_at_score"),
        ({"max_score": 0.1, "since": START}, "score"),
        ({"unit": "a", "label": "late", "min_score": 0.1}, "unit_at"),
    ],
)
def test_sqlite_walks_the_index_that_answers_soonest(tmp_path, asked, index):
    check_index(tmp_path, asked, index)


@pytest.mark.parametrize(
    ("asked", "index"),
    [({"max_score": 0.1}, "at_score"), ({"use_case": "returns", "max_score": 0.1}, "use_case_at")],
)
def test_where_many_rows_meet_all_conditions_the_newest_come_first(
    tmp_path, monkeypatch, asked, index
):
    monkeypatch.setattr("calibrant.store.predictions._LIMIT", 1)
    check_index(tmp_path, asked, index)


def check_index(tmp_path, asked, index):
    with new_store("sqlite", tmp_path) as url, Store(url) as store:
        found = a_request(unit="a", label="late", use_case="returns", score=0.1)
        record_bundle(store).predictions.add([found])
        ran = []
        event.listen(
            store._database.engine, "before_cursor_execute", lambda *args: ran.append(args[2:4])
        )
        assert store.predictions.search(**asked) == list(found.predictions)
        statement, parameters = ran[-1]
        with store._database.read() as connection:
            plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)
            assert f"USING INDEX ix_predictions_{index}" in " ".join(row[3] for row in plan)
