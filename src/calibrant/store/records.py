"""What goes into the store and comes out of it, as plain frozen records."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from datetime import datetime
from typing import Any

__all__ = [
    "DECISIONS",
    "ROLES",
    "ActedCount",
    "AuditedCount",
    "BundleRecord",
    "Erased",
    "Event",
    "HourCount",
    "Key",
    "Label",
    "Logged",
    "LoggedRequest",
    "Outcome",
    "Prediction",
    "Recorded",
    "new_id",
]

DECISIONS = ("act", "clear", "abstain", "out_of_scope")
"""What can be decided about a row."""

ROLES = ("predict", "label", "admin")
"""What a key can be for."""


def new_id() -> str:
    """Return a UUID of version 7 as text: later ones sort after earlier ones.

    Its first 48 bits are milliseconds since 1970, the 12 bits after the version are the fraction
    of the millisecond, and 62 bits are random (RFC 9562, sections 5.7 and 6.2, method 3).

    Examples
    --------
    >>> one = new_id()
    >>> one[14], len(one)
    ('7', 36)
    """
    millis, rest = divmod(time.time_ns(), 1_000_000)
    fraction = (rest << 12) // 1_000_000
    random = int.from_bytes(os.urandom(8), "big") >> 2
    digits = f"{millis << 80 | 7 << 76 | fraction << 64 | 2 << 62 | random:032x}"
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


@dataclass(frozen=True, slots=True)
class Prediction:
    """One answer of the service: what came in, what the bundle made of it, what was decided.

    Parameters
    ----------
    id : of this prediction, see `new_id`
    at : when it was made; has a time zone
    bundle : hash of the bundle that made it
    request, position : id of the request it answers, and its place among the inputs, from 0
    unit, use_case, branch : whom it is about, what it is for, the branch of an experiment
    key : id of the key that asked
    input, input_hash : what came in (None where only its hash is kept), and its keyed hash
    logits, probs : of every class, in the bundle's order
    label, score : the most probable class and its probability
    decision : one of `DECISIONS`; None where the bundle has no operating point
    acted_as, action, operating_point : the class acted on, what is done, which point decided
    out_of_scope : whether the row is unlike those the model learned from; None where not asked
    latency_ms : from the request's arrival to its decision
    asked_point : the operating point that the request asked for; None where it asked for none
    """

    id: str
    at: datetime
    bundle: str
    request: str
    position: int
    unit: str | None
    use_case: str | None
    branch: str | None
    key: str | None
    input: dict[str, Any] | None
    input_hash: str
    logits: list[float]
    probs: list[float]
    label: str
    score: float
    decision: str | None
    acted_as: str | None
    action: str | None
    operating_point: int | None
    out_of_scope: bool | None
    latency_ms: float
    asked_point: int | None = None


@dataclass(frozen=True, slots=True)
class LoggedRequest:
    """A request with its predictions, to be written whole or not at all.

    Parameters
    ----------
    id : of the request: two with the same id are the same request
    hash : keyed hash of what was asked
    predictions : at positions 0, 1, 2, ...
    """

    id: str
    hash: str
    predictions: tuple[Prediction, ...]


@dataclass(frozen=True, slots=True)
class Logged:
    """What became of a request that was to be written.

    Parameters
    ----------
    predictions : as they are in the store; none where there is a conflict
    repeated : whether the store had this request already, so that nothing was written
    conflict : whether the store had another request of the same id
    erased : whether the store had this request, and some or all of it was erased: nothing was
        written, and there is no answer to give again
    """

    predictions: tuple[Prediction, ...]
    repeated: bool = False
    conflict: bool = False
    erased: bool = False


@dataclass(frozen=True, slots=True)
class Label:
    """What a row truly was, told by someone (`source`) after it was predicted."""

    id: str
    at: datetime
    prediction: str
    label: str
    source: str | None
    key: str | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a prediction: a named event with a number, a text, both or neither."""

    id: str
    at: datetime
    prediction: str
    name: str
    value: float | None
    text: str | None
    key: str | None


@dataclass(frozen=True, slots=True)
class Recorded:
    """How many labels and outcomes were added, how many were there already.

    Parameters
    ----------
    added, repeated : labels and outcomes together
    unknown : ids of predictions that are not in the store; where there are any, nothing is added
    conflict : whether an id was there with another content, so that nothing was added
    """

    added: int
    repeated: int
    unknown: tuple[str, ...] = ()
    conflict: bool = False


@dataclass(frozen=True, slots=True)
class BundleRecord:
    """A bundle that has served: its hash, name, classes and manifest, and when it first did."""

    hash: str
    name: str
    classes: list[str]
    manifest: dict[str, Any]
    at: datetime


@dataclass(frozen=True, slots=True)
class Key:
    """A key without its secret; `rate` is in requests per minute, None where it has no limit."""

    id: str
    name: str
    role: str
    rate: float | None
    created: datetime
    last_used: datetime | None
    revoked: datetime | None


@dataclass(frozen=True, slots=True)
class HourCount:
    """How many predictions of an hour were decided in one way; None is no decision at all."""

    hour: datetime
    decision: str | None
    n: int


@dataclass(frozen=True, slots=True)
class ActedCount:
    """How often a class was acted on, and the sum of its probabilities in those predictions.

    Predictions whose request asked for a point of its own do not count.
    """

    acted_as: str
    n: int
    prob: float


@dataclass(frozen=True, slots=True)
class AuditedCount:
    """Of labelled predictions that acted on a class, how many there are and how many were right.

    Predictions whose request asked for a point of its own do not count.
    """

    acted_as: str
    n: int
    right: int


@dataclass(frozen=True, slots=True)
class Event:
    """Something that was done and may have changed what is decided.

    Parameters
    ----------
    id, at : of the event, and when it was done
    kind : what was done, such as `point_saved`
    key : id of the key it was done with; None where the service needs none
    subject : what it was done to, such as the name of a bundle's folder
    before, after : what stood there before and after, such as the hashes of two bundles
    details : anything else, as JSON can hold it
    """

    id: str
    at: datetime
    kind: str
    key: str | None
    subject: str
    before: str | None
    after: str | None
    details: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Erased:
    """How many rows were erased."""

    predictions: int
    labels: int
    outcomes: int
