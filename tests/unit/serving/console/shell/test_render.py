"""Every page of the console: security headers, and problems in words."""

from datetime import UTC, datetime

from calibrant.errors import StoreUnavailable
from calibrant.serving.console.shell.render import POLICY, format_moment


def test_pages_run_our_scripts_only_and_are_kept_nowhere(serving, logits_folder):
    page = serving(logits_folder).get("/console")
    assert page.headers["content-security-policy"] == POLICY
    assert "'unsafe-inline'" not in POLICY.partition("script-src")[2].partition(";")[0]
    assert page.headers["cache-control"] == "no-store"
    assert page.headers["x-frame-options"] == "DENY"
    assert page.headers["x-content-type-options"] == "nosniff"
    assert page.headers["referrer-policy"] == "same-origin"


def test_a_page_that_is_not_there(serving, logits_folder):
    page = serving(logits_folder).get("/console/<script>alert(1)</script>")
    assert page.status_code == 404
    assert page.headers["content-type"].startswith("text/html")
    assert "<script>alert" not in page.text
    assert page.text.count("<h1>") == 1


def test_elsewhere_problems_stay_json(serving, logits_folder):
    answer = serving(logits_folder).get("/consoles")
    assert answer.headers["content-type"] == "application/problem+json"


def test_a_method_that_a_page_does_not_support(serving, logits_folder):
    page = serving(logits_folder).post("/console/model", data={})
    assert page.status_code == 405
    assert page.headers["content-type"].startswith("text/html")


def test_an_unreachable_database_is_reported_on_a_page(serving, logits_folder, monkeypatch):
    client = serving(logits_folder, need_key=True)

    def away(*args, **options):
        raise StoreUnavailable("the store cannot be reached: try again.")

    monkeypatch.setattr(client.service.store, "keyed_hash", away)
    for path in ("/console", "/console/login"):
        page = client.get(path, follow_redirects=False)
        assert page.status_code == 503
        assert "database is unavailable" in page.text
        assert "Retry-After" in page.headers


def test_a_missing_bundle_is_reported_on_every_page(serving, tmp_path):
    from tests.unit.serving.bundles import logits_bundle

    folder = logits_bundle(tmp_path / "returns").path
    client = serving(folder)
    (folder / "manifest.json").rename(tmp_path / "manifest.json")
    client.service.slot.look()
    page = client.get("/console/nowhere")
    assert "The bundle's folder cannot be used" in page.text


def test_example_of_format_moment():
    assert (
        str(format_moment(datetime(2026, 1, 31, 9, 5, 7, tzinfo=UTC)))
        == '<time datetime="2026-01-31T09:05:07+00:00">31 Jan 2026, 09:05:07 UTC</time>'
    )
