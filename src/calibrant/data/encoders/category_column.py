"""One-hot encoding of a category column."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from calibrant.data.encoders.category_rules import CategoryRules
from calibrant.data.encoders.reading_error import ReadingError, Remedy
from calibrant.errors import InputError
from calibrant.inputs import IntArray

_FEW = 32
"""Rows up to which it is faster to look up each text than each distinct text."""

_WITH_UNIT = re.compile(r"[-+]?[0-9][0-9.,]* ?([A-Za-zµ°²³/]{1,8})")
"""A number with a unit behind it."""

_ALMOST_ALL = 0.9
"""Share of distinct texts above which a column identifies rows and is not a category."""


@dataclass(frozen=True)
class CategoryColumn:
    """One-hot encoding of a column, with the categories of the train rows.

    Missing values get their own category if the train rows had any. Beyond `max_categories`, rarer
    categories share the feature `(other)`. Unseen categories, and missing values if the train rows
    had none, count as other; without that feature, all features are 0.

    Examples
    --------
    >>> words = pa.array(["Low Fat", "low fat", "LF", "Regular", None], pa.large_string())
    >>> rules = CategoryRules.from_renames({"LF": "Low Fat"}, column="fat")
    >>> column = CategoryColumn.learn("fat", words, rules=rules)
    >>> column.features
    ('fat=Low Fat', 'fat=Regular', 'fat=(missing)')
    >>> column.encode(pa.array([" REGULAR", "Extra"], pa.large_string()))
    array([[0., 1., 0.],
           [0., 0., 0.]], dtype=float32)
    """

    name: str
    categories: tuple[str, ...]
    missing: bool
    other: bool
    rules: CategoryRules

    @classmethod
    def learn(
        cls,
        name: str,
        words: pa.Array,
        *,
        rules: CategoryRules | None = None,
        max_categories: int = 50,
        chosen: bool = False,
    ) -> CategoryColumn:
        """Learn the categories of the train rows."""
        rules = rules or CategoryRules()
        counts, spellings = _count_categories(words, rules)
        n_present = sum(counts.values())
        if not n_present:
            raise InputError(
                f"column {name!r} has no value in any of the {len(words)} train rows: drop "
                f"it with drop=[{name!r}]."
            )
        if len(counts) > max_categories and not chosen:
            _reject_id_column(
                name, [next(iter(s)) for s in spellings.values()], len(counts) / n_present
            )
        # Most frequent first; ties in alphabetical order, independent of the row order.
        keys = sorted(sorted(counts, key=lambda key: (-counts[key], key))[:max_categories])
        return cls(
            name=name,
            categories=tuple(_preferred_spelling(spellings[key], rules) for key in keys),
            missing=n_present < len(words),
            other=len(counts) > max_categories,
            rules=rules,
        )

    @cached_property
    def features(self) -> tuple[str, ...]:
        """Names of the encoded features."""
        extra = ["(missing)"] * self.missing + ["(other)"] * self.other
        return tuple(f"{self.name}={category}" for category in (*self.categories, *extra))

    def encode(self, words: pa.Array) -> NDArray[np.float32]:
        """Return the features (n, number of categories) of rows."""
        out = np.zeros((len(words), len(self.features)), dtype=np.float32)
        codes = self.codes(words)
        known = np.flatnonzero(codes >= 0)
        out[known, codes[known]] = 1.0
        return out

    def codes(self, words: pa.Array) -> IntArray:
        """Return for each row (n,) the position of its feature, -1 for none.

        Examples
        --------
        >>> column = CategoryColumn.learn("fat", pa.array(["low", "high"], pa.large_string()))
        >>> column.codes(pa.array(["LOW", "none", "high"], pa.large_string()))
        array([ 1, -1,  0])
        """
        if len(words) <= _FEW:
            return np.array([self._code(text) for text in words.to_pylist()], dtype=np.int64)
        codes, texts = _dictionary_encode(words)
        by_text = [self._code(text) for text in (*texts, None)]
        return np.array(by_text, dtype=np.int64)[codes]  # code -1 (null) indexes the last entry

    def is_unseen(self, words: pa.Array) -> NDArray[np.bool_]:
        """Return which rows (n,) have a category that the train rows lack.

        Missing values are not unseen, nor is any category where the rare ones share a feature.
        """
        unseen = np.asarray(self.codes(words) < 0)
        for row in np.flatnonzero(unseen):
            text = words[int(row)].as_py()
            unseen[row] = text is not None and self.rules.key(text) is not None
        return unseen

    def _code(self, text: str | None) -> int:
        """Return the position of the feature of a text, -1 for none."""
        known = self._codes_of_spellings.get(text)
        return self._search(text) if known is None else known

    @cached_property
    def _codes_of_spellings(self) -> dict[str | None, int]:
        """Positions of the categories as they were learned, which most rows repeat."""
        return {text: self._search(text) for text in (*self.categories, None)}

    def _search(self, text: str | None) -> int:
        other = len(self.features) - 1 if self.other else -1
        key = None if text is None else self.rules.key(text)
        if key is None:
            return len(self.categories) if self.missing else other
        return self._codes_of_keys.get(key, other)

    @cached_property
    def _codes_of_keys(self) -> dict[str, int]:
        return {self.rules.fold(category): i for i, category in enumerate(self.categories)}

    def to_dict(self) -> dict[str, Any]:
        """Return the fitted state as JSON values."""
        return {
            "kind": "category",
            "name": self.name,
            "categories": list(self.categories),
            "missing": self.missing,
            "other": self.other,
            "rules": self.rules.to_dict(),
        }

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> CategoryColumn:
        """Rebuild from `to_dict`."""
        return cls(
            name=str(saved["name"]),
            categories=tuple(str(category) for category in saved["categories"]),
            missing=bool(saved["missing"]),
            other=bool(saved["other"]),
            rules=CategoryRules.from_dict(saved["rules"]),
        )


def _dictionary_encode(words: pa.Array) -> tuple[IntArray, list[str]]:
    """Return each row's position among the distinct texts (-1 for null), and those texts."""
    encoded = words.dictionary_encode()
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    return codes, encoded.dictionary.to_pylist()


