"""A watch over all that a visitor's browser does, and what a page must be like everywhere."""

from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

AUDIT = Path(__file__).with_name("audit.js").read_text(encoding="utf-8")
SHOWN = 10_000  # milliseconds until something has to be there; no more than that is ever waited


class Visits:
    """Opens pages of one service, and keeps what went wrong on them.

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
        """Return a browser that nobody has used, under watch."""
        made = self._browser.new_context(viewport={"width": width, "height": 800}, **options)
        made.set_default_timeout(SHOWN)
        made.on("page", self._watch)
        self._contexts.append(made)
        return made

    def __call__(self, path="/console", *, role=None, **options):
        """Open a page in a browser that nobody has used, logged in with the key of a role."""
        page = self.context(**options).new_page()
        if role is not None:
            self.log_in(page, role, next=path)
        else:
            self.go(page, path)
        return page

    def log_in(self, page, role, *, next="/console"):
        """Log in through the form; the visitor is on the page they wanted then."""
        self.go(page, next)
        self.log_in_here(page, role)
        assert page.url == self.service.url + next

    def log_in_here(self, page, role):
        """Log in through the form that is on the page."""
        page.get_by_label("Key").fill(self.service.keys[role])
        with page.expect_navigation():
            page.get_by_label("Key").press("Enter")

    def allow(self, address):
        """Let pages be asked for elsewhere."""
        self._allowed += (address,)

    def go(self, page, path):
        """Go to a page of the service and return the answer."""
        return page.goto(self.service.url + path)

    @contextmanager
    def expecting(self, path, status):
        """Let one page answer with an error; it must do so."""
        before = len(self.errors)
        yield
        found = self.errors[before:]
        assert (status, path) in found, f"{path} did not answer {status}: {found}"
        self.errors[before:] = [each for each in found if each != (status, path)]

    def close(self):
        """Close all browsers, and refuse what should not have happened."""
        for each in self._contexts:
            each.close()
        assert not self.errors, self.errors

    def _watch(self, page):
        page.on("console", self._said)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("request", self._asked)
        page.on("requestfailed", self._failed)
        page.on("response", self._answered)

    def _said(self, message):
        if message.type not in ("error", "warning"):
            return
        if message.text.startswith("Failed to load resource: the server responded"):
            return  # the answer itself is looked at
        self.errors.append(f"{message.location.get('url')}: {message.text}")

    def _asked(self, request):
        if not request.url.startswith(self._allowed):
            self.errors.append(f"asked for {request.url}")

    def _failed(self, request):
        if request.failure != "net::ERR_ABORTED":  # a visitor who goes on ends what is under way
            self.errors.append(f"{request.url}: {request.failure}")

    def _answered(self, response):
        if response.status >= 400:
            self.errors.append((response.status, urlsplit(response.url).path))


def faults(page):
    """Return what is wrong with a page for a reader, a keyboard or a narrow screen."""
    return page.evaluate(AUDIT)
