"""Dates and times as people write them: ISO 8601, day or month first, month names, times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from calibrant.data.encoders.number_format import null_missing
from calibrant.inputs import IntArray

Mask = NDArray[np.bool_]
Clock = NDArray[np.timedelta64]
DateArray = NDArray[np.datetime64]
"""Dates and times in microseconds; NaT is missing, and what has no time zone counts as UTC."""

EXAMPLES = {"ymd": "2024-01-31", "dmy": "31/01/2024", "mdy": "01/31/2024", "time": "14:30"}
"""Orders of year, month and day, each with an example; "time" has none of them."""

_MINUTES = "{0}(?P<minute>[0-9]{2})(?:{0}(?P<second>[0-9]{2}(?:[.,][0-9]{1,9})?))?"
_ZONE = "(?: ?(?P<half>[AaPp][Mm]))?(?: ?(?P<zone>Z|UTC|[-+][0-9]{2}(?::?[0-9]{2})?))?"
_TIME = "(?P<hour>[0-9]{1,2})" + _MINUTES.replace("{0}", ":") + _ZONE
_AFTER_DATE = f"(?P<hour>[0-9]{{1,2}})(?:{_MINUTES.replace('{0}', ':?')})?{_ZONE}"  # also "T10"
_MARK = "[-/.]"
_SHAPES = {
    "ymd": "(?P<a>[0-9]{4})(?P<mark>{0})(?P<b>[0-9]{1,2})(?P<again>{0})(?P<c>[0-9]{1,2})",
    "dmy": "(?P<a>[0-9]{1,2})(?P<mark>{0})(?P<b>[0-9]{1,2})(?P<again>{0})(?P<c>[0-9]{4})",
}
_YEAR = r"\.?,?[-/ ]{1,2}(?P<year>[0-9]{4})"
_NAMED = (
    r"(?P<day>[0-9]{1,2})(?:st|nd|rd|th)?[-/. ]{1,2}(?P<month>[A-Za-z]{3,9})" + _YEAR,
    r"(?P<month>[A-Za-z]{3,9})\.?[- ](?P<day>[0-9]{1,2})(?:st|nd|rd|th)?" + _YEAR,
)
"""Dates with the name of a month, which are certain whatever comes first."""

_MONTHS = {
    name: 1 + i
    for i, months in enumerate(
        ("jan january", "feb february", "mar march", "apr april", "may", "jun june", "jul july",
         "aug august", "sep sept september", "oct october", "nov november", "dec december")
    )
    for name in months.split()
}  # fmt: skip
_MINUTE = 60_000_000  # microseconds
_LARGEST_SHIFT = 15 * 60 * _MINUTE  # of a time zone


@dataclass(frozen=True)
class DateTexts:
    """Texts taken apart as dates, before it is known whether the day or the month comes first."""

    dates: dict[str, DateArray]  # by order; NaT where the text is not a date of that order

    @classmethod
    def from_texts(cls, texts: pa.Array) -> DateTexts:
        """Take stripped texts apart."""
        first, middle, last, clock = _read_shape(texts, "ymd")
        dates = {"ymd": _combine(first, middle, last, clock)}
        for pattern in _NAMED:
            dates["ymd"] = _fill(dates["ymd"], _read_named(texts, pattern))
        first, middle, last, clock = _read_shape(texts, "dmy")
        dates["dmy"] = _combine(last, middle, first, clock)
        dates["mdy"] = _combine(last, first, middle, clock)
        dates["time"] = _read_clock(pc.extract_regex(texts, f"^{_TIME}$")) + np.datetime64(0, "us")
        return cls(dates)

    def fits(self, order: str) -> Mask:
        """Return which texts are dates of this order; years in front and named months fit any."""
        return ~np.isnat(self.read(order))

    def read(self, order: str) -> DateArray:
        """Return the dates, NaT for a text that is not one."""
        own = self.dates[order]
        return own if order == "time" else _fill(own, self.dates["ymd"])


@dataclass(frozen=True)
class DateFormat:
    """How the dates of a column are written as text.

    Years in front ("2024-01-31") and English names of months ("31 Jan 2024") are always read.
    """

    order: str = "ymd"  # "ymd", "dmy", "mdy", or "time" for times of the day
    missing: tuple[str, ...] = ()  # words for a missing value besides `MISSING`

    def read(self, words: pa.Array) -> tuple[DateArray, IntArray]:
        """Return the dates (n,) of texts, NaT where missing, and the rows that are not one."""
        encoded = null_missing(words, self.missing).dictionary_encode()
        dates = DateTexts.from_texts(encoded.dictionary).read(self.order)
        codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        strays = np.flatnonzero(np.append(np.isnat(dates), False)[codes])
        return np.append(dates, np.datetime64("NaT", "us"))[codes], strays

    @property
    def example(self) -> str:
        """A date in this format, for messages."""
        return EXAMPLES[self.order]

    def to_dict(self) -> dict[str, Any]:
        """Return the format as JSON values."""
        return asdict(self) | {"missing": list(self.missing)}

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> DateFormat:
        """Rebuild from `to_dict`."""
        return cls(str(saved["order"]), tuple(str(word) for word in saved["missing"]))


ISO = DateFormat()


def _read_shape(texts: pa.Array, shape: str) -> tuple[IntArray, IntArray, IntArray, Clock]:
    """Return the three numbers of a date, 0 where there is none, and the time."""
    pattern = _SHAPES[shape].replace("{0}", _MARK)
    parts = pc.extract_regex(texts, f"^{pattern}(?:(?:T|,? ){_AFTER_DATE})?$")
    alike = pc.equal(pc.struct_field(parts, "mark"), pc.struct_field(parts, "again"))
    first, middle, last = (
        np.where(_as_mask(alike), _as_integers(parts, name), 0) for name in ("a", "b", "c")
    )
    return first, middle, last, _read_clock(parts)


def _read_named(texts: pa.Array, pattern: str) -> DateArray:
    """Return the dates of texts with the name of a month, NaT for others."""
    parts = pc.extract_regex(texts, f"^{pattern}(?:(?:T|,? ){_AFTER_DATE})?$")
    names = pc.utf8_lower(_field(parts, "month"))
    place = pc.index_in(names, value_set=pa.array(list(_MONTHS), names.type))
    numbers = np.array([*_MONTHS.values(), 0])  # the last one for no month
    month = numbers[pc.fill_null(place, len(_MONTHS)).to_numpy(zero_copy_only=False)]
    year, day = _as_integers(parts, "year"), _as_integers(parts, "day")
    return _combine(year, month, day, _read_clock(parts))


def add_century(texts: pa.Array) -> pa.Array:
    """Return texts with "20" before a year of two digits, as in "31/01/24".

    Examples
    --------
    >>> add_century(pa.array(["31/01/24", "2-Dec-23", "1.2.3"])).to_pylist()
    ['31/01/2024', '2-Dec-2023', '1.2.3']
    """
    short = r"^([0-9]{1,2}(?:-[0-9]{1,2}-|/[0-9]{1,2}/|\.[0-9]{1,2}\.|[-/ ][A-Za-z]{3,9}[-/ ]))"
    return pc.replace_substring_regex(texts, short + "([0-9]{2})$", r"\1" + "20" + r"\2")


def _fill(dates: DateArray, others: DateArray) -> DateArray:
    return np.where(np.isnat(dates), others, dates)


def _read_clock(parts: pa.Array) -> Clock:
    """Return the time since midnight UTC: 0 without a time, NaT for an invalid one."""
    hour, minute = _as_integers(parts, "hour"), _as_integers(parts, "minute")
    half = pc.utf8_lower(_field(parts, "half"))
    for word, more in (("am", -12), ("pm", 12)):
        chosen = _as_mask(pc.equal(half, word))
        hour = np.where(chosen & ((hour == 12) == (more < 0)), hour + more, hour)
    seconds = pc.replace_substring(_field(parts, "second"), ",", ".")
    seconds = pc.if_else(pc.equal(seconds, ""), "0", seconds).cast(pa.float64())
    micro = np.round(seconds.to_numpy(zero_copy_only=False) * 1e6).astype(np.int64)
    shift = _zone_shift(parts)
    valid = _as_mask(parts.is_valid()) & (hour >= 0) & (hour < 24) & (minute < 60)
    valid &= (micro < _MINUTE) & (np.abs(shift) <= _LARGEST_SHIFT)
    clock = ((hour * 60 + minute) * _MINUTE + micro - shift).astype("m8[us]")
    return np.where(valid, clock, np.timedelta64("NaT", "us"))


def _zone_shift(parts: pa.Array) -> IntArray:
    """Return how far the time zone is ahead of UTC, in microseconds."""
    zone = pc.extract_regex(
        _field(parts, "zone"), "^(?P<sign>[-+])(?P<hour>[0-9]{2}):?(?P<minute>[0-9]{2})?$"
    )
    minutes = _as_integers(zone, "hour") * 60 + _as_integers(zone, "minute")
    behind = _as_mask(pc.equal(_field(zone, "sign"), "-"))
    return np.where(behind, -minutes, minutes) * _MINUTE


def _combine(year: IntArray, month: IntArray, day: IntArray, clock: Clock) -> DateArray:
    """Return dates with times, NaT where the calendar has no such day."""
    start = (12 * (year - 1970) + month - 1).astype("M8[M]")
    date = start.astype("M8[D]") + (day - 1)
    real = (year > 0) & (month >= 1) & (month <= 12) & (date.astype("M8[M]") == start)
    return np.where(real, date.astype("M8[us]") + clock, np.datetime64("NaT", "us"))


def _field(parts: pa.Array, name: str) -> pa.Array:
    return pc.fill_null(pc.struct_field(parts, name), "")


def _as_integers(parts: pa.Array, name: str) -> IntArray:
    digits = _field(parts, name)
    numbers = pc.if_else(pc.equal(digits, ""), "0", digits).cast(pa.int64())
    return np.asarray(numbers.to_numpy(zero_copy_only=False), dtype=np.int64)


def _as_mask(flags: pa.Array) -> Mask:
    return np.asarray(pc.fill_null(flags, False).to_numpy(zero_copy_only=False), dtype=bool)
