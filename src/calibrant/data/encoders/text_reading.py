"""Which columns of text are numbers or dates, and how these are written: certain, or an error."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from calibrant.data.encoders.date_format import (
    EXAMPLES,
    DateArray,
    DateFormat,
    DateTexts,
    Mask,
    add_century,
)
from calibrant.data.encoders.number_format import (
    MARKS,
    PLAIN,
    NumberFormat,
    Numerals,
    cast_numbers,
    null_missing,
    other_mark,
)
from calibrant.data.encoders.reading_error import ReadingError, Remedy, Spot
from calibrant.data.encoders.table_columns import Column, Format, Table, is_date, is_number, is_text
from calibrant.errors import InputError
from calibrant.inputs import FloatArray, IntArray

_SAMPLE = 256
"""Distinct texts that are looked at first, so that free text is not searched for numbers."""

_MANY = 20
"""Different numbers beyond which a column with other words in it is hardly one of categories."""

_MOST = 0.9
"""Share of rows beyond which the others are strays."""

_WORDS = 3
"""Stray words that a message quotes."""


@dataclass(frozen=True)
class ReadingOptions:
    """What the user says about texts that are numbers or dates."""

    decimal: str | None = None  # the decimal mark, where the values of a column leave it open
    missing: tuple[str, ...] = ()  # words for a missing value besides the usual ones
    dates: str | None = None  # "dmy" or "mdy", where the values of a column leave it open

    @classmethod
    def check(cls, decimal: Any, missing: Any, dates: Any) -> ReadingOptions:
        """Return valid options; raise `InputError` for others."""
        if decimal is not None and decimal not in MARKS:
            raise InputError(f"decimal must be '.' or ',', got {decimal!r}.")
        if dates is not None and dates not in ("dmy", "mdy"):
            raise InputError(
                f"dates must be 'dmy' (day first) or 'mdy' (month first), got {dates!r}."
            )
        listed = not isinstance(missing, str | Mapping) and isinstance(missing, Collection)
        if not listed or not all(isinstance(word, str) and word.strip() for word in missing):
            raise InputError(f"missing must be a list of words such as ['oops'], got {missing!r}.")
        return cls(decimal, tuple(dict.fromkeys(word.strip() for word in missing)), dates)


@dataclass(frozen=True)
class TextColumn:
    """A column of texts by its distinct values, without those that are missing."""

    name: str
    texts: pa.Array  # distinct values without outer spaces, "" where missing
    present: Mask  # which of them are not missing
    counts: IntArray  # rows of each value, 0 where missing
    codes: IntArray  # (n,) value of each row, -1 for none
    declared: bool  # whether the user's own words for a missing value occur

    @classmethod
    def from_words(cls, name: str, words: pa.Array, missing: tuple[str, ...]) -> TextColumn:
        """Count the values of a column."""
        encoded = words.dictionary_encode()
        codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        texts = null_missing(encoded.dictionary)
        rest = null_missing(texts, missing)
        present = _as_mask(rest.is_valid())
        counts = np.bincount(codes[codes >= 0], minlength=len(texts)) * present
        declared = rest.null_count > texts.null_count
        return cls(name, pc.fill_null(rest, ""), present & (counts > 0), counts, codes, declared)

    @property
    def n(self) -> int:
        """Number of rows that have a value."""
        return int(self.counts.sum())

    def n_rows(self, values: Mask) -> int:
        """Return the number of rows with one of these values."""
        return int(self.counts[values].sum())

    def spots(self, values: Mask, most: int = _WORDS) -> list[Spot]:
        """Return where the first of these values are."""
        chosen = np.flatnonzero(values & self.present)[:most]
        places = [np.flatnonzero(self.codes == i) for i in chosen]
        return [
            Spot(self.texts[int(i)].as_py(), tuple(rows[:5].tolist()), len(rows))
            for i, rows in zip(chosen, places, strict=True)
        ]

    @cached_property
    def sample(self) -> pa.Array:
        """A few of the values, evenly spread."""
        places = np.flatnonzero(self.present)
        chosen = np.unique(np.linspace(0, len(places) - 1, _SAMPLE).astype(np.int64))
        return self.texts.take(pa.array(places[chosen]))


@dataclass(frozen=True)
class Learned:
    """A format, and whether the values tell the decimal mark."""

    format: Format
    decided: bool = True


def learn_format(name: str, words: pa.Array, options: ReadingOptions) -> Learned | None:
    """Learn how the numbers or dates of a text column are written; None if it is neither.

    Raises `ReadingError` if it is not certain what the column is, or how it is read.
    """
    column = TextColumn.from_words(name, words, options.missing)
    if not column.n:
        return None
    sample = Numerals.from_texts(column.sample)
    if (sample.fits(".") | sample.fits(",")).mean() > 0.25:
        numbers = _learn_numbers(column, options)
        if numbers is not None:
            return numbers
    dates = DateTexts.from_texts(column.sample)
    if np.any([dates.fits(order) for order in EXAMPLES], axis=0).mean() > 0.25:
        return _learn_dates(column, options)
    _reject_short_years(column)
    return None


def _learn_numbers(column: TextColumn, options: ReadingOptions) -> Learned | None:
    numerals = Numerals.from_texts(column.texts)
    by_mark = {mark: numerals.fits(mark) & column.present for mark in MARKS}
    some = by_mark["."] | by_mark[","]
    if not some.any() or not _is_mostly(column, some, few=_has_mark(numerals, some)):
        return None
    decimal = _choose_decimal(column, numerals, by_mark, options)
    fits = by_mark[decimal]
    _reject_strays(column, fits, f"numbers{_written(decimal, options)}")
    if _is_plain_text(column, numerals, options):
        return None
    _reject_huge(column, numerals, fits, decimal)
    other = pc.match_substring(numerals.body, other_mark(decimal))
    grouped = bool((_as_mask(other) & fits).any())
    unit = _choose_unit(column, numerals, fits)
    decided = bool((by_mark["."] != by_mark[","]).any()) or grouped
    return Learned(NumberFormat(decimal, grouped, unit, options.missing), decided)


def _is_mostly(column: TextColumn, fits: Mask, *, few: bool) -> bool:
    """Return whether a column is one of numbers or dates, though other words may be in it."""
    share, distinct = column.n_rows(fits) / column.n, int(fits.sum())
    return share == 1 or (share >= 0.5 and distinct > _MANY) or (few and share >= _MOST)


def _has_mark(numerals: Numerals, fits: Mask) -> bool:
    """Return whether some numbers have a decimal mark, a thousands separator or a unit."""
    marked = pc.or_(
        pc.match_substring_regex(numerals.body, "[^0-9]"), pc.not_equal(numerals.unit, "")
    )
    return bool((_as_mask(marked) & fits).any())


def _choose_decimal(
    column: TextColumn, numerals: Numerals, by_mark: Mapping[str, Mask], options: ReadingOptions
) -> str:
    """Return the decimal mark that the values of the column, or the options, decide."""
    only = {mark: by_mark[mark] & ~by_mark[other_mark(mark)] for mark in MARKS}
    mark = options.decimal
    if mark is not None:
        against = column.n_rows(only[other_mark(mark)])
        n = column.n_rows(by_mark["."] | by_mark[","])
        certain = not only[mark].any() and against > (1 - _MOST) * n
        return other_mark(mark) if certain else mark
    if only["."].any() and only[","].any():
        points, commas = (column.spots(only[each], 1)[0] for each in MARKS)
        raise ReadingError(
            column.name,
            ["has both decimal marks,", points, "and", commas],
            [Remedy("leave it out", "drop", (column.name,))],
            "write all of its numbers alike",
        )
    if only[","].any():
        return ","
    commas_open = _as_mask(pc.match_substring(numerals.body, ","))
    open_ = by_mark["."] & commas_open & ~only["."]
    if not only["."].any() and open_.any():
        raise_open_decimal(column.name, column.spots(open_, 1)[0])
    return "."


def raise_open_decimal(name: str, spot: Spot, beside: str = "") -> None:
    """Raise `ReadingError` about numbers whose mark may separate decimals or thousands."""
    mark = "comma" if "," in spot.value else "point"
    numerals = Numerals.from_texts(pa.array([spot.value]))
    what = f"and nothing tells whether the {mark} separates decimals or thousands"
    raise ReadingError(
        name,
        ["holds numbers like", spot, beside, what],
        [
            Remedy(f"read it as {numerals.values(decimal)[0]:.15g}", "decimal", (decimal,))
            for decimal in (",", ".")
        ],
    )


def _written(decimal: str, options: ReadingOptions) -> str:
    mark = "comma" if decimal == "," else "point"
    return "" if options.decimal is None else f" with a decimal {mark}"


def _reject_strays(column: TextColumn, fits: Mask, what: str) -> None:
    """Raise `ReadingError` for words in a column of numbers or dates."""
    strays = column.present & ~fits
    n = column.n_rows(strays)
    if not n:
        return
    spots, distinct = column.spots(strays), int(strays.sum())
    more = f"and {distinct - len(spots):,} other words" if distinct > len(spots) else ""
    words = tuple(spot.value for spot in spots)
    it = "it" if len(words) == 1 else "them"
    fixes = [] if more else [Remedy(f"read {it} as missing", "missing", words)]
    fixes.append(Remedy("use it as categories", "categories", (column.name,)))
    raise ReadingError(
        column.name,
        [f"holds {what} in {column.n - n:,} of {column.n:,} rows, but", *_joined(spots), more],
        fixes,
        "correct those cells",
    )


def _reject_huge(column: TextColumn, numerals: Numerals, fits: Mask, decimal: str) -> None:
    huge = fits.copy()
    huge[fits] = np.isinf(numerals.filter(fits).values(decimal))
    if huge.any():
        raise ReadingError(
            column.name,
            ["holds", *column.spots(huge, 1), "which is too large for a number"],
            [],
            "correct that cell, or leave it empty",
        )


def _joined(spots: list[Spot]) -> list[str | Spot]:
    parts: list[str | Spot] = []
    for spot in spots:
        parts += ["and", spot] if parts else [spot]
    return parts


def _is_plain_text(column: TextColumn, numerals: Numerals, options: ReadingOptions) -> bool:
    """Return whether texts are numbers as in Python: so typed, they are codes or categories.

    Many different fractions are not: they are numbers that a program wrote as text.
    """
    many = int(column.present.sum()) > _MANY
    if column.declared or ((many or options.decimal) and _has_mark(numerals, column.present)):
        return False
    return cast_numbers(column.texts.filter(pa.array(column.present))) is not None


def _choose_unit(column: TextColumn, numerals: Numerals, fits: Mask) -> str:
    """Return the unit that all numbers have in common."""
    units = numerals.unit.to_pylist()
    first = {units[i]: i for i in np.flatnonzero(fits)[::-1]}
    named = [unit for unit in first if unit]
    if len(named) > 1 or (len(first) > 1 and "%" in first):
        masks = [np.arange(len(units)) == i for i in sorted(first.values())[:2]]
        one, other = (column.spots(mask, 1)[0] for mask in masks)
        raise ReadingError(
            column.name,
            ["holds numbers in different units,", one, "and", other],
            [Remedy("leave it out", "drop", (column.name,))],
            "convert them to one unit",
        )
    return named[0] if named else ""


def _learn_dates(column: TextColumn, options: ReadingOptions) -> Learned | None:
    dates = DateTexts.from_texts(column.texts)
    by_order = {order: dates.fits(order) & column.present for order in EXAMPLES}
    some = np.any(list(by_order.values()), axis=0)
    if not some.any() or not _is_mostly(column, some, few=True):
        return None
    order = _choose_order(column, by_order, options)
    _reject_strays(column, by_order[order], f"dates like {EXAMPLES[order]!r}")
    return Learned(DateFormat(order, options.missing))


def _reject_short_years(column: TextColumn) -> None:
    """Raise `ReadingError` for dates whose year has two digits: the century is not certain."""
    if int(column.present.sum()) <= _MANY:
        return
    dates = DateTexts.from_texts(add_century(column.texts))
    if any(bool(dates.fits(order)[column.present].all()) for order in ("dmy", "mdy")):
        raise ReadingError(
            column.name,
            ["holds dates like", column.spots(column.present, 1)[0], "whose year has two digits"],
            [Remedy("use it as categories", "categories", (column.name,))],
            "write years with four digits",
        )


def _choose_order(column: TextColumn, by_order: Mapping[str, Mask], options: ReadingOptions) -> str:
    """Return the order of day, month and year that the values, or the options, decide."""
    if by_order["time"].any() and column.n_rows(by_order["time"]) * 2 > column.n:
        return "time"
    only = {
        order: by_order[order] & ~by_order[other]
        for order, other in (("dmy", "mdy"), ("mdy", "dmy"))
    }
    if only["dmy"].any() and only["mdy"].any():
        day, month = (column.spots(only[order], 1)[0] for order in ("dmy", "mdy"))
        raise ReadingError(
            column.name,
            ["has both orders of dates,", day, "with the day first and", month, "with the month"],
            [Remedy("leave it out", "drop", (column.name,))],
            "write all of its dates alike",
        )
    decided = next((order for order in only if only[order].any()), None)
    order = options.dates
    if order is not None and (
        decided is None or column.n_rows(only[decided]) <= (1 - _MOST) * column.n
    ):
        decided = order
    last = by_order["dmy"] & ~by_order["ymd"]
    if decided is None and last.any():
        what = "and no value tells whether the day or the month comes first"
        raise ReadingError(
            column.name,
            ["holds dates like", column.spots(last, 1)[0], what],
            [
                Remedy("read the day first", "dates", ("dmy",)),
                Remedy("read the month first", "dates", ("mdy",)),
            ],
        )
    return decided if decided is not None and (last | only[decided]).any() else "ymd"


def read_texts(table: Table, options: ReadingOptions, *, keep: Collection[str] = ()) -> Table:
    """Return a table with texts that are numbers or dates as such; not the columns in `keep`."""
    pairs = list(zip(table.names, table.columns, strict=True))
    learned: dict[str, Learned] = {}
    errors: list[ReadingError] = []
    for name, column in pairs:
        if is_text(column) and name not in keep:
            try:
                format = learn_format(name, column, options)
            except ReadingError as error:
                errors.append(error)
                continue
            if format is not None:
                learned[name] = format
    if errors:
        raise errors[0].with_others([error.column for error in errors[1:]])
    columns = tuple(
        learned[name].format.read(column)[0] if name in learned else column
        for name, column in pairs
    )
    formats = _settle_formats(table, learned, options)
    return replace(table, columns=columns, formats=formats)


def _settle_formats(
    table: Table, learned: Mapping[str, Learned], options: ReadingOptions
) -> dict[str, Format]:
    """Return the formats of all columns, also for texts that come later where numbers were.

    Whole numbers do not tell the decimal mark; where the other columns have decimal commas, "1.234"
    must not become 1.234.
    """
    marks = {
        each.format.decimal
        for each in learned.values()
        if isinstance(each.format, NumberFormat) and each.decided
    }
    commas = options.decimal == "," or (options.decimal is None and marks == {","})
    formats: dict[str, Format] = {}
    for name, column in zip(table.names, table.columns, strict=True):
        if name in learned:
            format = learned[name].format
            if commas and isinstance(format, NumberFormat) and not learned[name].decided:
                format = replace(format, decimal=",")
            formats[name] = format
        elif column is not None and is_number(column):
            whole = commas and _is_whole(column)
            formats[name] = NumberFormat("," if whole else ".", missing=options.missing)
        elif column is not None and is_date(column):
            formats[name] = DateFormat("time" if _is_time(column) else "ymd", options.missing)
    return {name: format for name, format in formats.items() if format != PLAIN}


def _is_time(dates: DateArray) -> bool:
    """Return whether dates are times of the day, which are those of the first day of 1970."""
    present = dates[~np.isnat(dates)]
    return len(present) > 0 and bool((present.astype("M8[D]") == np.datetime64(0, "D")).all())


def _is_whole(values: FloatArray) -> bool:
    present = values[~np.isnan(values)]
    return bool((present == np.floor(present)).all())


def read_as(name: str, column: Column, format: Format) -> Column:
    """Return a column as the numbers or dates that it was in the train rows."""
    number = isinstance(format, NumberFormat)
    was, kind = ("numeric", "number") if number else ("dates", "date")
    if is_text(column):
        values, strays = format.read(column)
        if not len(strays):
            return values
        value = column[int(strays[0])].as_py()
        same = [int(row) for row in strays if column[int(row)].as_py() == value]
        spot = Spot(value, tuple(same[:5]), len(same))
        like = f"which is not a {kind} like {format.example!r}"
        raise ReadingError(
            name,
            [f"was {was} in fit, but contains the text", spot, like],
            [],
            "correct that cell, or leave it empty",
        )
    if is_number(column) == number:
        return column
    if np.asarray(column != column).all():  # nothing but NaN or NaT
        return np.full(len(column), np.nan if number else np.datetime64("NaT", "us"))
    holds = "dates" if number else "numbers"
    raise InputError(f"column {name!r} was {was} in fit, but contains {holds}: convert them.")


def check_points(name: str, words: pa.Array, formats: Mapping[str, Format]) -> None:
    """Raise `ReadingError` if the points of a column of numbers may separate thousands.

    They may where every point has three digits behind it, and either other columns have decimal
    commas, or some numbers have no point: fractions would be written with fewer digits now and
    then, as 689.5 is, or with a fixed number, as 689.000 is. `words` are the cells of the column.
    """
    column = TextColumn.from_words(name, words, ())
    numerals = Numerals.from_texts(column.texts)
    pointed = _as_mask(pc.match_substring(numerals.body, ".")) & column.present
    if not pointed.any() or not numerals.fits(",")[pointed].all():
        return
    marks = ((key, each) for key, each in formats.items() if isinstance(each, NumberFormat))
    other = next((key for key, each in marks if each.decimal == "," and key != name), None)
    bare = numerals.fits(".") & column.present & ~pointed
    if other is not None or bare.any():
        beside = f"beside decimal commas in column {other!r}"
        if other is None:
            beside = f"beside {column.spots(bare, 1)[0].value!r}"
        raise_open_decimal(name, column.spots(pointed, 1)[0], beside)


def _as_mask(flags: pa.Array) -> Mask:
    return np.asarray(flags.to_numpy(zero_copy_only=False), dtype=bool)
