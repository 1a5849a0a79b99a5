"""Features of a column of dates and times."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.data.encoders.date_format import ISO, DateArray, DateFormat
from calibrant.data.encoders.number_column import NumberColumn
from calibrant.errors import InputError
from calibrant.inputs import FloatArray

_DAY = np.timedelta64(1, "D") / np.timedelta64(1, "us")
_YEAR = 365.0


def _days(dates: DateArray) -> FloatArray:
    """Return days since 1970-01-01 with their fraction, NaN where missing."""
    days = dates.astype(np.int64) / _DAY
    return np.where(np.isnat(dates), np.nan, days)


def _weekdays(days: FloatArray) -> FloatArray:
    return (np.floor(days) + 3.0) % 7.0  # 0 is Monday


def _months(days: FloatArray) -> FloatArray:
    whole = np.floor(np.where(np.isnan(days), 0.0, days)).astype(np.int64)
    month = whole.astype("M8[D]").astype("M8[M]").astype(np.int64) % 12
    return np.where(np.isnan(days), np.nan, month.astype(np.float64))  # 0 is January


def _hours(days: FloatArray) -> FloatArray:
    return (days - np.floor(days)) * 24.0


_PARTS: dict[str, tuple[Callable[[FloatArray], FloatArray], float]] = {
    "weekday": (_weekdays, 7.0),
    "month": (_months, 12.0),
    "hour": (_hours, 24.0),
}
"""Parts of a date that repeat, each with its period."""


@dataclass(frozen=True)
class DateColumn:
    r"""A column of dates: standardised days, and the parts that repeat as points of a circle.

    $$ \left(z,\; \sin \frac{2 \pi p}{T},\; \cos \frac{2 \pi p}{T}\right) $$

    z are the days since 1970-01-01, standardised with the train rows (see `NumberColumn`), p is a
    part with the period T: the weekday (7, from Monday), the month (12) or the hour (24), each from
    0. A part is used if it varies in the train rows, the month only if they span a year: otherwise
    a network would meet months that it never saw. All features of a missing date are 0.

    Dates before or after those of the train rows count as the first or the last of them, since time
    goes on and a network cannot extrapolate a trend; so no date is far.
    """

    days: NumberColumn
    first: float  # of the train rows, in days
    last: float
    parts: tuple[str, ...]
    format: DateFormat = ISO

    @classmethod
    def learn(cls, name: str, dates: DateArray, format: DateFormat | None = None) -> DateColumn:
        """Learn the range of the train rows and the parts that vary in it."""
        values = _days(dates)
        days = replace(NumberColumn.learn(name, values), least=None, most=None)
        present = values[~np.isnan(values)]
        first, last = float(present.min()), float(present.max())
        parts = tuple(
            part
            for part, (take, _) in _PARTS.items()
            if len(np.unique(take(present))) > 1 and (part != "month" or last - first >= _YEAR)
        )
        return cls(days, first, last, parts, format or ISO)

    @property
    def name(self) -> str:
        """Name of the column."""
        return self.days.name

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the encoded features."""
        waves = [f"{self.name} {part} {wave}" for part in self.parts for wave in ("sin", "cos")]
        return (*self.days.features, *waves)

    @property
    def numbers(self) -> tuple[str, ...]:
        """Names of the numbers of `read_numbers`."""
        return (self.name, *(f"{self.name} {part}" for part in self.parts))

    def read_numbers(self, dates: DateArray) -> FloatArray:
        """Return days since 1970-01-01 and the parts (n, 1 + parts), NaN where missing."""
        days = _days(dates)
        return np.column_stack([days, *(_PARTS[part][0](days) for part in self.parts)])

    def encode(self, dates: DateArray) -> NDArray[np.float32]:
        """Return the features (n, d) of rows."""
        days = _days(dates)
        out = [self.days.encode(np.clip(days, self.first, self.last))]
        for part in self.parts:
            take, period = _PARTS[part]
            angle = 2.0 * np.pi * take(days) / period
            circle = np.column_stack([np.sin(angle), np.cos(angle)])
            out.append(np.where(np.isnan(circle), 0.0, circle).astype(np.float32))
        return np.concatenate(out, axis=1)

    def to_dict(self) -> dict[str, Any]:
        """Return the fitted state as JSON values."""
        return {
            "kind": "date",
            "days": self.days.to_dict(),
            "first": self.first,
            "last": self.last,
            "parts": list(self.parts),
            "format": self.format.to_dict(),
        }

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> DateColumn:
        """Rebuild from `to_dict`."""
        unknown = [part for part in saved["parts"] if part not in _PARTS]
        if unknown:
            raise InputError(f"{unknown[0]!r} is not a part of a date: upgrade calibrant.")
        return cls(
            NumberColumn.from_dict(saved["days"]),
            float(saved["first"]),
            float(saved["last"]),
            tuple(saved["parts"]),
            DateFormat.from_dict(saved["format"]),
        )
