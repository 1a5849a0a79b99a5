"""The trail marks changes that never happened."""

from datetime import UTC, datetime, timedelta

import pytest
from tests.unit.serving.console.thresholds_bundles import bundle
from tests.unit.serving.console.thresholds_visits import Visit, text_of

from calibrant.serving.console.pages.thresholds.history import (
    DOUBTFUL,
    UNDER_WAY,
    UNDONE,
    find_doubtful,
)
from calibrant.store.records import Event

NOW = datetime(2026, 1, 1, tzinfo=UTC)
KINDS = {"saved": "point_saved", "back": "version_restored", "failed": "change_failed"}


def remarks(*happened, current="", known=(), age=3600):
    """Return the remarks on events, oldest first: kind, before and after of each."""
    at = NOW - timedelta(seconds=age)
    events = [
        Event(str(i), at, KINDS[kind], None, "returns", before, after, {})
        for i, (kind, before, after) in enumerate(happened)
    ]
    marks = find_doubtful(events[::-1], current_hash=current, known_hashes=known, now=NOW)
    return [marks.get(each.id, "") for each in events]


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
def test_later_events_show_whether_a_change_happened(case):
    events, current, expected = CASES[case]
    assert remarks(*events, current=current) == expected


def test_a_known_version_was_saved():
    assert remarks(("saved", "a", "b"), current="z", known={"b"}) == [""]


def test_an_existing_version_does_not_prove_that_it_was_restored():
    assert remarks(("back", "b", "a"), current="b", known={"a", "b"}) == [UNDONE]


def test_a_change_may_be_in_progress():
    assert remarks(("saved", "a", "b"), current="a", age=5) == [UNDER_WAY]
    assert remarks(("saved", "a", "b"), ("saved", "a", "c"), current="a", age=5) == [
        UNDONE,
        UNDER_WAY,
    ]


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
    monkeypatch.setattr("calibrant.serving.console.pages.thresholds.history._GRACE", timedelta(0))


def test_a_killed_change_is_marked_on_the_page_and_after_the_next_one(killed, monkeypatch):
    assert "In progress. The threshold for class “defect”" in text_of(killed.look())
    later(monkeypatch)
    words = f"{UNDONE} The threshold for class “defect” changed from"
    assert text_of(killed.look()).count(words) == 1
    killed.save(rule="0", threshold="0.6", tried=None)
    assert text_of(killed.page).count(words) == 1
    assert [each.kind for each in killed.events()] == ["point_saved", "point_saved"]


def test_a_version_that_made_predictions_existed(serving, tmp_path, monkeypatch):
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
