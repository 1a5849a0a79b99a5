"""Encoding of texts with the tokenizer of a pretrained model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import chain
from numbers import Integral
from typing import Any, Self

import numpy as np

from calibrant.data.encoders.text_encoder import as_text_column, as_texts
from calibrant.errors import InputError, MissingExtra
from calibrant.inputs import IntArray

FORMAT = 1
_BATCH = 4096
"""Texts per batch, to limit Python objects in memory."""


class SubwordEncoder:
    """Encode texts as token ids with an existing tokenizer.

    Nothing is learned: `fit` only checks its arguments. The ids are those of the `transformers`
    library with `truncation=True`, which is not required. For a vocabulary of the train texts see
    `TextEncoder`. An empty text has the special tokens only, or none if the tokenizer has none.
    Padding options of the tokenizer are ignored, and of its truncation options only the side is
    used.

    Examples
    --------
    >>> from tokenizers import Tokenizer, models, pre_tokenizers, processors
    >>> pieces = {"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "brok": 3, "##en": 4, "it": 5}
    >>> tokenizer = Tokenizer(models.WordPiece(pieces, unk_token="[UNK]"))
    >>> tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    >>> tokenizer.post_processor = processors.BertProcessing(("[SEP]", 2), ("[CLS]", 1))
    >>> encoder = SubwordEncoder(tokenizer.to_str(), max_length=5)
    >>> encoder.encode(["it broken", "it it it it", ""])
    (array([1, 5, 3, 4, 2, 1, 5, 5, 5, 2, 1, 2]), array([ 0,  5, 10, 12]))

    References
    ----------
    Sennrich, Haddow and Birch (2016), Neural machine translation of rare words with subword units;
    Wu et al. (2016), Google's neural machine translation system (WordPiece).
    """

    def __init__(self, tokenizer: str, *, max_length: int = 256) -> None:
        self.tokenizer = tokenizer
        self.max_length = max_length

    def fit(self, texts: Any) -> Self:
        """Check options and texts; nothing is learned."""
        self.check()
        as_texts(texts)
        return self

    def check(self) -> None:
        """Raise `InputError` for an invalid tokenizer or a length without room for words."""
        value = self.max_length
        if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
            raise InputError(f"max_length must be a whole number >= 1, got {value!r}.")
        special = self._tokenizer().num_special_tokens_to_add(False)
        if value <= special:
            raise InputError(
                f"max_length must be at least {special + 1}, because the tokenizer adds {special} "
                f"special tokens to a text, got {value}."
            )

    def encode(self, texts: Any) -> tuple[IntArray, IntArray]:
        """Return the token ids of all texts, concatenated, and the offsets (n + 1,) of the texts.

        Text i is `tokens[offsets[i]:offsets[i + 1]]`.
        """
        rows = as_text_column(texts)
        tokenizer = self._tokenizer()
        tokens, counts = [], []
        for i in range(0, len(rows), _BATCH):
            ids_of_texts = [
                encoding.ids
                for encoding in tokenizer.encode_batch_fast(rows[i : i + _BATCH].to_pylist())
            ]
            counts.append(np.array([len(ids) for ids in ids_of_texts], dtype=np.int64))
            tokens.append(
                np.fromiter(chain.from_iterable(ids_of_texts), np.int64, counts[-1].sum())
            )
        return np.concatenate(tokens), np.concatenate([[0], np.cumsum(np.concatenate(counts))])

    @property
    def words(self) -> tuple[str, ...]:
        """The vocabulary by id; an unused id is ''."""
        known = self._tokenizer().get_vocab()
        pieces = [""] * self.n_tokens
        for piece, number in known.items():
            pieces[number] = piece
        return tuple(pieces)

    @property
    def n_tokens(self) -> int:
        """The largest token id plus 1: the minimum size of an embedding."""
        return max(self._tokenizer().get_vocab().values(), default=-1) + 1

    def to_dict(self) -> dict[str, Any]:
        """Return options and tokenizer as JSON values."""
        return {
            "format": FORMAT,
            "kind": "subword",
            "options": {"max_length": int(self.max_length)},
            "tokenizer": json.loads(self.tokenizer),
        }

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> SubwordEncoder:
        """Rebuild from `to_dict`."""
        if saved.get("format") != FORMAT or saved.get("kind") != "subword":
            raise InputError(
                f"this is not a subword encoder of format {FORMAT}: got format "
                f"{saved.get('format')!r} and kind {saved.get('kind')!r}."
            )
        encoder = cls(json.dumps(saved["tokenizer"], ensure_ascii=False), **saved["options"])
        encoder.check()
        return encoder

    def __getstate__(self) -> dict[str, Any]:
        """Exclude the cached tokenizer, which is rebuilt from its JSON text."""
        return {key: value for key, value in self.__dict__.items() if key != "_cached"}

    def _tokenizer(self) -> Any:
        """Return the cached tokenizer, which truncates to `max_length`."""
        tokenizer = getattr(self, "_cached", None)
        if tokenizer is None or tokenizer.truncation["max_length"] != self.max_length:
            tokenizer = _load_tokenizer(self.tokenizer)
            side = (tokenizer.truncation or {}).get("direction", "right")
            tokenizer.no_padding()
            tokenizer.enable_truncation(int(self.max_length), direction=side)
            self._cached = tokenizer  # last, for thread safety
        return tokenizer


def _load_tokenizer(tokenizer: Any) -> Any:
    try:
        from tokenizers import Tokenizer
    except ImportError:
        raise MissingExtra("SubwordEncoder", "torch") from None
    if not isinstance(tokenizer, str):
        raise InputError(
            "tokenizer must be the text of a tokenizer.json, got "
            f"{type(tokenizer).__name__}: read the file first."
        )
    try:
        return Tokenizer.from_str(tokenizer)
    except Exception as error:  # the tokenizers library raises bare exceptions
        reason = str(error).strip().partition("\n")[0][:120]
        raise InputError(
            f"tokenizer is not the text of a tokenizer.json ({reason}): get a fresh copy."
        ) from error
