"""The folder of the bundle is removed under the running service, and comes back."""

import time

import pytest
from tests.web.console.made import console, predict
from tests.web.console.test_pages import PAGES
from tests.web.console.watching import faults

pytestmark = pytest.mark.web

PAGE = PAGES["Thresholds"]
LONGEST = 30  # seconds; the folder is looked at every second


@pytest.fixture
def moved(copied):
    """A service of its own, and where its bundle is moved to."""
    bundle, db, keys = copied()
    with console(bundle, db, keys) as service:
        service.away = bundle.with_name("elsewhere")
        yield service


def wait_until(true):
    end = time.monotonic() + LONGEST
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)


def alert(page):
    return page.get_by_role("alert")


def test_pages_still_work_report_it_and_change_nothing(visits, moved):
    visit, folder = visits(moved), moved.settings.bundle
    page = visit(PAGE)
    page.get_by_text("Save a threshold without a promise").click()
    page.locator("#threshold").fill("0.9")
    before = moved.slot.current.hash
    folder.rename(moved.away)
    with visit.expecting(f"{PAGE}/save", 503), page.expect_navigation():
        page.get_by_role("button", name="Save without a promise").click()
    assert "nothing was changed" in page.locator("main").inner_text()
    assert not folder.exists()
    wait_until(lambda: moved.slot.refused)
    for path in PAGES.values():
        assert visit.go(page, path).status == 200
        assert "the bundle in memory is still served" in alert(page).inner_text()
        assert faults(page) == []
    predict(moved, ["it came broken"])
    with visit.expecting("/console/model/report", 404):
        visit.go(page, "/console/model/report")
    moved.away.rename(folder)
    wait_until(lambda: not moved.slot.refused)
    visit.go(page, PAGE)
    assert alert(page).count() == 0
    assert moved.slot.current.hash == before
    assert moved.store.events.latest(kinds=["point_saved"]) == []
