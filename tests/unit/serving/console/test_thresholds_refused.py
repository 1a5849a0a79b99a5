"""Forbidden, late or invalid requests change no threshold."""

import threading

import numpy as np
import pytest
from tests.sentences import assert_mentions
from tests.unit.serving.console.conftest import log_in
from tests.unit.serving.console.thresholds_bundles import bundle, calib_rows
from tests.unit.serving.console.thresholds_visits import Visit, text_of

from calibrant.bundle.versions.versions import Versions
from calibrant.errors import StoreUnavailable


@pytest.fixture
def visit(serving, tmp_path):
    """Visit the page of a bundle of a kind."""

    def begin(kind="points", **options):
        return Visit(serving(bundle(tmp_path / "returns", kind, **options).path))

    return begin


WRONG_HANDS = {
    "no number": ({"threshold": "high"}, 422),
    "empty": ({"threshold": ""}, 422),
    "above 1": ({"threshold": "1.5"}, 422),
    "below 0": ({"threshold": "-0.1"}, 422),
    "no unit": ({"threshold": "0.5", "unit": "percent"}, 422),
    "other scores": ({"threshold": "0.5", "on": "mine"}, 422),
    "no calibrator": ({"threshold": "0.5", "on": "calibrated"}, 422),
    "no such class": ({"threshold": "0.5", "rule": "9"}, 404),
    "long reason": ({"threshold": "0.5", "reason": "x" * 501}, 422),
    "unknown target": ({"tried": "01a1e445-d501-7185-afb0-f17ff1a2b8d9"}, 404),
    "old base": ({"threshold": "0.5", "base": "0" * 64}, 409),
    "no base": ({"threshold": "0.5", "base": None}, 409),
    "no csrf": ({"threshold": "0.5", "csrf": None}, 403),
    "wrong csrf": ({"threshold": "0.5", "csrf": "0" * 64}, 403),
}


@pytest.mark.parametrize("case", WRONG_HANDS)
def test_an_invalid_request_changes_nothing(visit, case):
    fields, status = WRONG_HANDS[case]
    there = visit("points")
    base = there.hash
    page = there.send("save", **({"rule": "0"} | fields))
    assert page.status_code == status
    assert page.headers["content-type"].startswith("text/html")
    assert there.hash == there.service.slot.current.hash == base
    assert there.events() == []
    assert len(Versions(there.folder).all()) == 1


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"version": "0" * 64}, 404),
        ({"version": "../../etc"}, 404),
        ({}, 404),
        ({"version": "own"}, 409),
        ({"version": "0" * 64, "csrf": None}, 403),
        ({"version": "0" * 64, "base": "1" * 64}, 409),
    ],
)
def test_restoring_an_unknown_version_changes_nothing(visit, fields, status):
    there = visit("points")
    base = there.hash
    if fields.get("version") == "own":
        fields = {"version": base}
    assert there.send("restore", **fields).status_code == status
    assert there.hash == base
    assert there.events() == []


def logged_in(serving, tmp_path, role):
    client = serving(bundle(tmp_path / "returns").path, need_key=True)
    key, token = client.service.store.keys.add("Ann", role)
    log_in(client, token)
    return Visit(client), key


def test_a_label_key_may_try_but_neither_save_nor_restore(serving, tmp_path):
    there, key = logged_in(serving, tmp_path, "label")
    base = there.hash
    words = text_of(there.try_target("precision>=0.75"))
    assert_mentions(words, "log in with a key", "role admin")
    assert "Save without a promise" not in words
    (event,) = there.events("target_tried")
    assert event.key == key.id
    assert "Ann" in words
    assert there.send("save", tried=event.id, base=base).status_code == 403
    assert there.send("restore", version="0" * 64, base=base).status_code == 403
    assert there.hash == base
    assert len(there.events()) == 1


