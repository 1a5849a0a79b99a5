"""Slips of the keyboard that can be undone: a slip is no word and belongs to one word only."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache

from calibrant.data.return_reasons.lexicon import (
    claims,
    clauses,
    lines,
    outside,
    products,
    words,
)

__all__ = ["misspelt", "slips", "vocabulary"]

_SHORTEST = 4
_WORD = re.compile(r"[a-z]+")


def misspelt(text: str, where: float, which: float) -> str:
    """Return the text with a slip in one word; unchanged where that word has none."""
    parts = text.split(" ")
    place = int(where * len(parts))
    word = parts[place]
    core = word.rstrip(".,!?:")
    found = slips().get(core.lower())
    if not found:
        return text
    slip = found[int(which * len(found))]
    if core.isupper():
        slip = slip.upper()
    elif core[0].isupper():
        slip = slip.capitalize()
    parts[place] = slip + word[len(core) :]
    return " ".join(parts)


@cache
def slips() -> dict[str, tuple[str, ...]]:
    """Return for each word its slips, without those that another word shares."""
    known = vocabulary()
    long = sorted(word for word in known if len(word) >= _SHORTEST)
    made = {word: sorted(set(_slips(word)) - known) for word in long}
    owners = Counter(slip for found in made.values() for slip in found)
    return {w: tuple(slip for slip in found if owners[slip] == 1) for w, found in made.items()}


@cache
def vocabulary() -> frozenset[str]:
    """Return every word of the corpus in small letters, without marks."""
    return frozenset(word for text in _texts() for word in _WORD.findall(_plain(text)))


def _slips(word: str) -> Iterator[str]:
    """Swap two letters, drop one, or type one twice; the first letter stays."""
    for i in range(1, len(word)):
        if i + 1 < len(word):
            yield word[:i] + word[i + 1] + word[i] + word[i + 2 :]
        yield word[:i] + word[i + 1 :]
        yield word[: i + 1] + word[i:]


def _texts() -> Iterator[str]:
    yield from outside()
    yield from lines()
    for product in products():
        yield product.name
        yield from product.parts
    for claim in claims():
        for phrases in claim.phrases:
            yield from phrases
    for entries in words().values():
        yield from entries
    yield from _strings(clauses())


def _strings(node: object) -> Iterator[str]:
    if isinstance(node, str):
        yield node
    elif isinstance(node, dict):
        yield from _strings(list(node.values()))
    elif isinstance(node, Iterable):
        for item in node:
            yield from _strings(item)


def _plain(text: str) -> str:
    return text.lower().replace("'", "")
