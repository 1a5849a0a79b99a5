"""Clean-up rules: which spellings of a category mean the same one."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from calibrant.errors import InputError

__all__ = ["CategoryRules", "spelled"]


def spelled(text: str) -> str:
    """Return a text in Unicode form NFKC with single spaces and none at the ends.

    Examples
    --------
    >>> spelled("  Low   Fat ")
    'Low Fat'
    """
    return " ".join(unicodedata.normalize("NFKC", text).split())


@dataclass(frozen=True)
class CategoryRules:
    """Rules by which the spellings of one column are merged into categories.

    Spaces at the ends, repeated spaces, compatibility forms of letters (NFKC) and, with
    `fold_case`, upper and lower case make no difference. Then the explicit renames are looked up.
    An empty text is a missing value. The rules are the user's: nothing here is learned, and similar
    spellings are not guessed to be the same.

    Parameters
    ----------
    renames : from the key of a spelling to the text that it stands for, or to None where it stands
        for a missing value
    fold_case : whether "low fat" and "Low Fat" are one category

    Examples
    --------
    >>> rules = CategoryRules.of({"LF": "Low Fat", "reg": "Regular", "?": None}, column="fat")
    >>> [rules.read(text) for text in ("low fat", " lf", "Reg", "?", "")]
    ['low fat', 'Low Fat', 'Regular', None, None]
    >>> [rules.key(text) for text in ("low fat", " lf", "Reg")]
    ['low fat', 'low fat', 'regular']
    """

    renames: Mapping[str, str | None] = field(default_factory=dict)
    fold_case: bool = True

    @classmethod
    def of(cls, renames: Any, *, column: str, fold_case: bool = True) -> CategoryRules:
        """Check the user's renames of a column and make rules of them."""
        if not isinstance(renames, Mapping):
            raise InputError(
                f"clean of column {column!r} must be a dict of spellings such as "
                f"{{'LF': 'Low Fat'}}, got {renames!r}."
            )
        bare = cls(fold_case=fold_case)
        found: dict[str, str | None] = {}
        for spelling, meant in renames.items():
            if not isinstance(spelling, str) or not isinstance(meant, str | None):
                raise InputError(
                    f"clean of column {column!r} must map text to text or to None, got "
                    f"{spelling!r}: {meant!r}."
                )
            key = bare.fold(spelling)
            target = None if meant is None or not spelled(meant) else spelled(meant)
            if key in found and found[key] != target:
                raise InputError(
                    f"clean of column {column!r} gives {spelling!r} two meanings, {found[key]!r} "
                    f"and {target!r}: keep one of them."
                )
            found[key] = target
        _refuse_chains(found, bare, column)
        return cls(found, fold_case)

    def fold(self, text: str) -> str:
        """Return what two spellings of one category have in common, before renames."""
        clean = spelled(text)
        return clean.casefold() if self.fold_case else clean

    def read(self, text: str) -> str | None:
        """Return the tidy spelling of a text after renames, or None for a missing value."""
        folded = self.fold(text)
        if folded in self.renames:
            return self.renames[folded]
        return spelled(text) or None

    def key(self, text: str) -> str | None:
        """Return the key of the category that a text belongs to, or None for a missing value."""
        meant = self.read(text)
        return None if meant is None else self.fold(meant)

    def to_dict(self) -> dict[str, Any]:
        """Return the rules as JSON."""
        return {"renames": dict(self.renames), "fold_case": self.fold_case}

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> CategoryRules:
        """Rebuild from `to_dict`."""
        return cls(dict(saved["renames"]), bool(saved["fold_case"]))


def _refuse_chains(found: Mapping[str, str | None], rules: CategoryRules, column: str) -> None:
    """Refuse a rename onto something that is renamed itself: the order would decide."""
    for key, meant in found.items():
        if meant is None:
            continue
        further = found.get(rules.fold(meant), meant)
        if further is None or rules.fold(further) != rules.fold(meant):
            raise InputError(
                f"clean of column {column!r} turns {key!r} into {meant!r}, which is itself turned "
                f"into {further!r}: name the last one for both."
            )