def _count_categories(
    words: pa.Array, rules: CategoryRules
) -> tuple[dict[str, int], dict[str, dict[str, int]]]:
    """Count rows per category, and per spelling of each category."""
    codes, texts = _dictionary_encode(words)
    rows = np.bincount(codes[codes >= 0], minlength=len(texts)).tolist()
    counts: dict[str, int] = defaultdict(int)
    spellings: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for text, n in zip(texts, rows, strict=True):
        category = rules.clean(text)
        if category is not None and n:  # a dictionary may contain unused values
            counts[rules.fold(category)] += n
            spellings[rules.fold(category)][category] += n
    return counts, spellings


def _preferred_spelling(spellings: Mapping[str, int], rules: CategoryRules) -> str:
    """Choose the spelling that names a category: a rename target, else the most frequent."""
    rename_targets = set(rules.renames.values())
    return min(spellings, key=lambda text: (text not in rename_targets, -spellings[text], text))


def _reject_id_column(name: str, texts: list[str], share: float) -> None:
    as_categories = Remedy("use it as categories", "categories", (name,))
    if all(map(_is_numeral, texts)) and not is_code(texts):
        what = f"holds {len(texts):,} different numbers as text, such as {texts[0]!r}"
        raise ReadingError(name, [what], [as_categories], "convert them to numbers")
    if unit := _shared_unit(texts):
        what = f"holds {len(texts):,} different numbers with the unit {unit!r}, like {texts[0]!r}"
        raise ReadingError(name, [what], [as_categories], "write the numbers without the unit")
    if share > _ALMOST_ALL:
        raise InputError(
            f"column {name!r} has a different text in nearly every row, such as {texts[0][:40]!r}, "
            f"so it is an id or free text: drop it with drop=[{name!r}], or use a TextClassifier "
            "for free text."
        )


def is_code(texts: Sequence[str]) -> bool:
    """Return whether texts are digits of one width, some with leading zeros, as codes are.

    Examples
    --------
    >>> is_code(["08001", "80331"]), is_code(["801", "80331"]), is_code(["10", "80"])
    (True, False, False)
    """
    width = len(texts[0])
    return (
        width > 1
        and all(len(text) == width and text.isascii() and text.isdigit() for text in texts)
        and any(text.startswith("0") for text in texts)
    )


def _shared_unit(texts: Sequence[str]) -> str:
    """Return the letters behind all numbers, as in "747.9 kg", or an empty text."""
    parts = [_WITH_UNIT.fullmatch(text) for text in texts]
    units = {"" if part is None else part[1] for part in parts}
    return units.pop() if len(units) == 1 else ""


def _is_numeral(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
