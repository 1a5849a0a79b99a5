"""One column of categories: cleaned, counted, one feature for each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from calibrant.data.encoders.category_rules import CategoryRules
from calibrant.errors import InputError
from calibrant.inputs import IntArray

__all__ = ["CategoryColumn"]

_ALMOST_ALL = 0.9
"""With more distinct texts than this share of the rows, a column tells rows apart, not kinds."""


@dataclass(frozen=True)
class CategoryColumn:
    """A column of categories as one-hot features, the categories being those of the train rows.

    A missing value is a category of its own where train rows had one. Beyond `max_categories` the
    rarer ones share the feature `(other)`. A category that the train rows never had, or a missing
    value where none was missing, counts as other; where nothing was pooled, all features are 0.

    Parameters
    ----------
    name : of the column
    categories : the tidy spelling of each, in the order of the features
    missing : whether missing values have a feature
    other : whether rare categories share a feature
    rules : which spellings mean the same

    Examples
    --------
    >>> words = pa.array(["Low Fat", "low fat", "LF", "Regular", None], pa.large_string())
    >>> rules = CategoryRules.of({"LF": "Low Fat"}, column="fat")
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
        """Find the categories of the train rows."""
        rules = rules or CategoryRules()
        counts, spellings = _counted(words, rules)
        here = sum(counts.values())
        if not here:
            raise InputError(
                f"column {name!r} has no value in any of the {len(words)} train rows: leave it "
                f"out with drop=[{name!r}]."
            )
        if len(counts) > max_categories and not chosen:
            _refuse_ids(name, [next(iter(s)) for s in spellings.values()], len(counts) / here)
        # Frequent ones first; among equals the alphabet decides, never the order of the rows.
        kept = sorted(sorted(counts, key=lambda key: (-counts[key], key))[:max_categories])
        return cls(
            name=name,
            categories=tuple(_usual(spellings[key], rules) for key in kept),
            missing=here < len(words),
            other=len(counts) > max_categories,
            rules=rules,
        )

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features that the column becomes."""
        extra = ["(missing)"] * self.missing + ["(other)"] * self.other
        return tuple(f"{self.name}={category}" for category in (*self.categories, *extra))

    def encode(self, words: pa.Array) -> NDArray[np.float32]:
        """Return the features (n, number of categories) of any rows."""
        place = {self.rules.fold(category): i for i, category in enumerate(self.categories)}
        other = len(self.features) - 1 if self.other else -1
        absent = len(self.categories) if self.missing else other
        codes, texts = _coded(words)
        keys = (self.rules.key(text) for text in texts)
        at = [absent if key is None else place.get(key, other) for key in keys]
        found = np.array([*at, absent], dtype=np.int64)[codes]  # code -1, a null, reads the last
        out = np.zeros((len(words), len(self.features)), dtype=np.float32)
        known = np.flatnonzero(found >= 0)
        out[known, found[known]] = 1.0
        return out

    def to_dict(self) -> dict[str, Any]:
        """Return what was learned as JSON."""
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


def _coded(words: pa.Array) -> tuple[IntArray, list[str]]:
    """Return the distinct texts, and which of them each row holds (-1 for a null)."""
    coded = words.dictionary_encode()
    codes = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    return codes, coded.dictionary.to_pylist()


def _counted(
    words: pa.Array, rules: CategoryRules
) -> tuple[dict[str, int], dict[str, dict[str, int]]]:
    """Count the rows of each category, and of each of its spellings."""
    codes, texts = _coded(words)
    rows = np.bincount(codes[codes >= 0], minlength=len(texts)).tolist()
    counts: dict[str, int] = defaultdict(int)
    spellings: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for text, n in zip(texts, rows, strict=True):
        meant = rules.read(text)
        if meant is not None and n:  # a dictionary may list texts that no row holds
            counts[rules.fold(meant)] += n
            spellings[rules.fold(meant)][meant] += n
    return counts, spellings


def _usual(spellings: Mapping[str, int], rules: CategoryRules) -> str:
    """Choose the spelling that names a category: the rules' own, else the most frequent."""
    named = set(rules.renames.values())
    return min(spellings, key=lambda text: (text not in named, -spellings[text], text))


def _refuse_ids(name: str, texts: list[str], share: float) -> None:
    if all(map(_is_numeral, texts)):
        raise InputError(
            f"column {name!r} holds {len(texts):,} different numbers as text, such as "
            f"{texts[0]!r}: turn them into numbers first, or say that they are categories with "
            f"categories=[{name!r}]."
        )
    if share > _ALMOST_ALL:
        raise InputError(
            f"column {name!r} holds another text in nearly every row, such as {texts[0][:40]!r}, so"
            f" it is an id or free text: leave it out with drop=[{name!r}], or give free text to a "
            "TextClassifier."
        )


def _is_numeral(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
