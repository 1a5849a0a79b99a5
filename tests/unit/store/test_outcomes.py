"""Labels and outcomes: only of predictions that are there, and each once."""

import threading
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import delete, event, select
from tests.databases import a_request
from tests.sentences import assert_mentions, refuses
from tests.unit.store.rows import START, hours, label, outcome, put, row

from calibrant.errors import InputError, StoreError, UnknownClass
from calibrant.store import Label, Outcome, Recorded, outcomes
from calibrant.store import schema as tables
from calibrant.store.outcomes import claim_request

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)


@pytest.fixture
def prediction(store):
    """Return the id of a prediction that is in the store."""
    return store.predictions.add([a_request()])[0].predictions[0].id


def a_label(prediction, id="label-1", **changes):
    made = {"at": NOW, "label": "item_defective", "source": "agent", "key": "abc123abc123"}
    return Label(id=id, prediction=prediction, **{**made, **changes})


def an_outcome(prediction, id="outcome-1", **changes):
    made = {"at": NOW, "name": "refund accepted", "value": 12.5, "text": "fine 😀", "key": None}
    return Outcome(id=id, prediction=prediction, **{**made, **changes})


def test_what_is_told_comes_out_oldest_first(store, prediction):
    late = a_label(prediction, "label-0", at=NOW + timedelta(days=1), source=None, key=None)
    bare = an_outcome(prediction, "outcome-0", at=NOW + timedelta(days=1), value=None, text=None)
    told = (a_label(prediction), late), (an_outcome(prediction), bare)
    assert store.outcomes.add(told[1], told[0]) == Recorded(added=4, repeated=0)
    assert store.outcomes.of(prediction) == told


def test_of_what_is_told_at_once_the_last_is_the_latest_whatever_its_id(store, prediction):
    names = ["item_defective", "others"] * 6
    labels = [a_label(prediction, f"key:{i}", label=name) for i, name in enumerate(names)]
    outcomes = [an_outcome(prediction, f"key:{i}", name=f"step {i}") for i in range(12)]
    store.outcomes.add(outcomes, labels)
    found = store.outcomes.of(prediction)
    assert [each.label for each in found[0]] == names
    assert [each.name for each in found[1]] == [f"step {i}" for i in range(12)]
    assert found[0][-1].at - NOW == timedelta(microseconds=11)


def test_a_label_that_is_told_later_counts_as_later_although_the_clock_was_set_back(store):
    (one,) = put(store, row(acted_as="bad"))
    store.outcomes.add([], [label(one, "good", at=hours(9))])
    store.outcomes.add([], [label(one, "bad", at=hours(4))])
    assert [each.label for each in store.outcomes.of(one.id)[0]] == ["good", "bad"]
    assert audited(store, START) == [("bad", 1, 1)]
    store.outcomes.add([], [label(one, "good", at=hours(10))])
    assert store.outcomes.of(one.id)[0][-1].at == hours(10)


def test_a_label_that_is_no_class_is_refused_with_all_that_came_with_it(store):
    rows = put(store, row(), row())
    told = [label(rows[0], "good"), label(rows[1], "Bad ")]
    with pytest.raises(UnknownClass) as caught:
        store.outcomes.add([outcome(rows[0])], told, request="key:retry", hash="h1")
    assert_mentions(caught.value, "'Bad '", "closest: 'bad'", "'bad', 'good'", "`other`")
    assert caught.value.id == told[1].id
    assert store.counts().labels == store.counts().outcomes == 0
    mended = [told[0], label(rows[1], "bad")]
    assert store.outcomes.add([], mended, request="key:retry", hash="h2").added == 2


def test_a_label_may_be_another_class_where_that_is_said(store):
    (one,) = put(store, row())
    told = [label(one, "late delivery")]
    assert store.outcomes.add([], told, other=[told[0].id]).added == 1
    assert store.outcomes.of(one.id)[0][0].label == "late delivery"


def test_a_label_is_held_against_the_bundle_that_made_its_prediction(store):
    (old,) = put(store, row())
    (new,) = put(store, row(bundle="b2"), bundle="b2", classes=("bad", "late"))
    assert store.outcomes.add([], [label(old, "good"), label(new, "late")]).added == 2
    with refuses(UnknownClass, "'late'", "not a class", "'bad', 'good'"):
        store.outcomes.add([], [label(new, "late"), label(old, "late")])


