"""The list of predictions: newest first, a page at a time, however many there are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from calibrant.errors import InputError
from calibrant.serving.console.pages.predictions.filters import Filters
from calibrant.serving.console.pages.predictions.wording import (
    beginning,
    cut,
    decision_words,
    score_words,
    visible,
)
from calibrant.store import Prediction, Store

__all__ = ["PAGE", "Listed", "ListedRow", "found_by", "list_predictions"]

PAGE = 50
"""Predictions on a page."""

_EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
_HOUR = timedelta(hours=1)
_GAP = timedelta(days=1)
_NAME = 60
"""Characters of a name that someone made up; classes are shown in full."""


@dataclass(frozen=True)
class ListedRow:
    """A prediction in the list.

    Parameters
    ----------
    id, at, label, use_case : of the prediction
    score, decision : in words
    input : how the input begins; None where only its hash was kept
    labels : the true classes that were told, the newest last
    """

    id: str
    at: datetime
    label: str
    score: str
    decision: str
    input: str | None
    use_case: str | None
    labels: tuple[str, ...]


@dataclass(frozen=True)
class Listed:
    """A page of the list.

    Parameters
    ----------
    rows : newest first
    older : address of the next page; None where there is none
    gone : whether the prediction that the page should begin after is not there any more
    """

    rows: tuple[ListedRow, ...]
    older: str | None = None
    gone: bool = False


def found_by(store: Store, filters: Filters) -> str | None:
    """Return the id of the prediction that was searched for; None where it is none."""
    asked = filters.search
    if asked is None or filters.before is not None or store.predictions.get(asked) is None:
        return None
    return asked


def list_predictions(store: Store, filters: Filters) -> Listed:
    """Return a page of the list."""
    last = None
    if filters.before is not None:
        last = store.predictions.get(filters.before)
        if last is None:
            return Listed((), gone=True)
    try:
        rows = _search(store, filters, last)
    except InputError:  # erased in this very moment
        return Listed((), gone=True)
    shown = rows[:PAGE]
    told = store.outcomes.of_many([each.id for each in shown])
    older = filters.address(before=shown[-1].id) if len(rows) > PAGE else None
    return Listed(
        tuple(_row(each, [label.label for label in told[each.id][0]]) for each in shown), older
    )


def _search(store: Store, filters: Filters, last: Prediction | None) -> list[Prediction]:
    """Return up to one prediction more than a page has."""
    conditions = filters.conditions
    if filters.search is not None:
        of_request = store.predictions.of_request(filters.search)
        if of_request:
            return _of_request(of_request, filters, last)
        if conditions.setdefault("unit", filters.search) != filters.search:
            return []  # no prediction is about two units
    found: list[Prediction] = []
    for since, until in _windows(store, filters, last):
        asked: dict[str, Any] = {**conditions, "since": since, "until": until}
        found += store.predictions.search(**asked, limit=PAGE + 1 - len(found))
        if len(found) > PAGE:
            break
    return found


def _of_request(
    rows: Sequence[Prediction], filters: Filters, last: Prediction | None
) -> list[Prediction]:
    """Return the rows of a request that meet all filters, in the order of every list."""
    met = [each for each in rows if filters.meets(each)]
    met.sort(key=lambda each: (each.at, each.id), reverse=True)
    return [each for each in met if last is None or (each.at, each.id) < (last.at, last.id)]


def _windows(
    store: Store, filters: Filters, last: Prediction | None
) -> Iterator[tuple[datetime | None, datetime | None]]:
    """Return times in which to look, newest first.

    No index knows the bundle of a prediction, but the tallies know the hours in which it decided:
    hours of other bundles are passed over.
    """
    since, until = filters.since, filters.until
    if filters.bundle is None:
        yield since, until
        return
    tallies = store.tallies.hours(since or _EARLIEST, bundle=filters.bundle)
    same = {each.hour for each in tallies if filters.decision in (None, each.decision)}
    ends = [moment for moment in (until, None if last is None else last.at) if moment is not None]
    for first, after in _runs(sorted(hour for hour in same if not ends or hour <= min(ends))):
        # A whole hour holds more than was asked for.
        yield max(first, since or first), min(after, until or after)


def _runs(hours: list[datetime]) -> Iterator[tuple[datetime, datetime]]:
    """Put hours together that are less than a day apart; return times, newest first."""
    while hours:
        after = hours[-1] + _HOUR
        first = hours.pop()
        while hours and first - hours[-1] < _GAP:
            first = hours.pop()
        yield first, after


def _row(found: Prediction, labels: list[str]) -> ListedRow:
    return ListedRow(
        id=found.id,
        at=found.at,
        label=visible(found.label),
        score=score_words(found.score),
        decision=decision_words(found.decision, found.acted_as),
        input=beginning(found.input),
        use_case=None if found.use_case is None else cut(found.use_case, _NAME),
        labels=tuple(cut(label, _NAME) for label in labels),
    )
