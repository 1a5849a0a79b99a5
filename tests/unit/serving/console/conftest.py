"""Console visitors with and without keys."""

import re

import pytest

TOKEN = re.compile(r'name="csrf" value="([0-9a-f]{64})"')


def csrf_of(page):
    """Return the token of a page's forms."""
    return TOKEN.search(page.text)[1]


def log_in(client, token, **fields):
    """Log a client in by the form, as a new browser would."""
    client.cookies.clear()
    csrf = csrf_of(client.get("/console/login"))
    data = {"key": token, "csrf": csrf, **fields}
    return client.post("/console/login", data=data, follow_redirects=False)


@pytest.fixture
def guarded(serving, logits_folder):
    """A service that needs keys; `tokens` has one for each role."""
    client = serving(logits_folder, need_key=True)
    created = {role: client.service.store.keys.add(f"{role} key", role) for role in ROLES}
    client.keys = {role: key for role, (key, _) in created.items()}
    client.tokens = {role: token for role, (_, token) in created.items()}
    return client


ROLES = ("predict", "label", "admin")
