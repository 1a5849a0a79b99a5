"""Filters of the prediction list: parsed from a query, described, and written to a URL."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

from calibrant.serving.console.pages.predictions.wording import DECISION_WORDS, make_visible
from calibrant.store import BundleRecord, Prediction
from calibrant.store.schema import LONGEST_NAME

LIST = "/console/predictions"  # URL of the list


@dataclass(frozen=True)
class FilterPhrase:
    """One filter in words."""

    name: str
    words: str
    # a user-supplied name, shown separately from the words; None if there is none
    value: str | None = None


@dataclass(frozen=True)
class Filters:
    """Filters of the list; None where anything matches."""

    search: str | None = None  # id of a prediction or of a request, or a unit
    label: str | None = None
    decision: str | None = None
    min_score: float | None = None  # inclusive bounds of the probability
    max_score: float | None = None
    since: datetime | None = None  # inclusive start
    until: datetime | None = None  # exclusive end
    unit: str | None = None
    use_case: str | None = None
    bundle: str | None = None  # hash of the bundle that decided
    before: str | None = None  # id of the last prediction on the previous page

    @property
    def conditions(self) -> dict[str, Any]:
        """The filters as keyword arguments of `PredictionLog.search`."""
        return {name: value for name, value in self._active().items() if name != "search"}

    def matches(self, prediction: Prediction) -> bool:
        """Whether a prediction matches all filters except `search` and `before`."""
        equal = ("label", "decision", "unit", "use_case", "bundle")
        pairs = ((getattr(self, name), getattr(prediction, name)) for name in equal)
        score, at = prediction.score, prediction.at
        return (
            all(wanted in (None, value) for wanted, value in pairs)
            and (self.min_score is None or score >= self.min_score)
            and (self.max_score is None or score <= self.max_score)
            and (self.since is None or at >= self.since)
            and (self.until is None or at < self.until)
        )

    def phrases(self) -> list[FilterPhrase]:
        """Describe each active filter; the page position is not one."""
        return [
            _describe_filter(name, value)
            for name, value in self._active().items()
            if name != "before"
        ]

    def url(self, *without: str, before: str | None = None) -> str:
        """Return the URL of this list, without some of its filters."""
        active = replace(self, before=before)._active()
        query = {
            name: _format_value(value) for name, value in active.items() if name not in without
        }
        return f"{LIST}?{urlencode(query)}" if query else LIST

    def _active(self) -> dict[str, Any]:
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: value for name, value in values.items() if value is not None}


@dataclass(frozen=True)
class FilterInput:
    """Filters as typed, with the errors in them."""

    filters: Filters
    typed: Mapping[str, str]  # typed text by field
    errors: Mapping[str, str]  # error message by field

    def value(self, name: str) -> str:
        """Return the text a field shows: as typed or, for a time, in the format of its field."""
        value = getattr(self.filters, name)
        if isinstance(value, datetime):
            return _format_local(value.replace(microsecond=0))
        return str(value) if name == "bundle" and value else self.typed.get(name, "")


def read_filters(query: Mapping[str, str], bundles: Sequence[BundleRecord]) -> FilterInput:
    """Parse filters; empty or missing fields are not filters."""
    names = [each.name for each in fields(Filters)]
    typed = {name: query[name] for name in names if query.get(name)}
    values: dict[str, Any] = {}
    errors: dict[str, str] = {}
    for name, text in typed.items():
        try:
            values[name] = _parse_value(name, text, bundles)
        except ValueError as error:
            errors[name] = str(error)
    filters = Filters(**values)
    errors |= _check_ranges(filters)
    return FilterInput(filters, typed, errors)


def _parse_value(name: str, text: str, bundles: Sequence[BundleRecord]) -> Any:
    if name in ("min_score", "max_score"):
        return _parse_score(text)
    if name in ("since", "until"):
        return _parse_moment(text)
    if name == "decision":
        return _check_decision(text)
    text = text.strip() if name in ("search", "bundle") else text
    if len(text) > LONGEST_NAME or any(ord(c) < 32 or ord(c) == 127 for c in text):
        raise ValueError(f"Use at most {LONGEST_NAME} characters and no control characters.")
    return _find_bundle(text, bundles) if name == "bundle" else text or None


def _parse_score(text: str) -> float:
    try:
        score = float(text)
    except ValueError:
        score = math.nan
    if not 0 <= score <= 1:
        raise ValueError("A probability is a number from 0 to 1, such as 0.85.")
    return score


def _parse_moment(text: str) -> datetime:
    """Parse a time; without a time zone it is in UTC."""
    try:
        moment = datetime.fromisoformat(text.strip())
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError("Write the date and time like 2026-01-31T12:30.") from None


def _check_decision(text: str) -> str:
    if text not in DECISION_WORDS:
        listed = ", ".join(DECISION_WORDS)
        raise ValueError(f"Unknown decision: choose one of {listed}.")
    return text


def _find_bundle(text: str, bundles: Sequence[BundleRecord]) -> str:
    """Return the only bundle hash with this prefix."""
    matches = [each.hash for each in bundles if text and each.hash.startswith(text)]
    if len(matches) != 1:
        why = "No version" if not matches else "More than one version"
        raise ValueError(f"{why} starts with this: choose one from the list.")
    return matches[0]


def _check_ranges(filters: Filters) -> dict[str, str]:
    low, high = filters.min_score, filters.max_score
    errors = {}
    if low is not None and high is not None and low > high:
        errors["min_score"] = f"The lowest probability, {low:g}, is above the highest, {high:g}."
    if filters.since and filters.until and filters.since >= filters.until:
        errors["since"] = "“From” must be before “until”."
    return errors


def _describe_filter(name: str, value: Any) -> FilterPhrase:
    if isinstance(value, datetime):
        return FilterPhrase(
            name, f"made {'from' if name == 'since' else 'before'} {_format_utc(value)}"
        )
    if name == "decision":
        return FilterPhrase(name, DECISION_WORDS[value])
    words = {
        "search": "with the prediction, request or unit id",
        "label": "of class",
        "min_score": f"with a probability of at least {value}",
        "max_score": f"with a probability of at most {value}",
        "unit": "about unit",
        "use_case": "for use case",
        "bundle": "by bundle version",
    }[name]
    if isinstance(value, float):
        return FilterPhrase(name, words)
    return FilterPhrase(name, words, make_visible(value[:12] if name == "bundle" else value))


def _format_utc(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M{':%S' if moment.second else ''}} UTC"


def _format_value(value: Any) -> str:
    if isinstance(value, datetime):
        return _format_local(value)
    return f"{value!r}" if isinstance(value, float) else str(value)


def _format_local(moment: datetime) -> str:
    """Format a time for a `datetime-local` field, which is labelled as UTC."""
    whole = not (moment.second or moment.microsecond)
    return moment.replace(tzinfo=None).isoformat(timespec="minutes" if whole else "auto")
