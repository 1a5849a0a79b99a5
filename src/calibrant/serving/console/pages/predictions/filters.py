"""Filters of the list of predictions: read from an address, said in words, written back."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

from calibrant.serving.console.pages.predictions.wording import DECISION_WORDS, visible
from calibrant.store import BundleRecord, Prediction
from calibrant.store.schema import LONGEST_NAME

__all__ = ["LIST", "Filters", "Part", "Typed", "read_filters"]

LIST = "/console/predictions"
"""Address of the list."""


@dataclass(frozen=True)
class Part:
    """One filter in words.

    Parameters
    ----------
    name : of the filter
    words : what it says
    value : a name that someone typed, shown apart from the words; None where there is none
    """

    name: str
    words: str
    value: str | None = None


@dataclass(frozen=True)
class Filters:
    """What is looked for; None where it may be anything.

    Parameters
    ----------
    search : id of a prediction or of a request, or a unit
    label, decision, unit, use_case : equal to these
    bundle : hash of the bundle that decided
    min_score, max_score : bounds that the score may reach
    since, until : from this moment on; before this moment
    before : id of the last prediction of the page before

    Examples
    --------
    >>> chosen = Filters(decision="act", min_score=0.9)
    >>> [part.words for part in chosen.parts()]
    ['acted on', 'with a score of at least 0.9']
    >>> chosen.address("decision"), Filters().address()
    ('/console/predictions?min_score=0.9', '/console/predictions')
    """

    search: str | None = None
    label: str | None = None
    decision: str | None = None
    min_score: float | None = None
    max_score: float | None = None
    since: datetime | None = None
    until: datetime | None = None
    unit: str | None = None
    use_case: str | None = None
    bundle: str | None = None
    before: str | None = None

    @property
    def conditions(self) -> dict[str, Any]:
        """The filters as `PredictionLog.search` takes them."""
        return {name: value for name, value in self._set().items() if name != "search"}

    def meets(self, found: Prediction) -> bool:
        """Tell whether a prediction meets all filters but `search` and `before`."""
        equal = ("label", "decision", "unit", "use_case", "bundle")
        chosen = ((getattr(self, name), getattr(found, name)) for name in equal)
        score, at = found.score, found.at
        return (
            all(wanted in (None, value) for wanted, value in chosen)
            and (self.min_score is None or score >= self.min_score)
            and (self.max_score is None or score <= self.max_score)
            and (self.since is None or at >= self.since)
            and (self.until is None or at < self.until)
        )

    def parts(self) -> list[Part]:
        """Say each filter that is set; the page is none."""
        return [_said(name, value) for name, value in self._set().items() if name != "before"]

    def address(self, *without: str, before: str | None = None) -> str:
        """Return the address of this list."""
        kept = replace(self, before=before)._set()
        query = {name: _written(value) for name, value in kept.items() if name not in without}
        return f"{LIST}?{urlencode(query)}" if query else LIST

    def _set(self) -> dict[str, Any]:
        found = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: value for name, value in found.items() if value is not None}


@dataclass(frozen=True)
class Typed:
    """What came in an address: the filters, or what is wrong with them.

    Parameters
    ----------
    filters : those that could be read
    typed : what was typed into each field
    errors : for names of fields, a sentence
    """

    filters: Filters
    typed: Mapping[str, str]
    errors: Mapping[str, str]

    def value(self, name: str) -> str:
        """Return what a field shows: what was typed or, of a moment, what its field can show."""
        found = getattr(self.filters, name)
        if isinstance(found, datetime):
            return _local(found.replace(microsecond=0))
        return str(found) if name == "bundle" and found else self.typed.get(name, "")


def read_filters(given: Mapping[str, str], bundles: Sequence[BundleRecord]) -> Typed:
    """Read filters; a field that is empty, or not there, is no filter.

    Examples
    --------
    >>> read_filters({"min_score": "7"}, []).errors
    {'min_score': 'A score is a number from 0 to 1, such as 0.85.'}
    """
    names = [each.name for each in fields(Filters)]
    typed = {name: given[name] for name in names if given.get(name)}
    values: dict[str, Any] = {}
    errors: dict[str, str] = {}
    for name, text in typed.items():
        try:
            values[name] = _read(name, text, bundles)
        except ValueError as error:
            errors[name] = str(error)
    filters = Filters(**values)
    errors |= _crossed(filters)
    return Typed(filters, typed, errors)


def _read(name: str, text: str, bundles: Sequence[BundleRecord]) -> Any:
    if name in ("min_score", "max_score"):
        return _score(text)
    if name in ("since", "until"):
        return _moment(text)
    if name == "decision":
        return _decision(text)
    text = text.strip() if name in ("search", "bundle") else text
    if len(text) > LONGEST_NAME or any(ord(c) < 32 or ord(c) == 127 for c in text):
        raise ValueError(f"At most {LONGEST_NAME} characters, and no control characters, please.")
    return _bundle(text, bundles) if name == "bundle" else text or None


def _score(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not 0 <= found <= 1:
        raise ValueError("A score is a number from 0 to 1, such as 0.85.")
    return found


def _moment(text: str) -> datetime:
    """Read a moment; one without a time zone is in UTC."""
    try:
        found = datetime.fromisoformat(text.strip())
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError("Write the date and time like 2026-01-31T12:30.") from None


def _decision(text: str) -> str:
    if text not in DECISION_WORDS:
        listed = ", ".join(DECISION_WORDS)
        raise ValueError(f"There is no such decision: choose one of {listed}.")
    return text


def _bundle(text: str, bundles: Sequence[BundleRecord]) -> str:
    """Return the hash that begins like this."""
    found = [each.hash for each in bundles if text and each.hash.startswith(text)]
    if len(found) != 1:
        why = "No version" if not found else "More than one version"
        raise ValueError(f"{why} on record begins like this: choose one of the list.")
    return found[0]


def _crossed(filters: Filters) -> dict[str, str]:
    low, high = filters.min_score, filters.max_score
    errors = {}
    if low is not None and high is not None and low > high:
        errors["min_score"] = f"The lowest score, {low:g}, is above the highest, {high:g}."
    if filters.since and filters.until and filters.since >= filters.until:
        errors["since"] = "“From” must lie before “until”."
    return errors


def _said(name: str, value: Any) -> Part:
    if isinstance(value, datetime):
        return Part(name, f"made {'from' if name == 'since' else 'before'} {_utc(value)}")
    if name == "decision":
        return Part(name, DECISION_WORDS[value])
    words = {
        "search": "with this id of a prediction, request or unit:",
        "label": "of class",
        "min_score": f"with a score of at least {value}",
        "max_score": f"with a score of at most {value}",
        "unit": "about unit",
        "use_case": "for use case",
        "bundle": "by bundle version",
    }[name]
    if isinstance(value, float):
        return Part(name, words)
    return Part(name, words, visible(value[:12] if name == "bundle" else value))


def _utc(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M{':%S' if moment.second else ''}} UTC"


def _written(value: Any) -> str:
    if isinstance(value, datetime):
        return _local(value)
    return f"{value!r}" if isinstance(value, float) else str(value)


def _local(moment: datetime) -> str:
    """Write a moment as fields of the kind `datetime-local` have it; they say that it is UTC."""
    whole = not (moment.second or moment.microsecond)
    return moment.replace(tzinfo=None).isoformat(timespec="minutes" if whole else "auto")
