"""Versions on the Thresholds page: restoring, whether a version is served, and reloads."""

import asyncio
import re
from types import SimpleNamespace

import pytest
from tests.unit.serving.console.conftest import log_in
from tests.unit.serving.console.thresholds_bundles import bundle
from tests.unit.serving.console.thresholds_visits import HOME, Visit, text_of

from calibrant.bundle.versions import kept_versions
from calibrant.bundle.versions.versions import Versions
from calibrant.serving.http.problems import Problem


@pytest.fixture
def visit(serving, tmp_path):
    """Visit the page of a bundle of a kind."""

    def begin(kind="points", **options):
        return Visit(serving(bundle(tmp_path / "returns", kind, **options).path))

    return begin


def saved(there, n):
    """Save versions from outside; return their hashes."""
    versions, base, hashes = Versions(there.folder), there.hash, []
    points = there.service.slot.current.bundle.points
    for i in range(n):
        base = versions.save_points(
            points, base=base, change={"what": str(i)}, begin=lambda _: None
        )
        hashes.append(base)
    return hashes


def listed(page):
    return re.findall(r"<p><b>([0-9a-f]{12})</b>", page.text)


def test_the_first_and_the_current_version_are_always_listed(visit, monkeypatch):
    monkeypatch.setattr("calibrant.serving.console.pages.thresholds.history._MAX_ROWS", 3)
    there = visit("one point")
    first = there.hash
    hashes = saved(there, 6)
    there.service.reload()
    page = there.look(rule="0")
    assert listed(page) == [each[:12] for each in (*hashes[:-4:-1], first)]
    assert "3 more versions are not listed here." in text_of(page)
    assert "/console/thresholds?rule=0&amp;versions=all#versions" in page.text
    every = there.look(rule="0", versions="all")
    assert listed(every) == [each[:12] for each in (*hashes[::-1], first)]
    assert "not listed here" not in text_of(every)
    assert there.send("restore", version=hashes[1]).status_code == 303
    page = there.look()
    assert listed(page) == [each[:12] for each in (*hashes[:-4:-1], hashes[1], first)]
    assert f"{hashes[1][:12]} current" in text_of(page)


def test_manifests_of_versions_are_read_once(visit, monkeypatch):
    there = visit("one point")
    hashes = saved(there, 4)
    there.service.reload()
    there.look()
    read = []
    strictly = "calibrant.bundle.versions.kept_versions.read_strict_json"
    from calibrant.bundle.files import read_strict_json

    monkeypatch.setattr(strictly, lambda path: read.append(path) or read_strict_json(path))
    assert len(listed(there.look())) == 5
    assert read == []
    (there.folder.parent / "returns.versions" / hashes[0][:12] / "manifest.json").write_text("{}")
    assert hashes[0][:12] not in listed(there.look())
    assert len(read) == 1


def test_only_few_manifests_are_cached(visit, monkeypatch):
    known = kept_versions._InfoCache(2)
    monkeypatch.setattr(kept_versions, "_INFO_CACHE", known)
    there = visit("one point")
    saved(there, 4)
    for _ in range(2):
        assert len(listed(there.look())) == 5
        assert len(known._entries) == 2


def test_a_saved_version_is_called_in_use_only_if_it_is(visit):
    there = visit("points")
    first = there.hash
    there.look(rule="0")
    there.save(rule="0", threshold="0.6", tried=None)
    new, words = there.hash, "The new threshold is saved and in use."
    assert words in text_of(there.page)
    assert words not in text_of(there.look(done="saved"))
    assert "is saved" not in text_of(there.look(done="saved", version="<b>x"))
    assert 'role="status"><p>' not in there.look(done="other", version=new[:12]).text
    there.look()
    assert there.send("restore", version=first).status_code == 303
    text = text_of(there.look(done="saved", version=new[:12]))
    assert words not in text
    assert f"saved as version {new[:12]}; version {first[:12]} is being served." in text


