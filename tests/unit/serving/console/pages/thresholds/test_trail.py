"""The trail of changes says of those that never happened that they did not."""

from datetime import UTC, datetime, timedelta

import pytest
from tests.unit.serving.console.thresholds_bundles import bundle
from tests.unit.serving.console.thresholds_visits import Visit, text_of

from calibrant.serving.console.pages.thresholds.trail import DOUBTFUL, UNDER_WAY, UNDONE, fates
from calibrant.store.records import Event

NOW = datetime(2026, 1, 1, tzinfo=UTC)
KINDS = {"saved": "point_saved", "back": "version_restored", "failed": "change_failed"}


def told(*happened, holds="", was_there=(), age=3600):
    """Return what is told of events, oldest first: kind, before and after of each."""
    at = NOW - timedelta(seconds=age)
    events = [
        Event(str(i), at, KINDS[kind], None, "returns", before, after, {})
        for i, (kind, before, after) in enumerate(happened)
    ]
    found = fates(events[::-1], holds=holds, was_there=was_there, now=NOW)
    return [found.get(each.id, "") for each in events]


CASES = {
    "all happened": ([("saved", "a", "b"), ("saved", "b", "c")], "c", ["", ""]),
    "and back": ([("saved", "a", "b"), ("back", "b", "a")], "a", ["", ""]),
    "killed": ([("saved", "a", "b")], "a", [UNDONE]),
    "killed, then another": ([("saved", "a", "b"), ("saved", "a", "c")], "c", [UNDONE, ""]),
    "killed on the way back": ([("saved", "a", "b"), ("back", "b", "a")], "b", ["", UNDONE]),
    "killed on the way back, then back": (
        [("saved", "a", "b"), ("back", "b", "a"), ("back", "b", "a")], "a", ["", UNDONE, ""],
    ),
    "failed": ([("saved", "a", "b"), ("failed", "a", "b")], "a", ["", ""]),
    "failed, which is told late": (
        [("saved", "a", "b"), ("back", "a", "c"), ("failed", "a", "b")], "c", ["", "", ""],
    ),
    "killed, then the same one failed": (
        [("back", "b", "a"), ("back", "b", "a"), ("failed", "b", "a")], "b", [UNDONE, "", ""],
    ),
    "another program": ([("saved", "a", "b")], "z", [DOUBTFUL]),
    "another program, then one": ([("saved", "a", "b"), ("saved", "y", "z")], "z", [DOUBTFUL, ""]),
    "no bundle": ([("saved", "a", "b")], None, [""]),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_what_came_of_a_change_is_told_by_what_came_after_it(case):
    events, holds, expected = CASES[case]
    assert told(*events, holds=holds) == expected


def test_a_version_that_was_there_was_saved():
    assert told(("saved", "a", "b"), holds="z", was_there={"b"}) == [""]


def test_that_a_version_was_there_does_not_tell_that_it_came_back():
    assert told(("back", "b", "a"), holds="b", was_there={"a", "b"}) == [UNDONE]


def test_a_change_may_be_under_way():
    assert told(("saved", "a", "b"), holds="a", age=5) == [UNDER_WAY]
    assert told(("saved", "a", "b"), ("saved", "a", "c"), holds="a", age=5) == [UNDONE, UNDER_WAY]


@pytest.fixture
def killed(serving, tmp_path, monkeypatch):
    """A visit after the service was killed between the event and the change of the folder."""
    there = Visit(serving(bundle(tmp_path / "returns").path))
    there.look()

    def end(*_, **__):
        raise OSError("killed")

    with monkeypatch.context() as patched:
        changes = "calibrant.serving.console.pages.thresholds.changes"
        patched.setattr("calibrant.bundle.versions.versions.replace_folder", end)
        patched.setattr(f"{changes}._note_failure", lambda *_: None)  # nobody is left to
        assert there.send("save", rule="0", threshold="0.5").status_code == 503
    assert [each.kind for each in there.events()] == ["point_saved"]
    return there


def later(monkeypatch):
    monkeypatch.setattr("calibrant.serving.console.pages.thresholds.trail._GRACE", timedelta(0))


def test_a_change_that_was_killed_is_told_on_the_page_and_after_the_next_one(killed, monkeypatch):
    assert "Under way. The threshold for class “defect”" in text_of(killed.look())
    later(monkeypatch)
    said = f"{UNDONE} The threshold for class “defect” went from"
    assert text_of(killed.look()).count(said) == 1
    killed.save(rule="0", threshold="0.6", tried=None)
    assert text_of(killed.page).count(said) == 1
    assert [each.kind for each in killed.events()] == ["point_saved", "point_saved"]


def test_a_version_that_decided_something_was_there(serving, tmp_path, monkeypatch):
    later(monkeypatch)
    there = Visit(serving(bundle(tmp_path / "returns").path))
    there.look(rule="0")
    there.save(rule="0", threshold="0.6", tried=None)
    sent = there.client.post("/v1/predict", json={"inputs": [{"logits": [9.0, 0.0, 0.0]}]})
    assert sent.status_code == 200
    there.folder.rename(tmp_path / "away")
    bundle(there.folder, "one point")
    there.service.reload()
    assert DOUBTFUL not in text_of(there.look())
