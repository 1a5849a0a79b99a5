"""Vocabulary of n-grams of one kind: learned from train texts, counted in any texts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from calibrant.data.encoders.ngram_keys import (
    Characters,
    Keys,
    Kind,
    keys_of_names,
    list_ngrams,
    name_ngrams,
    read_characters,
)
from calibrant.errors import InputError
from calibrant.inputs import IntArray

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

_BATCH = 1_000_000
"""Characters per batch, to limit memory."""


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """N-grams of one kind, the most frequent first.

    Parameters
    ----------
    kind : "words" or "characters"
    lengths : shortest and longest n-gram
    names : the n-grams
    counts : number of train texts that contain each
    keys : their keys, sorted
    ids : the position of each key's n-gram in `names`
    """

    kind: Kind
    lengths: tuple[int, int]
    names: tuple[str, ...]
    counts: IntArray
    keys: Keys
    ids: NDArray[np.int32]

    @classmethod
    def from_names(
        cls, kind: Kind, lengths: tuple[int, int], names: Sequence[str], counts: IntArray
    ) -> Self:
        """Build from the n-grams and their counts."""
        if len(names) != len(counts) or not all(isinstance(name, str) and name for name in names):
            raise InputError("the saved n-grams are damaged: each needs a text and a count.")
        keys = keys_of_names(names, kind)
        order = np.argsort(keys)
        return cls(kind, lengths, tuple(names), counts, keys[order], order.astype(np.int32))

    def __len__(self) -> int:
        return len(self.names)

    def count(self, text: Characters, n_texts: int) -> csr_matrix:
        """Count the known n-grams of each text, (n, d)."""
        ngrams = list_ngrams(text, self.kind, self.lengths)
        if not ngrams or not len(self):
            return _count_pairs(np.zeros(0, np.int32), np.zeros(0, np.int32), (n_texts, len(self)))
        keys = np.concatenate([each.keys for each in ngrams])
        rows = np.concatenate([each.rows for each in ngrams])
        places = np.minimum(np.searchsorted(self.keys, keys), len(self) - 1)
        known = self.keys[places] == keys
        return _count_pairs(rows[known], self.ids[places[known]], (n_texts, len(self)))


def split_batches(texts: Sequence[str], size: int = _BATCH) -> Iterator[Sequence[str]]:
    """Yield texts in batches of about `size` characters.

    Examples
    --------
    >>> list(split_batches(["four", "five", "six"], size=10))
    [['four', 'five'], ['six']]
    """
    start, total = 0, 0
    for i, text in enumerate(texts):
        if i > start and total + len(text) > size:
            yield texts[start:i]
            start, total = i, 0
        total += len(text)
    yield texts[start:]


def learn_vocabulary(
    texts: Sequence[str], kind: Kind, lengths: tuple[int, int], *, size: int, min_count: int
) -> tuple[Vocabulary, csr_matrix]:
    """Learn the n-grams of train texts, and return them with their counts (n, d).

    The `size` n-grams in the most texts are kept; ties are broken by their keys.
    """
    batches = list(split_batches(texts))
    parts = [_count_batch(batch, kind, lengths) for batch in batches]
    keys, group = np.unique(np.concatenate([part.keys for part in parts]), return_inverse=True)
    documents = np.concatenate(
        [np.bincount(part.counts.indices, minlength=len(part.keys)) for part in parts]
    )
    counts = np.bincount(group, weights=documents, minlength=len(keys)).astype(np.int64)
    frequent = np.flatnonzero(counts >= min_count)
    chosen = frequent[np.lexsort((keys[frequent], -counts[frequent]))][:size]
    id_of = np.full(len(keys), -1, dtype=np.int32)
    id_of[chosen] = np.arange(len(chosen), dtype=np.int32)
    ends = np.cumsum([len(part.keys) for part in parts])
    ids = [id_of[part] for part in np.split(group, ends[:-1])]
    names = _name_chosen(batches, parts, ids, kind, len(chosen))
    order = np.argsort(keys[chosen])
    vocabulary = Vocabulary(
        kind, lengths, names, counts[chosen], keys[chosen][order], order.astype(np.int32)
    )
    pairs = zip(parts, ids, strict=True)
    return vocabulary, stack_rows([_renumber(part.counts, own, len(chosen)) for part, own in pairs])


def stack_rows(parts: Sequence[csr_matrix]) -> csr_matrix:
    """Stack sparse rows of several batches."""
    from scipy.sparse import vstack

    return parts[0] if len(parts) == 1 else vstack(parts, format="csr")


@dataclass(frozen=True, eq=False)
class _BatchCounts:
    """N-grams of a batch of texts.

    Parameters
    ----------
    keys : (u,) their keys, sorted
    starts, lengths : (u,) a place where each occurs, see `Ngrams`
    counts : (texts, u) how often each text has them
    """

    keys: Keys
    starts: IntArray
    lengths: IntArray
    counts: csr_matrix


def _count_batch(texts: Sequence[str], kind: Kind, lengths: tuple[int, int]) -> _BatchCounts:
    ngrams = list_ngrams(read_characters(texts), kind, lengths)
    empty = np.zeros(0, dtype=np.int64)
    keys = np.concatenate([empty.astype(np.uint64), *(each.keys for each in ngrams)])
    rows = np.concatenate([empty, *(each.rows for each in ngrams)])
    starts = np.concatenate([empty, *(each.starts for each in ngrams)])
    sizes = np.concatenate([empty, *(np.full(len(each.keys), each.length) for each in ngrams)])
    unique, ids = np.unique(keys, return_inverse=True)
    place = np.zeros(len(unique), dtype=np.int64)
    place[ids] = np.arange(len(keys))  # any place will do: all have the same text
    counts = _count_pairs(rows, ids, (len(texts), len(unique)))
    return _BatchCounts(unique, starts[place], sizes[place], counts)


def _name_chosen(
    batches: Sequence[Sequence[str]],
    parts: Sequence[_BatchCounts],
    ids: Sequence[NDArray[np.int32]],
    kind: Kind,
    n: int,
) -> tuple[str, ...]:
    """Return the text of each chosen n-gram, from the first batch that has it."""
    names = np.full(n, None, dtype=object)
    for batch, part, own in zip(batches, parts, ids, strict=True):
        new = np.flatnonzero(own >= 0)
        new = new[names[own[new]] == None]  # noqa: E711  # elementwise
        text = read_characters(batch)
        names[own[new]] = name_ngrams(text, kind, part.starts[new], part.lengths[new])
    return tuple(names.tolist())


def _renumber(counts: csr_matrix, ids: NDArray[np.int32], width: int) -> csr_matrix:
    """Replace the columns of counts, without those of id -1."""
    from scipy.sparse import csr_matrix

    columns = ids[counts.indices]
    known = columns >= 0
    bounds = np.concatenate([[0], np.cumsum(known)])[counts.indptr]
    renumbered = csr_matrix(
        (counts.data[known], columns[known], bounds), shape=(counts.shape[0], width)
    )
    renumbered.sort_indices()
    return renumbered


def _count_pairs(rows: NDArray[Any], columns: NDArray[Any], shape: tuple[int, int]) -> csr_matrix:
    """Count how often each pair of row and column occurs."""
    from scipy.sparse import csr_matrix

    n, width = shape
    pairs, counts = np.unique(rows.astype(np.int64) * width + columns, return_counts=True)
    row, column = np.divmod(pairs, max(width, 1))
    starts = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=n))])
    parts = (counts.astype(np.float32), column.astype(np.int32), starts.astype(np.int32))
    return csr_matrix(parts, shape=shape)
