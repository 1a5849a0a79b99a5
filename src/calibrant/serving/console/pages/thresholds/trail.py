"""Which of the changes that were announced came about, as far as that can be told afterwards.

An event is written right before the folder of a bundle changes. Where the service is killed in
between, nobody is left to write that the change failed; what came after it tells.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta

from calibrant.serving.console.pages.thresholds.changes import FAILED, RESTORED, SAVED
from calibrant.store import Event

__all__ = ["DOUBTFUL", "UNDER_WAY", "UNDONE", "fates"]

UNDONE = "This did not happen: the service ended before the folder was changed."
DOUBTFUL = "Whether this happened is not known: afterwards the folder held another version."
UNDER_WAY = "Under way."
"""What the trail says before the words of such an event."""

_GRACE = timedelta(seconds=30)
"""For a change between its event and the folder; the clocks of two machines may differ."""


def fates(
    events: Sequence[Event], *, holds: str | None, was_there: Collection[str], now: datetime
) -> Mapping[str, str]:
    """Say of which announced changes it is not certain that they happened; by ids of events.

    A change happened where the next one begins with what it made, or the folder holds that, or it
    is known to have been there. One that failed while the service went on has its own event.
    """
    found: dict[str, str] = {}
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
            failures[change] -= 1  # that event tells it
        elif told := _fate(each, following, holds, was_there, now):
            found[each.id] = told
        following = each
    return found


def _fate(
    event: Event,
    following: Event | None,
    holds: str | None,
    was_there: Collection[str],
    now: datetime,
) -> str:
    # Going back leads to a version that was kept before, so that one being there says nothing.
    if event.kind == SAVED and event.after in {holds, *was_there}:
        return ""
    then = holds if following is None else following.before
    if then in (None, event.after):
        return ""
    if following is None and now - event.at < _GRACE:
        return UNDER_WAY
    return UNDONE if then == event.before else DOUBTFUL
