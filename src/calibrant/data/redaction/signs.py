r"""Normalisation of non-ASCII digits and invisible characters for redaction.

Patterns match the normalised text; a parallel list holds the original of each of its characters,
so that unmatched text keeps its original form.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

__all__ = ["has_unusual_characters", "normalise_characters", "substitute"]

# Zero-width spaces, joiners, soft hyphens and directional marks.
_INVISIBLE = r"\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff"
_SPACES = "".join(map(chr, (*range(0x2000, 0x200B), 0x205F, 0x3000)))
_ASCII_FORM = {
    **dict.fromkeys(_SPACES, " "),
    **dict(zip("−－＋（）．／：＃", "--+()./:#", strict=True)),
}
_WIDE = "".join(_ASCII_FORM)
_UNUSUAL = re.compile(rf"[{_INVISIBLE}{re.escape(_WIDE)}]|(?![0-9])\d")
_NUMBER_CHARACTERS = rf"[\d \t\u00a0\u202f{re.escape(_WIDE)}\-\u2010\u2011\u2013./()+:#]"
_HIDDEN = re.compile(rf"(?<={_NUMBER_CHARACTERS})[{_INVISIBLE}]++(?={_NUMBER_CHARACTERS})")
"""Within numbers only: next to a word, an invisible character may be the separator."""


def has_unusual_characters(text: str) -> bool:
    """Return whether a text has non-ASCII digits, or invisible or full-width characters."""
    return not text.isascii() and _UNUSUAL.search(text) is not None


def normalise_characters(text: str) -> tuple[str, list[str]]:
    r"""Return the normalised text, and the original of each of its characters.

    Examples
    --------
    >>> normalise_characters("no ４\u200b２")
    ('no 42', ['n', 'o', ' ', '４\u200b', '２'])
    """
    original: list[str] = []
    end = 0
    for match in _HIDDEN.finditer(text):
        original += text[end : match.start()]
        original[-1] += match[0]
        end = match.end()
    original += text[end:]
    return "".join(map(_normalise, original)), original


def substitute(
    pattern: re.Pattern[str],
    replace: Callable[[re.Match[str]], str],
    plain: str,
    original: list[str],
) -> tuple[str, list[str]]:
    """Replace matches in the normalised text and in the list of originals.

    Examples
    --------
    >>> plain, original = normalise_characters("nos. ４２, ７")
    >>> substitute(re.compile("[0-9]{2}"), lambda match: "_n_", plain, original)[1]
    ['n', 'o', 's', '.', ' ', '_', 'n', '_', ',', ' ', '７']
    """
    pieces: list[str] = []
    result_original: list[str] = []
    end_of_last = 0
    for match in pattern.finditer(plain):
        old, new = match[0], replace(match)
        head = _common_prefix(old, new)
        rest, inserted = old[head:], new[head:]
        tail = _common_prefix(rest[::-1], inserted[::-1])
        start, end = match.start() + head, match.end() - tail
        inserted = inserted[: len(inserted) - tail]
        pieces += [plain[end_of_last:start], inserted]
        result_original += original[end_of_last:start]
        result_original += inserted
        end_of_last = end
    return "".join([*pieces, plain[end_of_last:]]), result_original + original[end_of_last:]


def _common_prefix(a: str, b: str) -> int:
    """Return the length of the common prefix of two texts."""
    pairs = enumerate(zip(a, b, strict=False))
    return next((i for i, (x, y) in pairs if x != y), min(len(a), len(b)))


def _normalise(original: str) -> str:
    """Return the normalised form of an original character."""
    character = original[0]
    if character.isascii():
        return character
    return (
        str(unicodedata.decimal(character))
        if character.isdecimal()
        else _ASCII_FORM.get(character, character)
    )
