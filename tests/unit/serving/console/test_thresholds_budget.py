"""Tried targets are recorded beside the bundle: another store does not reset the budget."""

import json
import shutil
import threading

import numpy as np
import pytest
from tests.sentences import assert_mentions, refuses
from tests.unit.serving.console.thresholds_bundles import bundle, calib_rows
from tests.unit.serving.console.thresholds_visits import Visit, text_of

from calibrant.bundle import load_bundle
from calibrant.bundle.calib_rows import CalibRows
from calibrant.bundle.versions.versions import Versions
from calibrant.errors import BundleError
from calibrant.serving.console.pages.thresholds.tried_file import FILE, append_tries, read_tries

KIND = "one point"
HOLDS = ("precision>=0.75", "precision>=0.8", "recall>=0.3")


@pytest.fixture
def visit(serving, tmp_path):
    """Visit the page of a bundle with a store of a name, which begins empty."""

    def begin(store="first", folder=None):
        folder = bundle(tmp_path / "returns", KIND).path if folder is None else folder
        return Visit(serving(folder, db=f"sqlite:///{tmp_path / store}.db"))

    return begin


def file_of(there):
    return there.folder.parent / f"{there.folder.name}.versions" / FILE


def written(there):
    return json.loads(file_of(there).read_text(encoding="utf-8"))["tried"]


def number(page):
    return int(text_of(page).partition("This is target number ")[2].split()[0])


def test_another_store_does_not_reset_the_budget(visit):
    first = visit()
    for hold in HOLDS:
        first.try_target(hold)
    second = visit("second", first.folder)
    assert second.events() == []
    words = text_of(second.look())
    assert "Targets tried on these rows: 3" in words
    assert all(hold in words for hold in HOLDS)
    assert "may spend 3.8 %" in text_of(second.try_target("precision>=0.7"))  # 6 / (pi^2 * 16)
    assert number(second.page) == 4
    # The first store counts what was tried with the second.
    assert number(first.try_target("precision>=0.6")) == 5


def test_the_same_target_is_never_counted_twice(visit):
    first = visit()
    for hold in HOLDS:
        first.try_target(hold)
    again = [number(first.try_target(hold)) for hold in HOLDS]
    second = visit("second", first.folder)
    assert [number(second.try_target(hold)) for hold in HOLDS] == again == [1, 2, 3]
    assert len(second.events("target_tried")) == 3  # this store counts alone where the file is lost
    assert len(written(first)) == 3
    assert "Targets tried on these rows: 3" in text_of(second.look())
    assert number(second.try_target("precision>=0.6")) == 4


def test_a_target_tried_with_another_store_can_be_opened(visit):
    first = visit()
    first.try_target(HOLDS[0])
    second = visit("second", first.folder)
    page = second.look(tried=written(first)[0]["id"])
    assert page.status_code == 200
    assert "Target precision>=0.75: Certified" in text_of(page)
    assert number(page) == 1


def test_a_target_tried_with_another_store_can_be_saved(visit):
    first = visit()
    first.try_target(HOLDS[0])
    second = visit("second", first.folder)
    second.look(tried=written(first)[0]["id"])
    second.save()
    (event,) = second.events("point_saved")
    assert event.details["number_of_target"] == 1
    assert written(first)[0]["target"]["targets"] == ["precision>=0.75"]  # saving left the file


def test_the_same_rows_in_another_order_have_the_same_budget(visit, tmp_path):
    first = visit()
    first.try_target(HOLDS[0])
    rows = calib_rows()
    order = np.random.default_rng(3).permutation(len(rows))
    mixed = CalibRows(rows.logits[order], rows.codes[order])
    shutil.rmtree(first.folder)
    bundle(first.folder, KIND, rows=mixed)
    for store in ("first", "second"):
        assert "Targets tried on these rows: 1" in text_of(visit(store, first.folder).look())


def test_other_rows_have_a_budget_of_their_own(visit):
    first = visit()
    first.try_target(HOLDS[0])
    shutil.rmtree(first.folder)
    bundle(first.folder, KIND, rows=calib_rows(seed=4))
    second = visit("second", first.folder)
    assert "Targets tried" not in text_of(second.look())
    assert number(second.try_target(HOLDS[1])) == 1
    assert second.look(tried=first.events()[0].id).status_code == 404
    assert visit("first", first.folder).look(tried=first.events()[0].id).status_code == 409


def test_a_copy_of_the_folder_alone_has_a_new_budget(visit, tmp_path):
    first = visit()
    first.try_target(HOLDS[0])
    shutil.copytree(first.folder, tmp_path / "copy")
    assert number(visit("second", tmp_path / "copy").try_target(HOLDS[1])) == 1


