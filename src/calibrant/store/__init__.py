"""Store of predictions, labels, outcomes, bundles, events and API keys."""

from calibrant.store.audit_rows import AuditLog, AuditState, LabelledRow
from calibrant.store.bundles import BundleLog
from calibrant.store.events import EventLog
from calibrant.store.keys import KeyRing
from calibrant.store.outcomes import OutcomeLog
from calibrant.store.predictions import PredictionLog
from calibrant.store.records import (
    ActedCount,
    AuditedCount,
    BundleRecord,
    Erased,
    Event,
    HourCount,
    Key,
    Label,
    Logged,
    LoggedRequest,
    Outcome,
    Prediction,
    Recorded,
    new_id,
)
from calibrant.store.store import Store, StoreCounts
from calibrant.store.tallies import TallyLog

__all__ = [
    "ActedCount",
    "AuditLog",
    "AuditState",
    "AuditedCount",
    "BundleLog",
    "BundleRecord",
    "Erased",
    "Event",
    "EventLog",
    "HourCount",
    "Key",
    "KeyRing",
    "Label",
    "LabelledRow",
    "Logged",
    "LoggedRequest",
    "Outcome",
    "OutcomeLog",
    "Prediction",
    "PredictionLog",
    "Recorded",
    "Store",
    "StoreCounts",
    "TallyLog",
    "new_id",
]
