r"""Numbers in other digits or with signs that nobody sees, read as if they were plain.

Patterns look at a plain text; beside it stands, for each of its signs, what the text has there. So
whatever is not taken out stays as it was written.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

__all__ = ["has_odd_signs", "plain_signs", "replaced"]

# Spaces without width, joiners, soft hyphens, and signs that turn the direction of reading.
_UNSEEN = r"\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff"
_SPACES = "".join(map(chr, (*range(0x2000, 0x200B), 0x205F, 0x3000)))
_PLAIN = {**dict.fromkeys(_SPACES, " "), **dict(zip("−－＋（）．／：＃", "--+()./:#", strict=True))}
_WIDE = "".join(_PLAIN)
_ODD = re.compile(rf"[{_UNSEEN}{re.escape(_WIDE)}]|(?![0-9])\d")
_OF_NUMBERS = rf"[\d \t\u00a0\u202f{re.escape(_WIDE)}\-\u2010\u2011\u2013./()+:#]"
_HIDDEN = re.compile(rf"(?<={_OF_NUMBERS})[{_UNSEEN}]++(?={_OF_NUMBERS})")
"""Within a number only: beside a word such a sign may be the only thing that ends it."""


def has_odd_signs(text: str) -> bool:
    """Tell whether a text has digits beyond ASCII, or signs that nobody sees or that are wide."""
    return not text.isascii() and _ODD.search(text) is not None


def plain_signs(text: str) -> tuple[str, list[str]]:
    r"""Return a text in plain digits, and for each of its signs what stood there.

    Examples
    --------
    >>> plain_signs("no ４\u200b２")
    ('no 42', ['n', 'o', ' ', '４\u200b', '２'])
    """
    stood: list[str] = []
    done = 0
    for found in _HIDDEN.finditer(text):
        stood += text[done : found.start()]
        stood[-1] += found[0]
        done = found.end()
    stood += text[done:]
    return "".join(map(_plain, stood)), stood


def replaced(
    pattern: re.Pattern[str],
    put: Callable[[re.Match[str]], str],
    plain: str,
    stood: list[str],
) -> tuple[str, list[str]]:
    """Replace what a pattern finds in a plain text, and what stood there with it.

    Examples
    --------
    >>> plain, stood = plain_signs("nos. ４２, ７")
    >>> replaced(re.compile("[0-9]{2}"), lambda found: "_n_", plain, stood)[1]
    ['n', 'o', 's', '.', ' ', '_', 'n', '_', ',', ' ', '７']
    """
    pieces: list[str] = []
    kept: list[str] = []
    done = 0
    for found in pattern.finditer(plain):
        old, new = found[0], put(found)
        head = _shared(old, new)
        rest, given = old[head:], new[head:]
        tail = _shared(rest[::-1], given[::-1])
        start, end = found.start() + head, found.end() - tail
        given = given[: len(given) - tail]
        pieces += [plain[done:start], given]
        kept += stood[done:start]
        kept += given
        done = end
    return "".join([*pieces, plain[done:]]), kept + stood[done:]


def _shared(a: str, b: str) -> int:
    """Return how many signs two texts begin with alike."""
    pairs = enumerate(zip(a, b, strict=False))
    return next((i for i, (x, y) in pairs if x != y), min(len(a), len(b)))


def _plain(stood: str) -> str:
    """Return the sign that what stood somewhere is read as."""
    sign = stood[0]
    if sign.isascii():
        return sign
    return str(unicodedata.decimal(sign)) if sign.isdecimal() else _PLAIN.get(sign, sign)
