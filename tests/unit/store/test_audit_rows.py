"""Labelled predictions as an audit reads them, all of them or what came since."""

from datetime import timedelta

import pytest
from tests.unit.store.rows import START, hours, label, put, row

from calibrant.store import audit_rows as auditing
from calibrant.store.audit_rows import AuditState


def read(store, *bundles, **given):
    """Return what is read, piece by piece, as one list."""
    return [each for piece in store.audits.labelled(bundles, **given) for each in piece]


def tell(store, *told):
    """Put labels into the store."""
    assert store.outcomes.add([], told).added == len(told)


def test_every_labelled_prediction_is_read_whatever_was_decided(store):
    acted = row(logits=[2.0, 1e22])
    passed = row(decision="abstain", acted_as=None, logits=[0.5, 0.25])
    asked = row(asked_point=1)
    _, _, _, unlabelled = put(store, acted, passed, asked, row())
    tell(store, label(acted, "bad"), label(passed, "good"), label(asked, "bad"))
    found = {tuple(each.logits): each.label for each in read(store, "b1")}
    assert found == {(2.0, 1e22): "bad", (0.5, 0.25): "good", (2.0, 0.5): "bad"}
    assert unlabelled.id  # it has no label and is not read
    assert read(store, "b2") == []


def test_of_several_labels_the_latest_counts_also_across_pieces(store, monkeypatch):
    monkeypatch.setattr(auditing, "_PIECE", 2)
    made = put(store, *(row() for _ in range(4)))
    for hour, name in enumerate(("good", "bad", "good")):
        tell(store, *(label(each, name, at=hours(hour)) for each in made))
    tell(store, label(made[1], "bad", at=hours(9)))
    found = read(store, "b1")
    assert sorted(each.label for each in found) == ["bad", "good", "good", "good"]
    assert {each.before for each in found} == {None}


def test_only_what_was_told_since_is_read_with_what_counted_before(store):
    old, again, new = put(store, row(), row(), row())
    tell(store, label(old, "bad"), label(again, "bad"), label(again, "good", at=hours(1)))
    tell(store, label(again, "bad", at=hours(3)), label(new, "good", at=hours(4)))
    found = read(store, "b1", after=hours(2), until=hours(4))
    assert sorted((each.label, each.before) for each in found if each.before) == [("bad", "good")]
    assert [each.label for each in found if each.before is None] == ["good"]
    assert len(read(store, "b1", after=hours(2), until=hours(3))) == 1


def test_the_state_tells_what_labels_there_are(store):
    assert store.audits.state() == AuditState()
    first, second = put(store, row(unit="ada"), row())
    tell(store, label(first, at=hours(1)), label(second, at=hours(2)))
    before = store.audits.state()
    assert before == AuditState(2, 0, hours(2))
    store.forget("ada")
    tell(store, label(second, at=hours(2) + timedelta(seconds=1)))
    assert store.audits.state().labels == before.labels
    assert store.audits.state() != before


@pytest.mark.parametrize("erased", [True, False])
def test_newer_labels_are_told_from_other_changes(store, erased):
    first, second = put(store, row(unit="ada"), row())
    empty = store.audits.state()
    tell(store, label(first, at=hours(5)))
    old = store.audits.state()
    assert not store.audits.only_newer(empty, old)  # all have to be read
    tell(store, label(second, at=hours(6)))
    assert store.audits.only_newer(old, store.audits.state())
    if erased:
        store.forget("ada")
    else:
        tell(store, label(put(store, row())[0], at=START))  # by a clock that was set back
    assert not store.audits.only_newer(old, store.audits.state())
