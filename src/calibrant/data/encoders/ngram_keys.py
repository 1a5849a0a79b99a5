"""N-grams of texts as 64-bit keys, many texts at a time."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from calibrant.inputs import IntArray

Kind = Literal["words", "characters"]
Keys = NDArray[np.uint64]

_SPACE, _WORD, _OTHER = 1, 2, 3
_CODES = 0x110000
_PIECE = 500
"""Characters normalised at a time: the time for a run of combining marks grows with its square."""

_STEP, _NEXT_WORD = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)
_OF_WORDS = np.uint64(0xD1B54A32D192ED03)


def _random_numbers(n: int) -> Keys:
    """Return n numbers without any pattern: SplitMix64 of 0, 1, ..."""
    x = np.arange(1, n + 1, dtype=np.uint64) * _STEP
    x = (x ^ (x >> np.uint64(30))) * _NEXT_WORD
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(x ^ (x >> np.uint64(31)))


_NUMBER_OF = _random_numbers(_CODES)
_KIND_OF = np.zeros(_CODES, dtype=np.uint8)  # filled as characters are met


@dataclass(frozen=True)
class Characters:
    """Characters of several texts in one row: a space before each word, and one at the end.

    Parameters
    ----------
    codes : (m,) code points of the normalised texts
    kinds : (m,) space, part of a word, or other
    rows : (m,) text of each character; a space belongs to the text of the next word
    """

    codes: NDArray[np.uint32]
    kinds: NDArray[np.uint8]
    rows: NDArray[np.int32]


@dataclass(frozen=True)
class Ngrams:
    """N-grams of one length and kind.

    Parameters
    ----------
    keys : (m,) 64-bit hash of each n-gram
    rows : (m,) its text
    starts : (m,) its first character or word
    length : its number of characters or words
    """

    keys: Keys
    rows: NDArray[np.int32]
    starts: IntArray
    length: int


def normalise_text(text: str) -> str:
    r"""Return a text in Unicode form NFKC, without case.

    Examples
    --------
    >>> normalise_text("ＧＲＯßE U\u0308BUNG")
    'grosse übung'
    """
    if text.isascii():
        return text.lower()
    if len(text) <= _PIECE:
        return _fold(text)
    pieces, start = [], 0
    while start < len(text):
        end = start + _PIECE
        if end < len(text):  # at a space if there is one, where no characters combine
            end = text.rfind(" ", start, end) + 1 or end
        pieces.append(_fold(text[start:end]))
        start = end
    return "".join(pieces)


def read_characters(texts: Sequence[str]) -> Characters:
    """Normalise texts and return their characters, with one space for each run of white space."""
    plain = [normalise_text(text) for text in texts]
    joined = " " + " ".join(plain) + " "
    codes = np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), dtype="<u4")
    kinds = _kinds_of(codes)
    sizes = np.fromiter(map(len, plain), dtype=np.int64, count=len(plain)) + 1
    rows = np.repeat(np.arange(len(plain) + 1, dtype=np.int32), np.append(sizes, 1))
    space = kinds == _SPACE
    codes = np.where(space, np.uint32(32), codes)
    keep = np.append(~(space[:-1] & space[1:]), True)
    if keep.all():
        return Characters(codes, kinds, rows)
    return Characters(codes[keep], kinds[keep], rows[keep])


def list_ngrams(text: Characters, kind: Kind, lengths: tuple[int, int]) -> list[Ngrams]:
    """Return all n-grams from the first length to the last.

    A word is a run of letters, digits and marks, or a run of other characters such as an emoji.
    N-grams of characters lie within a run without spaces, with a space before and after it.
    """
    if kind == "words":
        return _word_ngrams(text, *lengths)
    return _character_ngrams(text, *lengths)


def name_ngrams(text: Characters, kind: Kind, starts: IntArray, lengths: IntArray) -> list[str]:
    """Return n-grams as text, words separated by a space."""
    joined = text.codes.astype("<u4").tobytes().decode("utf-32-le", "surrogatepass")
    if kind == "characters":
        return [joined[i : i + n] for i, n in zip(starts.tolist(), lengths.tolist(), strict=True)]
    begins, ends, _ = _find_words(text)
    words = [joined[i:j] for i, j in zip(begins.tolist(), ends.tolist(), strict=True)]
    pairs = zip(starts.tolist(), lengths.tolist(), strict=True)
    return [" ".join(words[i : i + n]) for i, n in pairs]


def keys_of_names(names: Sequence[str], kind: Kind) -> Keys:
    """Return the key of each n-gram from its text.

    Examples
    --------
    >>> text = read_characters(["it broke"])
    >>> ngrams = list_ngrams(text, "words", (2, 2))[0].keys
    >>> bool((ngrams == keys_of_names(["it broke"], "words")).all())
    True
    """
    lengths = np.array([name.count(" ") + 1 if kind == "words" else len(name) for name in names])
    keys = np.zeros(len(names), dtype=np.uint64)
    for n in np.unique(lengths).tolist():
        places = np.flatnonzero(lengths == n)
        chosen = [names[i] for i in places.tolist()]
        keys[places] = _word_keys(chosen, n) if kind == "words" else _character_keys(chosen, n)
    return keys


def _fold(text: str) -> str:
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def _kinds_of(codes: NDArray[np.uint32]) -> NDArray[np.uint8]:
    kinds = _KIND_OF[codes]
    if not kinds.all():
        for code in np.unique(codes[kinds == 0]).tolist():
            _KIND_OF[code] = _kind_of(chr(code))
        kinds = _KIND_OF[codes]
    return kinds


def _kind_of(character: str) -> int:
    if character.isspace():
        return _SPACE
    is_word = character.isalnum() or character == "_" or unicodedata.category(character)[0] == "M"
    return _WORD if is_word else _OTHER


def _character_ngrams(text: Characters, shortest: int, longest: int) -> list[Ngrams]:
    space = text.kinds == _SPACE
    numbers = _NUMBER_OF[text.codes]
    keys, inside, ngrams = numbers, ~space, []
    for n in range(1, longest + 1):
        size = len(space) - n + 1
        if size < 1:
            break
        if n > 1:
            keys = keys[:-1] * _STEP
            keys += numbers[n - 1 :]
        if n == 2:
            inside = np.ones(size, dtype=bool)
        elif n > 2:  # no space except at the ends
            inside = inside[:-1] & ~space[n - 2 : n - 2 + size]
        if n >= shortest:
            starts = np.flatnonzero(inside)
            ngrams.append(Ngrams(keys[starts], text.rows[starts], starts, n))
    return ngrams


def _word_ngrams(text: Characters, shortest: int, longest: int) -> list[Ngrams]:
    begins, ends, rows = _find_words(text)
    words = _run_keys(text.codes, begins, ends)
    keys, ngrams = words, []
    for n in range(1, longest + 1):
        if len(words) < n:
            break
        if n > 1:
            keys = keys[:-1] * _NEXT_WORD + words[n - 1 :]
        if n >= shortest:
            starts = np.flatnonzero(rows[: len(keys)] == rows[n - 1 :])
            ngrams.append(Ngrams(keys[starts], rows[starts], starts, n))
    return ngrams


def _find_words(text: Characters) -> tuple[IntArray, IntArray, NDArray[np.int32]]:
    """Return begin, end and text of each word."""
    changes = np.flatnonzero(text.kinds[1:] != text.kinds[:-1]) + 1
    begins = np.concatenate([[0], changes])
    ends = np.append(changes, len(text.kinds))
    is_word = text.kinds[begins] != _SPACE
    begins, ends = begins[is_word], ends[is_word]
    return begins, ends, text.rows[begins]


def _run_keys(codes: NDArray[np.uint32], begins: IntArray, ends: IntArray) -> Keys:
    """Return the key of each run of characters; runs are in order and do not overlap."""
    if not len(begins):
        return np.zeros(0, dtype=np.uint64)
    sizes = ends - begins
    starts = np.cumsum(sizes) - sizes
    inside = np.arange(int(sizes.sum())) - np.repeat(starts, sizes)
    factors = np.full(int(sizes.max()), _STEP)
    factors[0] = 1
    factors = np.multiply.accumulate(factors)
    numbers = _NUMBER_OF[codes[np.repeat(begins, sizes) + inside]]
    return np.asarray(np.add.reduceat(numbers * factors[inside], starts) + _OF_WORDS)


def _codes_of(text: str) -> NDArray[np.uint32]:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")


def _character_keys(names: Sequence[str], n: int) -> Keys:
    numbers = _NUMBER_OF[_codes_of("".join(names))].reshape(len(names), n)
    keys = numbers[:, 0]
    for i in range(1, n):
        keys = keys * _STEP + numbers[:, i]
    return keys


def _word_keys(names: Sequence[str], n: int) -> Keys:
    words = [word for name in names for word in name.split(" ")]
    sizes = np.array([len(word) for word in words])
    ends = np.cumsum(sizes)
    keys = _run_keys(_codes_of("".join(words)), ends - sizes, ends).reshape(len(names), n)
    total = keys[:, 0]
    for i in range(1, n):
        total = total * _NEXT_WORD + keys[:, i]
    return total
