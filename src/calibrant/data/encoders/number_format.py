"""Numbers as people write them: decimal commas, thousands separators, currencies, percent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from calibrant.inputs import FloatArray

MISSING = (
    "", "-", "–", "—", "NA", "na", "N/A", "n/a", "#N/A", "NULL", "null", "Null", "NONE", "None",
    "none", "NaN", "nan", "NAN", "<NA>", "NaT",
)  # fmt: skip
"""Words for a missing value in columns of numbers and dates; in texts only '' is missing."""

MARKS = (".", ",")
"""Decimal marks."""

_CODES = "EUR|USD|GBP|CHF|JPY|CNY|INR|SEK|NOK|DKK|PLN|CZK|HUF|TRY|AUD|CAD|NZD|BRL|MXN|ZAR"
_UNIT = rf"\p{{Sc}}|%|{_CODES}"
_SHAPE = (
    rf"^(?P<sign>[-+]?) ?(?P<before>{_UNIT})? ?(?P<inner>[-+]?)"
    rf"(?P<body>[0-9.,](?:[0-9.,' ]*[0-9.,])?)(?P<exponent>[eE][-+]?[0-9]+)? ?(?P<after>{_UNIT})?$"
)
_SPACES = "[\u00a0\u2007\u2009\u202f]"
_FIELDS = ("sign", "before", "inner", "body", "exponent", "after")


def null_missing(words: pa.Array, more: tuple[str, ...] = ()) -> pa.Array:
    """Strip white space from texts, and replace words for a missing value by null."""
    trimmed = pc.utf8_trim_whitespace(words)
    listed = pa.array([*MISSING, *more], trimmed.type)
    return pc.if_else(pc.is_in(trimmed, value_set=listed), pa.scalar(None, trimmed.type), trimmed)


@dataclass(frozen=True)
class Numerals:
    """Texts taken apart as numbers, before it is known what their marks mean."""

    sign: pa.Array  # "-", "+" or ""
    body: pa.Array  # digits and marks; "" if the text is not a number under any convention
    exponent: pa.Array  # like "e5", or ""
    unit: pa.Array  # currency or percent sign, or ""

    @classmethod
    def from_texts(cls, texts: pa.Array) -> Numerals:
        """Take stripped texts apart."""
        plain = pc.replace_substring(pc.replace_substring(texts, "\u2212", "-"), "’", "'")
        parts = pc.extract_regex(pc.replace_substring_regex(plain, _SPACES, " "), _SHAPE)
        sign, before, inner, body, exponent, after = (
            pc.fill_null(pc.struct_field(parts, name), "") for name in _FIELDS
        )
        twice = pc.or_(
            pc.and_(pc.not_equal(sign, ""), pc.not_equal(inner, "")),
            pc.and_(pc.not_equal(before, ""), pc.not_equal(after, "")),
        )
        body = pc.if_else(twice, "", body)
        return cls(_join(sign, inner), body, exponent, _join(before, after))

    def fits(self, decimal: str) -> NDArray[np.bool_]:
        """Return which texts are numbers with this decimal mark."""
        whole, grouped = _patterns(decimal)
        fits = pc.match_substring_regex(self.body, whole)
        plain = pc.equal(self.exponent, "")
        fits = pc.or_(fits, pc.and_(plain, pc.match_substring_regex(self.body, grouped)))
        return np.asarray(fits.to_numpy(zero_copy_only=False), dtype=bool)

    def is_open(self, decimal: str) -> pa.Array:
        """Return which texts have the other mark once and this one never, as "1,234" has."""
        never = pc.invert(pc.match_substring(self.body, decimal))
        return pc.and_(never, pc.equal(pc.count_substring(self.body, other_mark(decimal)), 1))

    def filter(self, chosen: NDArray[np.bool_]) -> Numerals:
        """Return the chosen texts."""
        parts = (self.sign, self.body, self.exponent, self.unit)
        return Numerals(*(part.filter(pa.array(chosen)) for part in parts))

    def values(self, decimal: str) -> FloatArray:
        """Return the numbers; all texts must fit the decimal mark."""
        digits = pc.replace_substring_regex(self.body, f"[' {other_mark(decimal)}]", "")
        digits = digits if decimal == "." else pc.replace_substring(digits, ",", ".")
        numbers = _join(_join(self.sign, digits), self.exponent).cast(pa.float64())
        return np.asarray(numbers.to_numpy(zero_copy_only=False), dtype=np.float64)


def _join(left: pa.Array, right: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(left, right, pa.scalar("", left.type))


def other_mark(decimal: str) -> str:
    """Return the mark that is not the decimal mark."""
    return "," if decimal == "." else "."


def _patterns(decimal: str) -> tuple[str, str]:
    """Return the patterns of digits without and with thousands separators."""
    mark = f"[{decimal}]"
    groups = "|".join(rf"(?:{sign}[0-9]{{3}})+" for sign in (f"[{other_mark(decimal)}]", "'", " "))
    fraction = f"(?:{mark}[0-9]*)?"
    whole = rf"^(?:[0-9]+{fraction}|{mark}[0-9]+)$"
    return whole, rf"^[1-9][0-9]{{0,2}}(?:{groups}){fraction}$"


@dataclass(frozen=True)
class NumberFormat:
    """How the numbers of a column are written as text.

    Signs, exponents, spaces and apostrophes between thousands, and the words of `MISSING` are
    always read. A comma or point is a thousands separator if the train rows have one, or where it
    cannot be a decimal mark, as in "1.234,5" and "1.234.567".

    Texts without a currency sign are read too, but a percentage needs its sign: "12 %" is 12.

    Examples
    --------
    >>> german = NumberFormat(",", grouped=True, unit="€")
    >>> texts = pa.array(["1.234,56 €", "-0,5", "n/a", "4.05", "12 %"])
    >>> values, strays = german.read(texts)
    >>> values.tolist(), strays.tolist()
    ([1234.56, -0.5, nan, nan, nan], [3, 4])
    """

    decimal: str = "."
    grouped: bool = False  # whether the other mark separates thousands in the train rows
    unit: str = ""  # currency or percent sign of the train rows
    missing: tuple[str, ...] = ()  # words for a missing value besides `MISSING`

    def read(self, words: pa.Array) -> tuple[FloatArray, NDArray[np.int64]]:
        """Return the numbers (n,) of texts, NaN where missing, and the rows that are not one."""
        texts = null_missing(words, self.missing)
        if self.is_plain:
            plain = cast_numbers(texts)
            # A row must not depend on the others, so a text that is only NaN here is a stray.
            if plain is not None and np.isfinite(plain).sum() == len(texts) - texts.null_count:
                return plain, np.empty(0, dtype=np.int64)
        encoded = texts.dictionary_encode()
        values, fits = self._read_distinct(encoded.dictionary)
        codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        return np.append(values, np.nan)[codes], np.flatnonzero(~np.append(fits, True)[codes])

    @property
    def is_plain(self) -> bool:
        """Whether numbers are written as in Python, whatever the words for missing ones."""
        return (self.decimal, self.grouped, self.unit) == (".", False, "")

    @property
    def example(self) -> str:
        """A number in this format, for messages."""
        thousands = f"1{other_mark(self.decimal)}234" if self.grouped else "4"
        return f"{thousands}{self.decimal}05{' ' if self.unit else ''}{self.unit}"

    def to_dict(self) -> dict[str, Any]:
        """Return the format as JSON values."""
        return {
            "decimal": self.decimal,
            "grouped": self.grouped,
            "unit": self.unit,
            "missing": list(self.missing),
        }

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> NumberFormat:
        """Rebuild from `to_dict`."""
        missing = tuple(str(word) for word in saved["missing"])
        return cls(str(saved["decimal"]), bool(saved["grouped"]), str(saved["unit"]), missing)

    def _read_distinct(self, texts: pa.Array) -> tuple[FloatArray, NDArray[np.bool_]]:
        """Return the numbers of distinct texts, and which texts are numbers."""
        numerals = Numerals.from_texts(texts)
        fits = numerals.fits(self.decimal) & self._allows(numerals)
        values = np.full(len(texts), np.nan)
        if fits.any():
            values[fits] = numerals.filter(fits).values(self.decimal)
        if self.is_plain:
            lower = pc.utf8_lower(texts)
            for word, value in (("true", 1.0), ("false", 0.0)):
                same = np.asarray(pc.equal(lower, word).to_numpy(zero_copy_only=False), dtype=bool)
                values[same], fits = value, fits | same
        return values, fits & ~np.isinf(values)

    def _allows(self, numerals: Numerals) -> NDArray[np.bool_]:
        """Return which texts have a unit and thousands separators of this column."""
        units = [self.unit] if self.unit in ("", "%") else [self.unit, ""]
        allowed = pc.is_in(numerals.unit, value_set=pa.array(units, numerals.unit.type))
        if not self.grouped:
            allowed = pc.and_(allowed, pc.invert(numerals.is_open(self.decimal)))
        return np.asarray(allowed.to_numpy(zero_copy_only=False), dtype=bool)


PLAIN = NumberFormat()


def cast_numbers(texts: pa.Array) -> FloatArray | None:
    """Cast texts to numbers, or booleans to 0 and 1; None if one of them is neither."""
    for kind in (pa.float64(), pa.bool_()):
        try:
            numbers = texts.cast(kind).cast(pa.float64())
        except pa.ArrowInvalid:
            continue
        return np.asarray(numbers.to_numpy(zero_copy_only=False), dtype=np.float64)
    return None
