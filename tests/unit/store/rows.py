"""Predictions of a bundle of two classes, with labels and outcomes, to put into a store."""

from datetime import UTC, datetime, timedelta

from tests.databases import a_prediction

from calibrant.store import Label, LoggedRequest, Outcome, new_id

START = datetime(2026, 1, 1, tzinfo=UTC)


def hours(n):
    """Return the moment some hours after the first."""
    return START + timedelta(hours=n)


def row(**changes):
    """Return a prediction of a request of its own."""
    two = {"bundle": "b1", "logits": [2.0, 0.5], "probs": [0.75, 0.25], "label": "bad"}
    usual = {"at": START, "unit": None, "input": {"text": "it broke"}, "acted_as": "bad", **two}
    return a_prediction(f"request-{new_id()}", **{**usual, "score": 0.75, **changes})


def put(store, *rows, bundle="b1", classes=("bad", "good")):
    """Write predictions and their bundle; return the predictions."""
    store.bundles.record(hash=bundle, name="returns", classes=classes, manifest={}, at=START)
    store.predictions.add([LoggedRequest(one.request, "asked", (one,)) for one in rows])
    return rows


def label(prediction, name="good", at=START, source="agent"):
    """Return a label of a prediction."""
    return Label(new_id(), at, prediction.id, name, source, None)


def outcome(prediction, name="refund", at=START, value=12.5, text=None):
    """Return an outcome of a prediction."""
    return Outcome(new_id(), at, prediction.id, name, value, text, None)
