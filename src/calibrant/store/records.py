"""Frozen records of the store."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from datetime import datetime
from typing import Any

DECISIONS = ("act", "clear", "abstain", "out_of_scope")  # Possible decisions

ROLES = ("predict", "label", "admin")  # Roles of API keys


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
    """A prediction: input, scores and decision.

    Parameters
    ----------
    id : id, see `new_id`
    at : time, with a time zone
    bundle : hash of the bundle that made it
    request, position : id of the request, and position among its inputs, from 0
    unit, use_case, branch : unit such as a customer, use case, branch of an experiment
    key : id of the API key
    input, input_hash : input (None if only its hash is stored), and its keyed hash
    logits, probs : one per class, in the order of the bundle
    label, score : the most probable class and its probability
    decision : one of `DECISIONS`; None without an operating point
    acted_as, action, operating_point : class acted on, action, deciding point
    out_of_scope : whether the row is out of scope; None without a rule
    latency_ms : time from arrival to decision
    asked_point : operating point that the request named, or None
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
    """A request with its predictions, written atomically.

    Parameters
    ----------
    id : idempotency key of the request
    hash : keyed hash of its content
    predictions : at positions 0, 1, 2, ...
    """

    id: str
    hash: str
    predictions: tuple[Prediction, ...]


@dataclass(frozen=True, slots=True)
class Logged:
    """Result of writing a request.

    Parameters
    ----------
    predictions : stored predictions; empty on a conflict
    repeated : whether the request was already stored, so that nothing was written
    conflict : whether the id was stored with another hash
    erased : whether the request was stored and erased, at least in part; nothing was written
    """

    predictions: tuple[Prediction, ...]
    repeated: bool = False
    conflict: bool = False
    erased: bool = False


@dataclass(frozen=True, slots=True)
class Label:
    """True class of a predicted row, reported by `source`."""

    id: str
    at: datetime
    prediction: str
    label: str
    source: str | None
    key: str | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """Outcome of a prediction: a named event with an optional number and text."""

    id: str
    at: datetime
    prediction: str
    name: str
    value: float | None
    text: str | None
    key: str | None


@dataclass(frozen=True, slots=True)
class Recorded:
    """Result of adding labels and outcomes.

    Parameters
    ----------
    added, repeated : number of new and of existing labels and outcomes
    unknown : ids of predictions that are not in the store; if any, nothing is added
    conflict : whether an id exists with other content; if so, nothing is added
    """

    added: int
    repeated: int
    unknown: tuple[str, ...] = ()
    conflict: bool = False


@dataclass(frozen=True, slots=True)
class BundleRecord:
    """A served bundle: hash, name, classes, manifest and time of first use."""

    hash: str
    name: str
    classes: list[str]
    manifest: dict[str, Any]
    at: datetime


@dataclass(frozen=True, slots=True)
class Key:
    """An API key without its secret; `rate` is in requests per minute, None for no limit."""

    id: str
    name: str
    role: str
    rate: float | None
    created: datetime
    last_used: datetime | None
    revoked: datetime | None


@dataclass(frozen=True, slots=True)
class HourCount:
    """Number of predictions per hour and decision; None for no decision."""

    hour: datetime
    decision: str | None
    n: int


@dataclass(frozen=True, slots=True)
class ActedCount:
    """Number of predictions that acted on a class, and the sum of its probabilities.

    Predictions of requests that named an operating point are excluded.
    """

    acted_as: str
    n: int
    prob: float


@dataclass(frozen=True, slots=True)
class AuditedCount:
    """Number of labelled predictions that acted on a class, and how many were right.

    Predictions of requests that named an operating point are excluded.
    """

    acted_as: str
    n: int
    right: int


@dataclass(frozen=True, slots=True)
class Event:
    """A change that may affect decisions.

    Parameters
    ----------
    id, at : id and time
    kind : kind of change, such as `point_saved`
    key : id of the API key; None if the service needs none
    subject : changed object, such as the name of a bundle's folder
    before, after : state before and after, such as the hashes of two bundles
    details : other JSON values
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
    """Number of erased rows."""

    predictions: int
    labels: int
    outcomes: int
