"""Visits of the Thresholds page: its forms are filled in and sent as a browser would."""

import html
import re

from calibrant.bundle import load_bundle

HOME = "/console/thresholds"


class Visit:
    """A visitor of the page; each form is that of the page that was loaded last."""

    def __init__(self, client):
        self.client, self.page = client, None

    @property
    def service(self):
        return self.client.service

    @property
    def folder(self):
        return self.service.settings.bundle

    @property
    def hash(self):
        """Return the hash of the bundle in the folder."""
        return load_bundle(self.folder).manifest["sha256"]

    def events(self, *kinds):
        return self.service.store.events.latest(kinds=kinds or None, limit=None)

    def look(self, **query):
        self.page = self.client.get(HOME, params=query)
        return self.page

    def field(self, name):
        match = re.search(rf'name="{name}" value="([^"]*)"', self.page.text)
        return "" if match is None else html.unescape(match[1])

    def send(self, what, **fields):
        if self.page is None:
            self.look()
        own = {name: self.field(name) for name in ("csrf", "base", "rows")}
        data = {name: value for name, value in (own | fields).items() if value is not None}
        return self.client.post(f"{HOME}/{what}", data=data, follow_redirects=False)

    def try_target(self, hold, rule="0", **fields):
        """Send a target and return the page that shows what comes of it."""
        sent = self.send("target", hold=hold, rule=rule, **fields)
        assert sent.status_code == 303, text_of(sent)
        self.page = self.client.get(sent.headers["location"])
        assert self.page.status_code == 200, text_of(self.page)
        return self.page

    def save(self, **fields):
        """Save what the page shows; return the page after it."""
        tried = self.field("tried") or None
        sent = self.send("save", **({"tried": tried} | fields))
        assert sent.status_code == 303, text_of(sent)
        self.page = self.client.get(sent.headers["location"])
        return self.page


def text_of(page):
    """Return what a page says, without its scripts and tags."""
    plain = re.sub(r"<script.*?</script>", "", page.text, flags=re.DOTALL).replace("\u200b", "")
    plain = re.sub(r"<wbr>|\u00ad", "", plain)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", plain)).replace("\xa0", " ").split())