def test_tries_are_not_versions(visit):
    there = visit()
    there.try_target(HOLDS[0])
    assert len(Versions(there.folder).all()) == 1
    shutil.rmtree(there.folder)
    with refuses(BundleError, "not exist", "give", "folder"):
        load_bundle(there.folder)


def test_a_store_from_before_the_file_is_counted_and_written_with_the_next(visit):
    there = visit()
    store, calib = there.service.store, there.service.slot.current.bundle.calib
    for hold in HOLDS[:2]:
        saved = {"class": "defect", "clears": False, "targets": [hold]}
        store.events.add("target_tried", key=None, subject=calib.hash, details=saved)
    words = text_of(there.look())
    assert "Targets tried on these rows: 2" in words
    assert "2 of these targets are recorded only in this store" in words
    assert number(there.try_target(HOLDS[2])) == 3
    assert [each["target"]["targets"] for each in written(there)] == [[hold] for hold in HOLDS]
    assert "only in this store" not in text_of(there.page)
    assert number(visit("second", there.folder).try_target(HOLDS[1])) == 2


def test_a_folder_that_cannot_be_written_counts_in_the_store_and_says_so(visit):
    there = visit()
    place = Versions(there.folder).versions_folder
    place.write_text("in the way")  # root may write to any folder, but not into a file
    assert number(there.try_target(HOLDS[0])) == 1
    words = text_of(there.page)
    assert "1 of these targets is recorded only in this store" in words
    assert f"if the service may write to {place}" in words
    assert number(there.try_target(HOLDS[1])) == 2
    assert place.read_text() == "in the way"
    place.unlink()
    assert number(there.try_target(HOLDS[2])) == 3
    assert "only in this store" not in text_of(there.page)
    assert len(written(there)) == 3


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "is damaged"),
        ("[]", "is damaged"),
        ('{"format": 1, "tried": [{"rows": "a"}]}', "is damaged"),
        ('{"format": 1, "tried": [7]}', "is damaged"),
        ('{"format": 2, "tried": []}', "newer version of Calibrant"),
    ],
)
def test_a_file_that_cannot_be_read_gives_no_budget(visit, text, why):
    there = visit()
    there.try_target(HOLDS[0])
    file_of(there).write_text(text, encoding="utf-8")
    page = there.look()
    assert page.status_code == 200
    assert why in text_of(page)
    assert_mentions(text_of(page), "No target", "tried until")
    sent = there.send("target", hold=HOLDS[1], rule="0")
    assert sent.status_code == 503
    assert why in text_of(sent)
    assert there.look(tried=there.events()[0].id).status_code == 503
    assert len(there.events("target_tried")) == 1
    assert file_of(there).read_text(encoding="utf-8") == text


def test_a_name_from_the_file_is_shown_as_text(visit):
    there = visit()
    there.try_target(HOLDS[0])
    saved = json.loads(file_of(there).read_text(encoding="utf-8"))
    saved["tried"][0]["by"] = "<script>alert(1)</script>"
    file_of(there).write_text(json.dumps(saved), encoding="utf-8")
    page = visit("second", there.folder).look()
    assert "<script>alert(1)" not in page.text
    assert "&lt;script&gt;alert" in page.text


def test_tries_at_once_are_all_written(visit):
    there = visit()
    there.look()
    gate, answers = threading.Barrier(4), []

    def send(goal):
        gate.wait()
        answers.append(there.send("target", hold=f"precision>={goal}", rule="0"))

    threads = [threading.Thread(target=send, args=(goal,)) for goal in (0.6, 0.65, 0.7, 0.75)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert [each.status_code for each in answers] == [303] * 4
    assert len(written(there)) == 4
    assert len({each["id"] for each in written(there)}) == 4


def test_if_the_file_cannot_be_replaced_the_old_one_stays(visit, monkeypatch):
    there = visit()
    there.try_target(HOLDS[0])
    before = file_of(there).read_bytes()
    rows = there.service.slot.current.bundle.calib.unordered_hash
    (first_try,) = read_tries(there.folder, rows)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("calibrant.serving.console.pages.thresholds.tried_file.sync_to_disk", full)
    other = type(first_try)(
        "2", first_try.at, "Ann", {**first_try.target, "targets": ["recall>=0.2"]}
    )
    with pytest.raises(BundleError, match="No space left"):
        append_tries(there.folder, rows, [other])
    assert file_of(there).read_bytes() == before
    assert sorted(each.name for each in file_of(there).parent.iterdir()) == [".lock", FILE]