def test_many_classes_are_shortened():
    message = outcomes.describe_unknown_class("zzz", [f"c{i}" for i in range(2_000)])
    assert_mentions(message, "'c0', 'c1', 'c2', 'c3', 'c4', 'c5', 'c6', 'c7' and 1,992 more")


def test_nothing_was_told_about_a_prediction_that_is_not_there(store):
    assert store.outcomes.of("nothing") == ((), ())
    assert store.outcomes.add([], []) == Recorded(0, 0)


def test_an_unknown_prediction_is_named_and_nothing_at_all_is_written(store, prediction):
    told = [an_outcome(prediction), an_outcome("nowhere", "outcome-2")]
    labels = [a_label("never", "label-2"), a_label(prediction), a_label("nowhere", "label-3")]
    assert store.outcomes.add(told, labels) == Recorded(0, 0, ("nowhere", "never"))
    assert store.outcomes.of(prediction) == ((), ())


def test_what_was_told_before_is_not_written_again(store, prediction):
    label, outcome = a_label(prediction), an_outcome(prediction)
    store.outcomes.add([outcome], [label])
    later = a_label(prediction, at=NOW + timedelta(hours=1)), an_outcome(prediction)
    fresh = a_label(prediction, "label-2")
    assert store.outcomes.add([later[1]], [later[0], fresh]) == Recorded(1, 2)
    (first, second), told = store.outcomes.of(prediction)
    assert (first, second.id, told) == (label, fresh.id, (outcome,))


def test_an_id_that_says_something_else_than_before_is_a_conflict(store, prediction):
    label, outcome = a_label(prediction), an_outcome(prediction)
    store.outcomes.add([outcome], [label])
    fresh = a_label(prediction, "label-2")
    for told in (
        ([], [a_label(prediction, label="another"), fresh]),
        ([an_outcome(prediction, value=99.0)], [fresh]),
        ([], [fresh, a_label(prediction, "label-2", label="another")]),
    ):
        assert store.outcomes.add(*told) == Recorded(0, 0, conflict=True)
    assert store.outcomes.of(prediction) == ((label,), (outcome,))


def test_the_same_id_twice_in_one_call_is_written_once(store, prediction):
    outcome = an_outcome(prediction)
    assert store.outcomes.add([outcome, outcome], []) == Recorded(added=1, repeated=1)
    assert store.outcomes.of(prediction) == ((), (outcome,))


def test_many_may_be_told_at_once(store):
    added = store.predictions.add([a_request(f"request-{i}") for i in range(1_500)])
    ids = [logged.predictions[0].id for logged in added]
    labels = [a_label(id, f"label-{i}") for i, id in enumerate(ids)]
    assert store.outcomes.add([], labels) == Recorded(1_500, 0)
    assert store.outcomes.add([], labels) == Recorded(0, 1_500)


