"""Encoding of texts as TF-IDF weights of their n-grams."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from calibrant.data.encoders.ngram_keys import Kind, read_characters
from calibrant.data.encoders.ngram_vocabulary import (
    Vocabulary,
    learn_vocabulary,
    split_batches,
    stack_rows,
)
from calibrant.data.encoders.text_encoder import as_texts
from calibrant.errors import InputError, NotFitted

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

FORMAT = 1
_LONGEST = 10
_KINDS: tuple[Kind, Kind] = ("words", "characters")


class NgramEncoder:
    r"""Encode texts as sparse TF-IDF weights of words, pairs of words and short runs of characters.

    $$
    x_{ij} = \frac{w_{ij}}{\sqrt{\sum_{j'} w_{ij'}^2}}, \quad
    w_{ij} = (1 + \log c_{ij}) \Big(1 + \log \frac{1 + n}{1 + n_j}\Big)
    $$

    - $c_{ij}$ : how often n-gram j occurs in text i; $x_{ij} = 0$ if it does not
    - $n$ : number of train texts
    - $n_j$ : number of train texts with n-gram j
    - the sum runs over the n-grams of the same kind, words or characters

    A text is normalised to Unicode form NFKC without case. A word is a run of letters, digits and
    marks, or a run of other characters such as punctuation or an emoji. N-grams of characters lie
    within a run without spaces; a space in them is the begin or end of such a run. They carry
    misspelt words and languages without spaces. Texts may have any length.

    The vocabulary is that of the train texts: only `fit` learns, and the order of the texts does
    not matter. N-grams outside the vocabulary are ignored; `is_unknown` tells which texts have no
    other. Unlike `TextEncoder`, it does not keep the order of the words beyond pairs.

    Parameters
    ----------
    words : shortest and longest n-gram of words; None for no words
    characters : shortest and longest n-gram of characters; None for no characters
    vocabulary : maximum number of n-grams of each kind: those in the most train texts
    min_count : minimum number of train texts that contain an n-gram. With 1 the vocabulary keeps
        words of a single text, which may be names

    Examples
    --------
    >>> encoder = NgramEncoder(characters=None).fit(["It broke.", "It is broken"])
    >>> sorted(encoder.get_feature_names_out())
    ['.', 'broke', 'broke .', 'broken', 'is', 'is broken', 'it', 'it broke', 'it is']
    >>> encoder.transform(["IT broke", "lost"]).max(axis=1).toarray().ravel().round(2)
    array([0.63, 0.  ], dtype=float32)

    References
    ----------
    Salton and Buckley (1988), Term-weighting approaches in automatic text retrieval.
    """

    def __init__(
        self,
        *,
        words: tuple[int, int] | None = (1, 2),
        characters: tuple[int, int] | None = (1, 4),
        vocabulary: int = 200_000,
        min_count: int = 1,
    ) -> None:
        self.words = words
        self.characters = characters
        self.vocabulary = vocabulary
        self.min_count = min_count

    def fit(self, texts: Any) -> Self:
        """Learn the vocabulary of the train texts."""
        self.fit_transform(texts)
        return self

    def fit_transform(self, texts: Any) -> csr_matrix:
        """Learn the vocabulary of the train texts and return their weights."""
        self._check_options()
        train = as_texts(texts)
        learned = [
            learn_vocabulary(
                train, kind, span, size=int(self.vocabulary), min_count=int(self.min_count)
            )
            for kind, span in self._lengths().items()
        ]
        if not sum(len(vocabulary) for vocabulary, _ in learned):
            raise InputError(
                f"no n-gram occurs in at least {self.min_count} texts: give more texts, or lower "
                "min_count."
            )
        self.n_texts_ = len(train)
        self.vocabularies_ = tuple(vocabulary for vocabulary, _ in learned)
        return self._weigh([counts for _, counts in learned])

    def transform(self, texts: Any) -> csr_matrix:
        """Return the weights (n, d) of texts."""
        self._check_fitted()
        parts = []
        for batch in split_batches(as_texts(texts)):
            text = read_characters(batch)
            counts = [each.count(text, len(batch)) for each in self.vocabularies_]
            parts.append(self._weigh(counts))
        return stack_rows(parts)

    @property
    def n_features(self) -> int:
        """Number of n-grams."""
        self._check_fitted()
        return sum(len(vocabulary) for vocabulary in self.vocabularies_)

    def is_unknown(self, features: csr_matrix) -> NDArray[np.bool_]:
        """Return which rows (n,) of the weights have no known n-gram."""
        return np.asarray(np.diff(features.indptr) == 0)

    def get_feature_names_out(self) -> NDArray[Any]:
        """Return the n-grams; those of characters are in quotation marks."""
        self._check_fitted()
        names = [
            name if vocabulary.kind == "words" else f"'{name}'"
            for vocabulary in self.vocabularies_
            for name in vocabulary.names
        ]
        return np.array(names, dtype=object)

    def to_dict(self) -> dict[str, Any]:
        """Return options and fitted state as JSON values."""
        self._check_fitted()
        return {
            "format": FORMAT,
            "kind": "ngrams",
            "options": {
                **{kind: list(span) if (span := getattr(self, kind)) else None for kind in _KINDS},
                "vocabulary": int(self.vocabulary),
                "min_count": int(self.min_count),
            },
            "n_texts": self.n_texts_,
            "ngrams": {
                each.kind: {"names": list(each.names), "counts": each.counts.tolist()}
                for each in self.vocabularies_
            },
        }

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> NgramEncoder:
        """Rebuild from `to_dict`."""
        if saved.get("format") != FORMAT or saved.get("kind") != "ngrams":
            raise InputError(
                f"this is not an n-gram encoder of format {FORMAT}: got format "
                f"{saved.get('format')!r} and kind {saved.get('kind')!r}."
            )
        options = dict(saved["options"])
        for kind in _KINDS:
            options[kind] = tuple(span) if isinstance(span := options[kind], list) else span
        encoder = cls(**options)
        encoder._check_options()
        encoder.n_texts_ = int(saved["n_texts"])
        encoder.vocabularies_ = tuple(
            Vocabulary.from_names(kind, span, part["names"], np.array(part["counts"], np.int64))
            for kind, span in encoder._lengths().items()
            for part in (saved["ngrams"][kind],)
        )
        return encoder

    def _weigh(self, counts: Sequence[csr_matrix]) -> csr_matrix:
        """Turn counts into TF-IDF weights, each kind of n-gram with length 1."""
        from scipy.sparse import hstack

        for matrix, known in zip(counts, self.vocabularies_, strict=True):
            rarity = 1.0 + np.log((1.0 + self.n_texts_) / (1.0 + known.counts[matrix.indices]))
            values = (1.0 + np.log(matrix.data)) * rarity
            sizes = np.diff(matrix.indptr)
            row = np.repeat(np.arange(len(sizes)), sizes)
            norms = np.sqrt(np.bincount(row, weights=values * values, minlength=len(sizes)))
            matrix.data = (values / norms[row]).astype(np.float32)
        return counts[0] if len(counts) == 1 else hstack(counts, format="csr", dtype=np.float32)

    def _lengths(self) -> dict[Kind, tuple[int, int]]:
        """Return the shortest and longest n-gram of each kind that is used."""
        spans = {kind: getattr(self, kind) for kind in _KINDS}
        return {kind: tuple(span) for kind, span in spans.items() if span is not None}

    def _check_fitted(self) -> None:
        if not hasattr(self, "vocabularies_"):
            raise NotFitted("this NgramEncoder is not fitted yet: call fit with the train texts.")

    def _check_options(self) -> None:
        for name in _KINDS:
            span = getattr(self, name)
            if span is not None and not _is_span(span):
                raise InputError(
                    f"{name} must be None or the shortest and longest n-gram, whole numbers from 1 "
                    f"to {_LONGEST}, such as (1, 2), got {span!r}."
                )
        if self.words is None and self.characters is None:
            raise InputError("words and characters are both None: give the n-grams of one of them.")
        for option in ("vocabulary", "min_count"):
            value = getattr(self, option)
            if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
                raise InputError(f"{option} must be a whole number of at least 1, got {value!r}.")


def _is_span(span: Any) -> bool:
    if not isinstance(span, tuple | list) or len(span) != 2:
        return False
    whole = all(isinstance(n, Integral) and not isinstance(n, bool) for n in span)
    return whole and 1 <= span[0] <= span[1] <= _LONGEST
