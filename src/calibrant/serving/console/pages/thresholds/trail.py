"""Reconstruct which announced changes took effect.

An event is written right before the folder of a bundle changes. If the service is killed in
between, no failure is recorded; later events show whether the change took effect.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta

from calibrant.serving.console.pages.thresholds.changes import FAILED, RESTORED, SAVED
from calibrant.store import Event

__all__ = ["DOUBTFUL", "UNDER_WAY", "UNDONE", "find_doubtful"]

UNDONE = "This did not happen: the service stopped before the folder was changed."
DOUBTFUL = "It is unknown whether this happened: the folder contained another version afterwards."
UNDER_WAY = "In progress."
"""Remarks in front of such an event in the trail."""

_GRACE = timedelta(seconds=30)
"""Time allowed between an event and its change; clocks of two machines may differ."""


def find_doubtful(
    events: Sequence[Event],
    *,
    current_hash: str | None,
    known_hashes: Collection[str],
    now: datetime,
) -> Mapping[str, str]:
    """Return remarks on announced changes that are not known to have happened, by event id.

    A change happened if the next one starts from its result, or the folder contains that, or it is
    known to have existed. A change that failed while the service was running has a failure event.
    """
    remarks: dict[str, str] = {}
    failures: Counter[tuple[str | None, str | None]] = Counter()
    following: Event | None = None
    for each in events:
        change = (each.before, each.after)
        if each.kind == FAILED:
            failures[change] += 1
            continue
        if each.kind not in (SAVED, RESTORED):
            continue
        if failures[change]:
            failures[change] -= 1  # that event reports it
        elif remark := _find_remark(each, following, current_hash, known_hashes, now):
            remarks[each.id] = remark
        following = each
    return remarks


def _find_remark(
    event: Event,
    following: Event | None,
    current_hash: str | None,
    known_hashes: Collection[str],
    now: datetime,
) -> str:
    # A restored version existed before, so its existence proves nothing.
    if event.kind == SAVED and event.after in {current_hash, *known_hashes}:
        return ""
    then = current_hash if following is None else following.before
    if then in (None, event.after):
        return ""
    if following is None and now - event.at < _GRACE:
        return UNDER_WAY
    return UNDONE if then == event.before else DOUBTFUL
