"""A target that was tried: which one it is in the row of all, and what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus

from calibrant.errors import BundleError, InputError, TargetUnreachable
from calibrant.serving.bundle_slot import Served
from calibrant.serving.console.pages.thresholds.rows import AskedRows
from calibrant.serving.console.pages.thresholds.rules import (
    Choice,
    choices_of,
    confidence_of,
    current_of,
    points_after,
    promised,
    together_of,
)
from calibrant.serving.console.pages.thresholds.targets import (
    MOST_TARGETS,
    AskedTarget,
    places_of,
    share_of,
    target_key,
    together_after,
)
from calibrant.serving.console.pages.thresholds.tried_file import Try, add_tried, read_tried
from calibrant.serving.console.shell.key_names import Names
from calibrant.serving.http.problems import Problem
from calibrant.serving.service import Service
from calibrant.store import Store
from calibrant.thresholds.operating_point import OperatingPoint

__all__ = [
    "TRIED",
    "AllTried",
    "Tried",
    "all_tried",
    "record_target",
    "tried_by_id",
    "why_not_saved",
]

TRIED = "target_tried"
"""The kind of event that says that somebody tried a target on some rows."""

_OTHER_ROWS = (
    "that target was tried on other calibrate rows than the bundle has now: type it again to try "
    "it on these."
)


@dataclass(frozen=True)
class Tried:
    """A target that was tried on the rows of the bundle that serves, and what came of it.

    Parameters
    ----------
    id : of the try
    asked, choice : the target, and the threshold it is about
    place : the how manieth different target of these rows it is
    promises : how many promised thresholds the bundle would have
    confidence : of all of them together, as far as these rows allow
    result : the threshold that keeps it, or why there is none
    together, together_before : confidence of all promises together with it, and as it is now
    """

    id: str
    asked: AskedTarget
    choice: Choice
    place: int
    promises: int
    confidence: float
    result: OperatingPoint | TargetUnreachable
    together: float | None
    together_before: float | None

    @property
    def share(self) -> float:
        """Share of the allowed error that was spent on it."""
        return share_of(self.place, self.promises)


@dataclass(frozen=True)
class AllTried:
    """What was tried on some rows, as the store and the file beside the bundle know it together.

    Parameters
    ----------
    found : the oldest first, each with its number; one target may be there twice, with one number
    unshared : how many different targets only the store knows
    """

    found: Sequence[tuple[Try, int]]
    unshared: int

    @property
    def targets(self) -> int:
        """How many different targets there are."""
        return max((place for _, place in self.found), default=0)


def all_tried(service: Service, rows: AskedRows) -> AllTried:
    """Gather what was tried on some rows; `BundleError` where the file cannot be read.

    Those of the file come first: they keep their numbers, whichever store is in use.
    """
    beside = read_tried(service.settings.bundle, rows.calib.unordered_hash)
    known = {each.id for each in beside}
    own = [each for each in _of_store(service.store, rows) if each.id not in known]
    told = [*beside, *own]
    places = places_of(each.target for each in told)
    found = list(zip(told, places, strict=True))
    there = max(places[: len(beside)], default=0)
    return AllTried(found, max(places, default=0) - there)


def _of_store(store: Store, rows: AskedRows) -> list[Try]:
    """Return what the store knows, the oldest first."""
    names, calib = Names(store), rows.calib
    # Under the hash that counts the order of rows is what was written before there was another.
    found = [
        each
        for subject in (calib.hash, calib.unordered_hash)
        for each in store.events.latest(kinds=[TRIED], subject=subject, limit=None)[::-1]
    ]
    return [Try(each.id, each.at, names.of(each.key), each.details) for each in found]


def record_target(service: Service, rows: AskedRows, asked: AskedTarget, *, key: str | None) -> str:
    """Write down that a target is tried, before anything is known of it; return the id of the try.

    One that this store knows already keeps its try; one that any of both knows keeps its number.
    Beside the bundle it is written where that can be.
    """
    store, made = service.store, asked.to_dict()
    before = [each.target for each, _ in all_tried(service, rows).found]
    *_, place = places_of([*before, made])
    own = _of_store(store, rows)
    found = [each.id for each in own if target_key(each.target) == target_key(made)]
    if not found:
        if place > MOST_TARGETS:
            raise InputError(
                f"{MOST_TARGETS:,} different targets were tried on these rows, and hardly any "
                "error is left for another one: label new rows and train or pack again."
            )
        subject = rows.calib.unordered_hash
        event = store.events.add(TRIED, key=key, subject=subject, details=made)
        found, own = [event.id], _of_store(store, rows)
    with suppress(BundleError):  # the page then says how many only the store knows
        add_tried(service.settings.bundle, rows.calib.unordered_hash, own)
    return found[0]


def tried_by_id(service: Service, served: Served, rows: AskedRows, id: str) -> Tried:
    """Return what came of a target; a problem where it is not one of these rows."""
    try:
        tried = all_tried(service, rows)
    except BundleError as error:
        raise Problem(HTTPStatus.SERVICE_UNAVAILABLE, str(error)) from error
    for each, place in tried.found:
        if each.id == id:
            return _answered(served, rows, id, AskedTarget.from_dict(each.target), place)
    event = service.store.events.get(id) if id.isascii() and id.isprintable() else None
    if event is not None and event.kind == TRIED:
        raise Problem(HTTPStatus.CONFLICT, _OTHER_ROWS)
    raise Problem(
        HTTPStatus.NOT_FOUND,
        f"there is no target that was tried as {id[:60]!r}: type it on the Thresholds page.",
    )


def _answered(served: Served, rows: AskedRows, id: str, asked: AskedTarget, place: int) -> Tried:
    bundle = served.bundle
    choice = _choice_of(served, asked)
    current = current_of(bundle, choice)
    added = current is None or not current.promised
    promises = promised(bundle.points) + added
    confidence = confidence_of(bundle)
    result = rows.certified(choice, asked, confidence=confidence, share=share_of(place, promises))
    before = together_of(bundle)
    after = together_after(before, confidence, promises=promises, added=added)
    return Tried(id, asked, choice, place, promises, confidence, result, after, before)


def _choice_of(served: Served, asked: AskedTarget) -> Choice:
    for each in choices_of(served.bundle):
        if each.name == asked.of and each.clears == asked.clears:
            return each
    raise Problem(
        HTTPStatus.CONFLICT,
        "that target is about a threshold that the bundle does not have now: choose another one.",
    )


def why_not_saved(served: Served, tried: Tried) -> str | None:
    """Say why a result cannot become the bundle's threshold; None where it can."""
    if isinstance(tried.result, TargetUnreachable):
        return "there is no threshold to save"
    try:
        points_after(served.bundle, tried.choice, tried.result, "raw")
    except InputError as error:
        return str(error)
    return None
