"""Vectorised word tokenisation of ASCII texts."""

from __future__ import annotations

import string

import numpy as np
import pyarrow as pa

from calibrant.inputs import IntArray

__all__ = ["ascii_words"]

_SPACE, _WORD, _OTHER = 0, 1, 2
_SPACES = b" \t\n\r\f\v"
_LOWER = bytes(range(256)).lower()


def _character_class(code: int) -> int:
    if chr(code) in string.ascii_letters + string.digits + "_":
        return _WORD
    return _SPACE if code in _SPACES else _OTHER


_KINDS = bytes(map(_character_class, range(256)))


def ascii_words(texts: pa.LargeStringArray) -> tuple[pa.LargeStringArray, IntArray]:
    r"""Return the lower-case words of all texts, concatenated, and the number of words per text.

    A word is a run of letters, digits and underscores, or a run of other characters: the matches of
    `re.findall(r"\w+|[^\w\s]+", text.lower(), re.ASCII)`, in a fifth of the time and mostly
    without the GIL, so that threads run in parallel. Texts must be ASCII, which is not checked.

    Examples
    --------
    >>> words, counts = ascii_words(pa.array(["It broke, AGAIN!", "", "ok"], pa.large_string()))
    >>> words.to_pylist(), counts
    (['it', 'broke', ',', 'again', '!', 'ok'], array([5, 0, 1]))
    """
    joined, bounds = _joined_bytes(texts)
    kinds = np.frombuffer(joined.translate(_KINDS), np.uint8)
    begins = np.ones(len(kinds), dtype=bool)
    np.not_equal(kinds[1:], kinds[:-1], out=begins[1:])
    begins[bounds[:-1][bounds[:-1] < len(kinds)]] = True  # a word ends with its text
    starts = np.flatnonzero(begins)
    lengths = np.diff(starts, append=len(kinds))
    is_word = kinds[starts] != _SPACE
    ends = np.concatenate([[0], np.cumsum(lengths[is_word])])
    words = pa.LargeStringArray.from_buffers(
        len(ends) - 1, pa.py_buffer(ends), pa.py_buffer(joined.translate(_LOWER, _SPACES))
    )
    return words, np.diff(np.searchsorted(starts[is_word], bounds))


def _joined_bytes(texts: pa.LargeStringArray) -> tuple[bytes, IntArray]:
    """Return the texts as one byte string, and the offsets (n + 1,) between them."""
    _, offsets, data = texts.buffers()
    bounds = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    first, last = int(bounds[0]), int(bounds[-1])
    return (data.slice(first, last - first).to_pybytes() if last > first else b""), bounds - first
