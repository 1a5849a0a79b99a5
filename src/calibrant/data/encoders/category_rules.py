"""Clean-up rules that merge spellings of a category."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from calibrant.errors import InputError


def normalise_spelling(text: str) -> str:
    """Normalise a text to Unicode form NFKC with collapsed, stripped white space.

    Examples
    --------
    >>> normalise_spelling("  Low   Fat ")
    'Low Fat'
    """
    return " ".join(unicodedata.normalize("NFKC", text).split())


@dataclass(frozen=True)
class CategoryRules:
    """Rules that merge the spellings of one column into categories.

    Surrounding and repeated spaces, compatibility forms of letters (NFKC) and, with `fold_case`,
    letter case are ignored. Then the user's `renames` apply; None marks a missing value, as an
    empty text does. Nothing is learned, and similar spellings are not merged by guessing.

    Examples
    --------
    >>> renames = {"LF": "Low Fat", "reg": "Regular", "?": None}
    >>> rules = CategoryRules.from_renames(renames, column="fat")
    >>> [rules.clean(text) for text in ("low fat", " lf", "Reg", "?", "")]
    ['low fat', 'Low Fat', 'Regular', None, None]
    >>> [rules.key(text) for text in ("low fat", " lf", "Reg")]
    ['low fat', 'low fat', 'regular']
    """

    renames: Mapping[str, str | None] = field(default_factory=dict)
    fold_case: bool = True

    @classmethod
    def from_renames(cls, renames: Any, *, column: str, fold_case: bool = True) -> CategoryRules:
        """Build rules from the user's renames of a column."""
        if not isinstance(renames, Mapping):
            raise InputError(
                f"clean of column {column!r} must be a dict of spellings such as "
                f"{{'LF': 'Low Fat'}}, got {renames!r}."
            )
        rules = cls(fold_case=fold_case)
        targets: dict[str, str | None] = {}
        for spelling, replacement in renames.items():
            if not isinstance(spelling, str) or not isinstance(replacement, str | None):
                raise InputError(
                    f"clean of column {column!r} must map text to text or to None, got "
                    f"{spelling!r}: {replacement!r}."
                )
            key = rules.fold(spelling)
            target = (
                None
                if replacement is None or not normalise_spelling(replacement)
                else normalise_spelling(replacement)
            )
            if key in targets and targets[key] != target:
                raise InputError(
                    f"clean of column {column!r} maps {spelling!r} to both {targets[key]!r} "
                    f"and {target!r}: keep one of them."
                )
            targets[key] = target
        _reject_chained_renames(targets, rules, column)
        return cls(targets, fold_case)

    def fold(self, text: str) -> str:
        """Return the comparison key of a spelling, before renames."""
        normalised = normalise_spelling(text)
        return normalised.casefold() if self.fold_case else normalised

    def clean(self, text: str) -> str | None:
        """Return the normalised spelling after renames, or None for a missing value."""
        key = self.fold(text)
        if key in self.renames:
            return self.renames[key]
        return normalise_spelling(text) or None

    def key(self, text: str) -> str | None:
        """Return the category key of a text, or None for a missing value."""
        category = self.clean(text)
        return None if category is None else self.fold(category)

    def to_dict(self) -> dict[str, Any]:
        """Return the rules as JSON values."""
        return {"renames": dict(self.renames), "fold_case": self.fold_case}

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> CategoryRules:
        """Rebuild from `to_dict`."""
        return cls(dict(saved["renames"]), bool(saved["fold_case"]))


def _reject_chained_renames(
    targets: Mapping[str, str | None], rules: CategoryRules, column: str
) -> None:
    """Reject a rename whose target is itself renamed: the result would depend on the order."""
    for key, target in targets.items():
        if target is None:
            continue
        final_target = targets.get(rules.fold(target), target)
        if final_target is None or rules.fold(final_target) != rules.fold(target):
            raise InputError(
                f"clean of column {column!r} maps {key!r} to {target!r}, which is itself mapped "
                f"to {final_target!r}: map both to the last one."
            )
