"""A real browser for the tests of pages, and a watch over what a page does in it."""

import os
import shutil

import pytest


@pytest.fixture(scope="module")
def browser():
    path = shutil.which("chromium")
    if path is None:
        reason = "chromium is not installed, so the page cannot be driven"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def visit(browser, report):
    """Open the page; afterwards there must have been no error and no request but for the file."""
    contexts, errors, requests = [], [], []

    def opened(*, url=report, width=1280, **options):
        context = browser.new_context(viewport={"width": width, "height": 800}, **options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda m: errors.append(m.text) if m.type == "error" else None)
        page.on("pageerror", lambda e: errors.append(str(e)))
        page.on("request", lambda r: requests.append(r.url))
        page.goto(url)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert errors == []
    assert [url for url in requests if not url.startswith(("file:", "data:"))] == []
