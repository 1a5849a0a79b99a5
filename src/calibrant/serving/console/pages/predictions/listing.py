"""Paginated list of predictions, newest first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from calibrant.bundle.decision_scores import DecisionScore
from calibrant.errors import InputError
from calibrant.serving.console.pages.predictions.filters import Filters
from calibrant.serving.console.pages.predictions.reasons import format_distinct
from calibrant.serving.console.pages.predictions.wording import (
    decision_words,
    make_visible,
    preview_input,
    score_words,
    truncate,
)
from calibrant.serving.stored_scores import StoredScores
from calibrant.store import Prediction, Store

PAGE_SIZE = 50  # Predictions per page

_EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
_HOUR = timedelta(hours=1)
_GAP = timedelta(days=1)
_MAX_NAME = 60  # Characters shown of user-supplied names; class names are shown in full


@dataclass(frozen=True)
class ScoreWords:
    """The decision score of a row, its threshold, and the class if it is not the predicted one."""

    score: str
    threshold: str
    of: str | None = None


@dataclass(frozen=True)
class PredictionRow:
    """A prediction in the list."""

    id: str
    at: datetime
    label: str
    prob: str  # in words
    decision: str
    score: ScoreWords | None  # None where no rule was applied
    input: str | None  # beginning of the input; None if only its hash was stored
    use_case: str | None
    labels: tuple[str, ...]  # recorded labels, newest last


@dataclass(frozen=True)
class PredictionPage:
    """A page of the list."""

    rows: tuple[PredictionRow, ...]  # newest first
    older: str | None = None  # URL of the next page; None on the last one
    gone: bool = False  # whether the prediction that the page starts after no longer exists


def find_prediction_id(store: Store, filters: Filters) -> str | None:
    """Return the id of the searched prediction, or None if the search is not one."""
    id = filters.search
    if id is None or filters.before is not None or store.predictions.get(id) is None:
        return None
    return id


def list_predictions(store: Store, filters: Filters, scores: StoredScores) -> PredictionPage:
    """Return a page of the list."""
    last = None
    if filters.before is not None:
        last = store.predictions.get(filters.before)
        if last is None:
            return PredictionPage((), gone=True)
    try:
        rows = _search(store, filters, last)
    except InputError:  # erased in the meantime
        return PredictionPage((), gone=True)
    shown = rows[:PAGE_SIZE]
    feedback = store.outcomes.of_many([each.id for each in shown])
    older = filters.url(before=shown[-1].id) if len(rows) > PAGE_SIZE else None
    rows_shown = (
        _row(each, [label.label for label in feedback[each.id][0]], score)
        for each, score in zip(shown, scores.of(shown), strict=True)
    )
    return PredictionPage(tuple(rows_shown), older)


def _search(store: Store, filters: Filters, last: Prediction | None) -> list[Prediction]:
    """Return at most one prediction more than fits on a page."""
    conditions = filters.conditions
    if filters.search is not None:
        of_request = store.predictions.of_request(filters.search)
        if of_request:
            return _filter_request(of_request, filters, last)
        if conditions.setdefault("unit", filters.search) != filters.search:
            return []  # a prediction has only one unit
    matches: list[Prediction] = []
    for since, until in _iter_windows(store, filters, last):
        query: dict[str, Any] = {**conditions, "since": since, "until": until}
        matches += store.predictions.search(**query, limit=PAGE_SIZE + 1 - len(matches))
        if len(matches) > PAGE_SIZE:
            break
    return matches


def _filter_request(
    rows: Sequence[Prediction], filters: Filters, last: Prediction | None
) -> list[Prediction]:
    """Return the rows of a request that match all filters, in list order."""
    matches = [each for each in rows if filters.matches(each)]
    matches.sort(key=lambda each: (each.at, each.id), reverse=True)
    return [each for each in matches if last is None or (each.at, each.id) < (last.at, last.id)]


def _iter_windows(
    store: Store, filters: Filters, last: Prediction | None
) -> Iterator[tuple[datetime | None, datetime | None]]:
    """Yield time ranges to search, newest first.

    Predictions are not indexed by bundle, but the tallies have the hours in which each one decided:
    hours of other bundles are skipped.
    """
    since, until = filters.since, filters.until
    if filters.bundle is None:
        yield since, until
        return
    tallies = store.tallies.hours(since or _EARLIEST, bundle=filters.bundle)
    same = {each.hour for each in tallies if filters.decision in (None, each.decision)}
    ends = [moment for moment in (until, None if last is None else last.at) if moment is not None]
    for first, after in _merge_hours(
        sorted(hour for hour in same if not ends or hour <= min(ends))
    ):
        # A whole hour may exceed the requested range.
        yield max(first, since or first), min(after, until or after)


def _merge_hours(hours: list[datetime]) -> Iterator[tuple[datetime, datetime]]:
    """Merge hours that are less than a day apart into time ranges, newest first."""
    while hours:
        after = hours[-1] + _HOUR
        first = hours.pop()
        while hours and first - hours[-1] < _GAP:
            first = hours.pop()
        yield first, after


def _row(prediction: Prediction, labels: list[str], score: DecisionScore | None) -> PredictionRow:
    return PredictionRow(
        id=prediction.id,
        at=prediction.at,
        label=make_visible(prediction.label),
        prob=score_words(prediction.score),
        decision=decision_words(prediction.decision, prediction.acted_as),
        score=None if score is None else _score_words(prediction, score),
        input=preview_input(prediction.input),
        use_case=None if prediction.use_case is None else truncate(prediction.use_case, _MAX_NAME),
        labels=tuple(truncate(label, _MAX_NAME) for label in labels),
    )


def _score_words(prediction: Prediction, shown: DecisionScore) -> ScoreWords:
    """Describe a decision score with enough digits to tell it from its threshold."""
    point = shown.rule.rule.point
    above = shown.score >= shown.threshold
    score, threshold = format_distinct(shown.score, shown.threshold, above=above)
    unit = " log-odds" if point.scale == "log-odds" else ""
    same = point.of is None or str(point.of) == prediction.label
    of = None if same else truncate(str(point.of), _MAX_NAME)
    return ScoreWords(f"{score}{unit}", f"{threshold}{unit}", of)
