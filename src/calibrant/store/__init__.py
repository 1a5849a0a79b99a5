"""The store: every prediction on record, with its labels, its outcomes and the keys of callers."""

from calibrant.store.bundles import BundleLog
from calibrant.store.counting import Counts
from calibrant.store.keys import KeyRing
from calibrant.store.outcomes import OutcomeLog
from calibrant.store.predictions import PredictionLog
from calibrant.store.records import (
    BundleRecord,
    Erased,
    Key,
    Label,
    Logged,
    LoggedRequest,
    Outcome,
    Prediction,
    Recorded,
    new_id,
)
from calibrant.store.store import Store

__all__ = [
    "BundleLog",
    "BundleRecord",
    "Counts",
    "Erased",
    "Key",
    "KeyRing",
    "Label",
    "Logged",
    "LoggedRequest",
    "Outcome",
    "OutcomeLog",
    "Prediction",
    "PredictionLog",
    "Recorded",
    "Store",
    "new_id",
]
