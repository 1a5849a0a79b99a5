"""Browser sessions that record errors, and an accessibility audit of pages."""

from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

AUDIT = Path(__file__).with_name("audit.js").read_text(encoding="utf-8")
SHOWN = 10_000  # milliseconds until an element must be visible


class Visits:
    """Open pages of one service and record errors on them.

    Parameters
    ----------
    browser : a real one
    service : whose console is visited
    """

    def __init__(self, browser, service):
        self.service = service
        self.errors = []
        self._allowed = (f"{service.url}/", "data:", "blob:")
        self._browser, self._contexts = browser, []

    def context(self, *, width=1280, **options):
        """Return a new browser context whose errors are recorded."""
        context = self._browser.new_context(viewport={"width": width, "height": 800}, **options)
        context.set_default_timeout(SHOWN)
        context.on("page", self._watch)
        self._contexts.append(context)
        return context

    def __call__(self, path="/console", *, role=None, **options):
        """Open a page in a new browser context, logged in with the key of a role."""
        page = self.context(**options).new_page()
        if role is not None:
            self.log_in(page, role, next=path)
        else:
            self.go(page, path)
        return page

    def log_in(self, page, role, *, next="/console"):
        """Log in through the form, which leads to the requested page."""
        self.go(page, next)
        self.log_in_here(page, role)
        assert page.url == self.service.url + next

    def log_in_here(self, page, role):
        """Log in through the form that is on the page."""
        page.get_by_label("Key").fill(self.service.keys[role])
        with page.expect_navigation():
            page.get_by_label("Key").press("Enter")

    def allow(self, address):
        """Allow requests to another address."""
        self._allowed += (address,)

    def go(self, page, path):
        """Go to a page of the service and return the answer."""
        return page.goto(self.service.url + path)

    @contextmanager
    def expecting(self, path, status):
        """Require that one page responds with an error."""
        before = len(self.errors)
        yield
        recorded = self.errors[before:]
        assert (status, path) in recorded, f"{path} did not answer {status}: {recorded}"
        self.errors[before:] = [each for each in recorded if each != (status, path)]

    def close(self):
        """Close all contexts and fail on recorded errors."""
        for each in self._contexts:
            each.close()
        assert not self.errors, self.errors

    def _watch(self, page):
        page.on("console", self._on_console)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("request", self._on_request)
        page.on("requestfailed", self._on_failure)
        page.on("response", self._on_response)

    def _on_console(self, message):
        if message.type not in ("error", "warning"):
            return
        if message.text.startswith("Failed to load resource: the server responded"):
            return  # the response itself is checked
        self.errors.append(f"{message.location.get('url')}: {message.text}")

    def _on_request(self, request):
        if not request.url.startswith(self._allowed):
            self.errors.append(f"asked for {request.url}")

    def _on_failure(self, request):
        if request.failure != "net::ERR_ABORTED":  # navigating away aborts pending requests
            self.errors.append(f"{request.url}: {request.failure}")

    def _on_response(self, response):
        if response.status >= 400:
            self.errors.append((response.status, urlsplit(response.url).path))


def faults(page):
    """Return the accessibility faults of a page, also by keyboard and on a narrow screen."""
    return page.evaluate(AUDIT)