def test_threads_that_tell_the_same_at_once_add_it_once(store, prediction):
    answers, barrier = [], threading.Barrier(5)
    told = [an_outcome(prediction, f"outcome-{i}") for i in range(20)]

    def tell(order):
        barrier.wait()
        answers.append(store.outcomes.add(told[::order], []))

    threads = [threading.Thread(target=tell, args=((-1) ** number,)) for number in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(answer.added for answer in answers) == 20
    assert sum(answer.repeated for answer in answers) == 80
    assert len(store.outcomes.of(prediction)[1]) == 20


def test_two_that_tell_the_same_in_another_order_do_not_wait_for_each_other(store, prediction):
    second = []
    told = [an_outcome(prediction, "b"), an_outcome(prediction, "a")]
    late = threading.Thread(target=lambda: second.append(store.outcomes.add(told, [])))
    with store._database.write() as connection:
        outcomes._insert(connection, tables.outcomes, [asdict(told[1])])
        late.start()
        late.join(timeout=0.2)  # it waits for "a", and has not written "b"
        assert outcomes._insert(connection, tables.outcomes, [asdict(told[0])]) == 1
    late.join(timeout=30)
    assert second == [Recorded(added=0, repeated=2)]


def test_what_was_told_of_many_comes_in_a_query_for_each_kind(store):
    added = store.predictions.add([a_request(f"request-{i}") for i in range(3)])
    first, second, third = (logged.predictions[0].id for logged in added)
    told = [an_outcome(first), an_outcome(second, "outcome-2"), an_outcome(first, "outcome-3")]
    store.outcomes.add(told, [a_label(second)])
    ran = []
    event.listen(store._database.engine, "before_cursor_execute", lambda *args: ran.append(args[2]))
    assert store.outcomes.of_many([third, first, second, "nothing", first]) == {
        third: ((), ()),
        first: ((), (told[0], replace(told[2], at=NOW + timedelta(microseconds=1)))),
        second: ((a_label(second),), (told[1],)),
        "nothing": ((), ()),
    }
    assert len([statement for statement in ran if "FROM labels" in statement]) == 1
    assert len([statement for statement in ran if "FROM outcomes" in statement]) == 1
    assert store.outcomes.of_many([]) == {}


def tell(store, prediction, *, hash="h1", request="key:retry", kind=an_outcome, rows=2):
    """Tell as many outcomes or labels as one request does, with ids of their own each time."""
    made = [kind(prediction, f"{kind.__name__}-{i}") for i in range(rows)]
    told = (made, []) if kind is an_outcome else ([], made)
    return store.outcomes.add(*told, request=request, hash=hash)


def test_a_request_that_tells_again_is_a_repeat_and_another_telling_is_a_conflict(
    store, prediction
):
    assert tell(store, prediction) == Recorded(added=2, repeated=0)
    assert tell(store, prediction) == Recorded(added=0, repeated=2)
    for other in ({"rows": 3}, {"rows": 1}, {"kind": a_label}):
        assert tell(store, prediction, hash="h2", **other) == Recorded(0, 0, conflict=True)
    assert [len(part) for part in store.outcomes.of(prediction)] == [0, 2]
    assert tell(store, prediction, request="key:other", kind=a_label).added == 2


def test_a_request_that_could_not_tell_may_tell_something_else(store, prediction):
    assert tell(store, "nowhere") == Recorded(0, 0, ("nowhere",))
    clash = [an_outcome(prediction), an_outcome(prediction, value=99.0)]
    assert store.outcomes.add(clash, [], request="key:retry", hash="h0").conflict
    assert tell(store, prediction, hash="h2") == Recorded(2, 0)


def test_of_two_that_tell_by_the_same_request_at_once_one_does(store, prediction):
    """The second has looked before the first was done."""
    answers = []
    late = threading.Thread(target=lambda: answers.append(tell(store, prediction, hash="h2")))
    with store._database.write() as connection:
        request = store.keyed_hash(b"key:retry")
        assert claim_request(connection, request, "h1") is None
        late.start()
        late.join(timeout=0.2)
        assert late.is_alive()
    late.join(timeout=30)
    assert answers == [Recorded(0, 0, conflict=True)]
    assert tell(store, prediction, hash="h1") == Recorded(0, 2)
    assert store.outcomes.of(prediction) == ((), ())


def test_of_a_request_that_told_only_hashes_are_kept_until_they_are_pruned(store, prediction):
    tell(store, prediction, request="customer-17:retry", hash="h1")
    store.forget("customer-17")
    with store._database.read() as connection:
        (kept,) = connection.execute(select(tables.outcome_requests)).all()
    assert (kept.request, kept.hash) == (store.keyed_hash(b"customer-17:retry"), "h1")
    other = tell(store, prediction, request="customer-17:retry", hash="h2")
    assert other == Recorded(0, 0, conflict=True)
    store.prune(kept.at)
    other = tell(store, prediction, request="customer-17:retry", hash="h2")
    assert other == Recorded(0, 0, conflict=True)
    store.prune(kept.at + timedelta(seconds=1))
    other = tell(store, prediction, request="customer-17:retry", hash="h2")
    assert other == Recorded(0, 0, (prediction,))


def test_what_was_erased_since_a_request_told_it_is_not_called_a_repeat(store, prediction):
    assert tell(store, prediction) == Recorded(added=2, repeated=0)
    store.forget("customer-17")
    assert tell(store, prediction) == Recorded(0, 0, (prediction,))


def test_a_request_and_its_hash_belong_together(store, prediction):
    with refuses(InputError, "request", "hash", "together"):
        tell(store, prediction, hash=None)
    assert store.outcomes.of(prediction) == ((), ())


@pytest.mark.parametrize(
    "changes",
    [
        {"value": float("nan")},
        {"value": float("-inf")},
        {"text": "a\0b"},
        {"name": "x" * 201},
        {"name": None},
        {"at": datetime(2026, 1, 1)},
    ],
)
def test_a_bad_outcome_is_refused_with_all_that_came_with_it(store, prediction, changes):
    good, bad = an_outcome(prediction), an_outcome(prediction, "outcome-2", **changes)
    with pytest.raises(StoreError):
        store.outcomes.add([good, bad], [a_label(prediction)])
    assert store.outcomes.of(prediction) == ((), ())


def test_what_was_told_goes_with_its_prediction(store, prediction):
    store.outcomes.add([an_outcome(prediction)], [a_label(prediction)])
    with store._database.write() as connection:
        connection.execute(delete(tables.predictions))
    assert store.outcomes.of(prediction) == ((), ())


def audited(store, *given, **options):
    return [
        (each.acted_as, each.n, each.right) for each in store.outcomes.audited(*given, **options)
    ]


@pytest.fixture
def acted(store):
    """Return predictions that acted, one an hour, the last two of another bundle."""
    rows = put(store, *(row(at=hours(i), acted_as="bad") for i in range(4)))
    others = [row(at=hours(i), acted_as="good", bundle="b2") for i in (4, 5)]
    return [*rows, *put(store, *others, bundle="b2")]


def test_an_audit_counts_labelled_acts_and_those_that_were_right(store, acted):
    quiet = put(store, row(decision="abstain", acted_as=None), row(decision=None, acted_as=None))
    labels = [label(one, name) for one, name in zip(acted, ("bad", "good", "bad"), strict=False)]
    store.outcomes.add([outcome(acted[3])], [*labels, *(label(one, "bad") for one in quiet)])
    store.outcomes.add([], [label(acted[5], "good")])
    assert audited(store, START) == [("bad", 3, 2), ("good", 1, 1)]


def test_an_audit_leaves_out_points_that_requests_asked_for(store):
    usual, asked = put(store, row(acted_as="bad"), row(acted_as="bad", asked_point=1))
    store.outcomes.add([], [label(usual, "bad"), label(asked, "good")])
    assert audited(store, START) == [("bad", 1, 1)]


def test_of_several_labels_an_audit_takes_the_latest(store, acted):
    told = [label(acted[0], name, at=hours(when)) for name, when in (("good", 1), ("bad", 3))]
    store.outcomes.add([], told)
    assert audited(store, START) == [("bad", 1, 1)]
    store.outcomes.add([], [label(acted[0], "good", at=hours(4))])
    assert audited(store, START) == [("bad", 1, 0)]


def test_an_audit_is_about_predictions_made_in_a_time_and_by_a_bundle(store, acted):
    store.outcomes.add([], [label(one, "bad", at=hours(99)) for one in acted])
    assert audited(store, hours(1), hours(3)) == [("bad", 2, 2)]
    assert audited(store, hours(3)) == [("bad", 1, 1), ("good", 2, 0)]
    assert audited(store, START, bundle="b1") == [("bad", 4, 4)]
    assert audited(store, START, hours(5), bundle="b2") == [("good", 1, 0)]
    assert audited(store, hours(9)) == audited(store, START, bundle="b3") == []


def test_an_audit_looks_at_the_newest_predictions_and_at_no_more(store, acted):
    store.outcomes.add([], [label(one, "bad", at=hours(i)) for one in acted for i in (9, 8)])
    assert audited(store, START, most=3) == [("bad", 1, 1), ("good", 2, 0)]
    assert audited(store, START, most=6) == audited(store, START, most=7)
    with refuses(InputError, "most", "at least 1", "got 0"):
        store.outcomes.audited(START, most=0)


def test_an_audit_loses_what_is_erased(store):
    rows = put(store, row(unit="customer-17"), row(unit="customer-18"))
    store.outcomes.add([], [label(one, "bad") for one in rows])
    store.forget("customer-17")
    assert audited(store, START) == [("bad", 1, 1)]


def test_an_audit_reads_pieces(store, acted, monkeypatch):
    monkeypatch.setattr(outcomes, "_PIECE", 2)
    store.outcomes.add([], [label(one, "bad") for one in acted])
    assert audited(store, START) == [("bad", 4, 4), ("good", 2, 0)]
