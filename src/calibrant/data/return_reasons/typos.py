"""Reversible typos: each is not a word of the corpus and belongs to one word only."""

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

__all__ = ["add_typo", "vocabulary", "word_typos"]

_SHORTEST = 4
_WORD = re.compile(r"[a-z]+")


def add_typo(text: str, where: float, which: float) -> str:
    """Add a typo to one word of a text, or return it unchanged if the word has none."""
    parts = text.split(" ")
    position = int(where * len(parts))
    word = parts[position]
    core = word.rstrip(".,!?:")
    options = word_typos().get(core.lower())
    if not options:
        return text
    typo = options[int(which * len(options))]
    if core.isupper():
        typo = typo.upper()
    elif core[0].isupper():
        typo = typo.capitalize()
    parts[position] = typo + word[len(core) :]
    return " ".join(parts)


@cache
def word_typos() -> dict[str, tuple[str, ...]]:
    """Return the typos of each word that are unique to it."""
    known = vocabulary()
    long = sorted(word for word in known if len(word) >= _SHORTEST)
    candidates = {word: sorted(set(_typos_of(word)) - known) for word in long}
    owners = Counter(typo for typos in candidates.values() for typo in typos)
    return {
        w: tuple(typo for typo in typos if owners[typo] == 1) for w, typos in candidates.items()
    }


@cache
def vocabulary() -> frozenset[str]:
    """Return every word of the corpus in lower case, without punctuation."""
    return frozenset(word for text in _texts() for word in _WORD.findall(_without_marks(text)))


def _typos_of(word: str) -> Iterator[str]:
    """Swap two letters, drop one, or double one; the first letter is unchanged."""
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


def _without_marks(text: str) -> str:
    return text.lower().replace("'", "")