def test_a_saved_version_that_cannot_be_loaded_says_why(visit, monkeypatch):
    there = visit("points")
    first = there.hash
    there.look(rule="0")

    def too_big(bundle):
        raise MemoryError("no room")

    monkeypatch.setattr("calibrant.serving.bundle_slot._score_dummy_row", too_big)
    text = text_of(there.save(rule="0", threshold="0.6", tried=None))
    assert there.service.slot.current.hash == first != there.hash
    assert "in use." not in text.partition(f"Version {first[:12]}")[0]
    assert f"saved as version {there.hash[:12]}, but it is not being served: the bundle" in text
    assert f"(MemoryError: no room). Version {first[:12]} is still in use." in text


def test_a_form_for_a_version_of_another_process_is_accepted(visit):
    there = visit("points")
    there.look(rule="0")
    (hash,) = saved(there, 1)
    assert there.service.slot.current.hash != hash
    there.save(rule="0", threshold="0.6", tried=None, base=hash)
    assert there.events("point_saved")[0].before == hash


@pytest.mark.parametrize("what", ["target", "save", "restore"])
def test_the_url_of_a_form_redirects_to_the_page(visit, what):
    sent = visit().client.get(f"{HOME}/{what}", follow_redirects=False)
    assert (sent.status_code, sent.headers["location"]) == (303, HOME)


def test_the_page_and_targets_are_computed_in_the_page_pool(visit, monkeypatch):
    there = visit("points")
    there.look()

    async def full(*_):
        raise Problem.busy("the pool is full.")

    pool = there.client.app.state.console.page_pool
    monkeypatch.setattr(pool, "run", full)
    assert there.send("target", hold="precision>=0.75", rule="0").status_code == 503
    assert there.events() == []
    assert there.client.get(HOME).status_code == 503
    assert there.send("save", rule="0", threshold="0.6").status_code == 303


def test_a_change_waits_for_another_one_without_a_thread(visit, monkeypatch):
    there = visit("points")
    there.look()
    base = there.hash

    async def busy():
        there.client.app.state.threshold_changes = asyncio.Lock()
        await there.client.app.state.threshold_changes.acquire()

    async def briefly(what, seconds):
        return await asyncio.wait_for(what, 0.2)

    there.client.portal.call(busy)
    impatient = SimpleNamespace(**{**vars(asyncio), "wait_for": briefly})
    with monkeypatch.context() as patch:
        patch.setattr("calibrant.serving.console.pages.thresholds.route.asyncio", impatient)
        sent = there.send("save", rule="0", threshold="0.6")
    assert sent.status_code == 503
    assert "Another change is in progress" in text_of(sent)
    assert there.hash == base
    there.client.app.state.threshold_changes.release()
    for threshold in ("0.6", "0.7"):
        there.look()
        assert there.send("save", rule="0", threshold=threshold).status_code == 303


def test_changed_positions_are_described_before_saving_and_in_the_event(serving, tmp_path):
    from tests.unit.serving.console.thresholds_bundles import NAMES, calib_rows, certified

    from calibrant.bundle import pack
    from calibrant.thresholds import OperatingPoints

    rows = calib_rows()
    defect, parts = (certified(rows, of, share=0.5) for of in NAMES[:2])
    both = OperatingPoints({"defect": defect, "parts": parts}, {}, 0.95)
    packed = pack(tmp_path / "returns", points=[defect, both], classes=NAMES, calib=rows)
    there = Visit(serving(packed.path))
    page = text_of(there.look(rule="1"))
    words = "the new threshold is point 1; the former point 1 is point 2"
    assert page.count(words) == 1
    assert text_of(there.try_target("precision>=0.75", "1")).count(words) == 2
    assert words not in text_of(there.look(rule="0"))
    there.look(rule="1")
    there.save(rule="1", threshold="0.6", tried=None)
    (event,) = there.events("point_saved")
    assert event.details["what"].endswith(f"for requests that name a point by number, {words}")


def test_other_roles_cannot_restore(serving, tmp_path):
    client = serving(bundle(tmp_path / "returns").path, need_key=True)
    log_in(client, client.service.store.keys.add("Ann", "label")[1])
    there = Visit(client)
    saved(there, 1)
    page = there.look()
    assert len(listed(page)) == 2
    assert "Restore" not in page.text