def test_a_predict_key_may_not_try_targets(serving, tmp_path):
    there, _ = logged_in(serving, tmp_path, "predict")
    words = text_of(there.look())
    assert_mentions(words, "try a target", "log in with a key", "role label or admin")
    assert "Try it on these rows" not in words
    csrf = there.client.get("/console/try")  # which has a form
    there.page = csrf
    calib = there.service.slot.current.bundle.calib.hash
    sent = there.send("target", hold="precision>=0.75", rule="0", rows=calib)
    assert sent.status_code == 403
    assert "requires 'label'" in text_of(sent)
    for what in ("save", "restore"):
        assert there.send(what, base=there.hash).status_code == 403
    assert there.events() == []


def test_a_save_after_another_one_is_refused(visit):
    there = visit("points")
    there.try_target("precision>=0.75")
    stale = there.page
    there.save()
    won = there.hash
    there.page = stale
    sent = there.send("save", tried=there.field("tried"))
    assert sent.status_code == 409
    assert_mentions(text_of(sent), "changed since you", "loaded the page")
    assert there.hash == won
    assert len(there.events("point_saved")) == 1


def test_of_two_saves_at_once_one_wins(visit):
    there = visit("points")
    there.look(rule="0")
    gate, answers = threading.Barrier(2), []

    def send(threshold):
        gate.wait()
        answers.append(there.send("save", rule="0", threshold=threshold))

    threads = [threading.Thread(target=send, args=(value,)) for value in ("0.8", "0.9")]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(each.status_code for each in answers) == [303, 409]
    assert len(there.events("point_saved")) == 1
    assert there.events("point_saved")[0].after == there.hash == there.service.slot.current.hash


def test_an_unwritable_folder_is_reported(visit, monkeypatch):
    there = visit("points")
    base = there.hash
    there.look()
    monkeypatch.setattr("calibrant.bundle.versions.versions.os.access", lambda *_: False)
    sent = there.send("save", rule="0", threshold="0.5")
    assert sent.status_code == 503
    assert "not writable" in text_of(sent)
    assert there.hash == base
    assert there.events() == []


def test_nothing_is_changed_if_the_event_cannot_be_recorded(visit, monkeypatch):
    there = visit("points")
    base = there.hash
    there.look()

    def away(*_, **__):
        raise StoreUnavailable("the store is away: try again.")

    monkeypatch.setattr(type(there.service.store.events), "add", away)
    assert there.send("save", rule="0", threshold="0.5").status_code == 503
    assert there.hash == there.service.slot.current.hash == base
    assert len(Versions(there.folder).all()) == 1


def test_a_change_that_fails_after_its_event_is_marked_in_the_trail(visit, monkeypatch):
    there = visit("points")
    base = there.hash
    there.look()

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("calibrant.bundle.versions.versions.replace_folder", full)
    sent = there.send("save", rule="0", threshold="0.5")
    assert sent.status_code == 503
    assert "No space left" in text_of(sent)
    assert there.hash == base
    assert [each.kind for each in there.events()] == ["change_failed", "point_saved"]
    assert "Failed. This did not happen" in text_of(there.look())


def test_the_number_of_targets_is_limited(visit, monkeypatch):
    there = visit("one point")
    monkeypatch.setattr("calibrant.serving.console.pages.thresholds.tried.MAX_TARGETS", 2)
    for hold in ("precision>=0.75", "precision>=0.7"):
        there.try_target(hold)
    sent = there.send("target", hold="precision>=0.6", rule="0")
    assert sent.status_code == 422
    assert "hardly any error for another one" in text_of(sent)
    assert len(there.events("target_tried")) == 2
    there.try_target("precision>=0.75")  # a repeat is


def test_weights_below_1_are_refused_and_nothing_is_recorded(visit):
    rows = calib_rows()
    light = type(rows)(rows.logits, rows.codes, np.where(rows.codes == 0, 0.5, 1.0))
    there = visit("no points", rows=light)
    sent = there.send("target", hold="precision>=0.7", rule="0")
    assert sent.status_code == 422
    assert "at least 1, got" in text_of(sent)
    assert there.events() == []
