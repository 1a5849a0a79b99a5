"""Predictions put straight into a store, and pages read as a person would."""

import re
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser

from calibrant.store import LoggedRequest, Prediction, new_id

START = datetime(2026, 3, 1, 12, tzinfo=UTC)


def make_prediction(bundle, place=0, **changes):
    """Return a prediction; a later `place` is a later minute."""
    fields = {
        "id": new_id(),
        "at": START + timedelta(minutes=place),
        "bundle": bundle,
        "request": f":order-{place}",
        "position": 0,
        "unit": None,
        "use_case": None,
        "branch": None,
        "key": None,
        "input": {"text": f"message {place}"},
        "input_hash": "9c1e",
        "logits": [2.0, 0.0, -1.0],
        "probs": [0.7, 0.2, 0.1],
        "label": "defect",
        "score": 0.7,
        "decision": "abstain",
        "acted_as": None,
        "action": None,
        "operating_point": None,
        "out_of_scope": None,
        "latency_ms": 3.14,
    }
    return Prediction(**{**fields, **changes})


def keep(client, *predictions):
    """Put predictions on record, those of one request together; return their ids."""
    requests = {}
    for each in predictions:
        requests.setdefault(each.request, []).append(each)
    store = client.service.store
    store.predictions.add([LoggedRequest(id, "5d41", tuple(r)) for id, r in requests.items()])
    return [each.id for each in predictions]


class Page(HTMLParser):
    """A page as it is read: its text without tags, its tags, and what each has."""

    def __init__(self, answer):
        super().__init__()
        self.status = answer.status_code
        self.tags, self._parts = [], []
        self.feed(answer.text)
        self.text = " ".join("".join(self._parts).split())

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag in ("th", "td", "dt", "dd", "li", "p"):
            self._parts.append(" ")  # a person sees them apart

    def handle_data(self, data):
        self._parts.append(data)

    def all(self, tag, **wanted):
        return [a for t, a in self.tags if t == tag and wanted.items() <= a.items()]

    def field(self, name):
        return next(a for _, a in self.tags if a.get("name") == name)

    def wrong(self, id):
        """Whether a field is marked as wrong and points at the sentence."""
        field = next(a for _, a in self.tags if a.get("id") == id)
        message_id = f"{id}-wrong"
        pointed = message_id in field.get("aria-describedby", "").split()
        return (
            field.get("aria-invalid") == "true"
            and pointed
            and any(a.get("id") == message_id for _, a in self.tags)
        )

    @property
    def ids(self):
        """The ids of the predictions that are listed, in their order."""
        links = (
            re.fullmatch("/console/predictions/([^?]+)", a.get("href", "")) for a in self.all("a")
        )
        return [each[1] for each in links if each]


def look(client, path="", **query):
    """Open the list, or a page below it."""
    return Page(client.get(f"/console/predictions{path}", params=query or None))
