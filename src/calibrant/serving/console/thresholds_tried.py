"""A target that was tried: which one it is in the row of all, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus

from calibrant.errors import InputError, TargetUnreachable
from calibrant.serving.bundle_slot import Served
from calibrant.serving.console.targets import (
    MOST_TARGETS,
    AskedTarget,
    places_of,
    share_of,
    together_after,
)
from calibrant.serving.console.thresholds_rows import AskedRows
from calibrant.serving.console.thresholds_rules import (
    Choice,
    choices_of,
    confidence_of,
    current_of,
    points_after,
    promised,
    together_of,
)
from calibrant.serving.problems import Problem
from calibrant.store import Event, Store
from calibrant.thresholds.operating_point import OperatingPoint

__all__ = ["TRIED", "Tried", "all_tried", "record_target", "tried_by_event", "why_not_saved"]

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
    event : that says who tried it, and when
    asked, choice : the target, and the threshold it is about
    place : the how manieth different target of these rows it is
    promises : how many promised thresholds the bundle would have
    confidence : of all of them together, as far as these rows allow
    result : the threshold that keeps it, or why there is none
    together, together_before : confidence of all promises together with it, and as it is now
    """

    event: Event
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


def all_tried(store: Store, rows: AskedRows) -> list[tuple[Event, int]]:
    """Return what was tried on some rows, the oldest first, each with its number."""
    found = store.events.latest(kinds=[TRIED], subject=rows.calib.hash, limit=None)[::-1]
    return list(zip(found, places_of(event.details for event in found), strict=True))


def record_target(store: Store, rows: AskedRows, asked: AskedTarget, *, key: str | None) -> Event:
    """Write down that a target is tried, before anything is known of it; return the event.

    One that was tried already keeps its event, and with it its number.

    Parameters
    ----------
    store : where events are
    rows : on which it is tried
    asked : the target
    key : id of the key of who tries it
    """
    tried = all_tried(store, rows)
    made = asked.to_dict()
    *_, place = places_of([*(event.details for event, _ in tried), made])
    for event, number in tried:
        if number == place:
            return event
    if place > MOST_TARGETS:
        raise InputError(
            f"{MOST_TARGETS:,} different targets were tried on these rows, and hardly any error is "
            "left for another one: label new rows and train or pack again."
        )
    return store.events.add(TRIED, key=key, subject=rows.calib.hash, details=made)


def tried_by_event(store: Store, served: Served, rows: AskedRows, id: str) -> Tried:
    """Return what came of a target; a problem where it is not one of these rows.

    Parameters
    ----------
    store : where events are
    served : the bundle
    rows : its calibrate rows
    id : of the event
    """
    event = store.events.get(id) if id.isascii() and id.isprintable() else None
    if event is None or event.kind != TRIED:
        raise Problem(
            HTTPStatus.NOT_FOUND,
            f"there is no target that was tried as {id[:60]!r}: type it on the Thresholds page.",
        )
    if event.subject != rows.calib.hash:
        raise Problem(HTTPStatus.CONFLICT, _OTHER_ROWS)
    asked = AskedTarget.from_dict(event.details)
    place = next(place for each, place in all_tried(store, rows) if each.id == event.id)
    return _answered(served, rows, event, asked, place)


def _answered(
    served: Served, rows: AskedRows, event: Event, asked: AskedTarget, place: int
) -> Tried:
    bundle = served.bundle
    choice = _choice_of(served, asked)
    current = current_of(bundle, choice)
    added = current is None or not current.promised
    promises = promised(bundle.points) + added
    confidence = confidence_of(bundle)
    result = rows.certified(choice, asked, confidence=confidence, share=share_of(place, promises))
    before = together_of(bundle)
    after = together_after(before, confidence, promises=promises, added=added)
    return Tried(event, asked, choice, place, promises, confidence, result, after, before)


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
