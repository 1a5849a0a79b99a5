"""Texts to numbers of word pieces, as the tokenizer of a pretrained model cuts them."""

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

__all__ = ["SubwordEncoder"]

FORMAT = 1
_BATCH = 4096
"""Texts cut at a time, so that few of them stand in memory as objects."""


class SubwordEncoder:
    """Turn texts into numbers of word pieces with a tokenizer that is there already.

    A pretrained transformer knows the pieces that its tokenizer cuts, and the special ones that it
    sets around a text. So nothing is learned: `fit` only looks at what it is given. The numbers are
    those that the `transformers` library gives with `truncation=True`; that library is not needed.

    It is not a vocabulary of the train texts: that is `TextEncoder`. A text without words has the
    special pieces alone, or none where the tokenizer has none.

    Parameters
    ----------
    tokenizer : the text of a `tokenizer.json`. What it says about padding is left out, and of
        truncation only the side counts that long texts lose
    max_length : pieces of a text that are read, the special ones included

    Examples
    --------
    >>> from tokenizers import Tokenizer, models, pre_tokenizers, processors
    >>> pieces = {"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "brok": 3, "##en": 4, "it": 5}
    >>> cutter = Tokenizer(models.WordPiece(pieces, unk_token="[UNK]"))
    >>> cutter.pre_tokenizer = pre_tokenizers.Whitespace()
    >>> cutter.post_processor = processors.BertProcessing(("[SEP]", 2), ("[CLS]", 1))
    >>> encoder = SubwordEncoder(cutter.to_str(), max_length=5)
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
        """Check options and texts; there is nothing to learn."""
        self.check()
        as_texts(texts)
        return self

    def check(self) -> None:
        """Refuse a tokenizer that cannot be read, and a length that leaves no room for words."""
        value = self.max_length
        if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
            raise InputError(f"max_length must be a whole number >= 1, got {value!r}.")
        special = self._tokenizer().num_special_tokens_to_add(False)
        if value <= special:
            raise InputError(
                f"max_length must be at least {special + 1}, for the tokenizer sets {special} "
                f"special tokens around a text, got {value}."
            )

    def encode(self, texts: Any) -> tuple[IntArray, IntArray]:
        """Return the pieces of all texts one after another, and where each text begins.

        Text i is `tokens[offsets[i]:offsets[i + 1]]`; `offsets` has one entry more than there are
        texts.
        """
        rows = as_text_column(texts)
        cutter = self._tokenizer()
        tokens, counts = [], []
        for i in range(0, len(rows), _BATCH):
            found = [
                each.ids for each in cutter.encode_batch_fast(rows[i : i + _BATCH].to_pylist())
            ]
            counts.append(np.array([len(ids) for ids in found], dtype=np.int64))
            tokens.append(np.fromiter(chain.from_iterable(found), np.int64, counts[-1].sum()))
        return np.concatenate(tokens), np.concatenate([[0], np.cumsum(np.concatenate(counts))])

    @property
    def words(self) -> tuple[str, ...]:
        """The pieces in the order of their numbers; a number that no piece has is ''."""
        known = self._tokenizer().get_vocab()
        found = [""] * self.n_tokens
        for piece, number in known.items():
            found[number] = piece
        return tuple(found)

    @property
    def n_tokens(self) -> int:
        """The largest number of a piece, plus 1: the least rows that a network needs."""
        return max(self._tokenizer().get_vocab().values(), default=-1) + 1

    def to_dict(self) -> dict[str, Any]:
        """Return options and tokenizer as JSON."""
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
        return cls(json.dumps(saved["tokenizer"], ensure_ascii=False), **saved["options"])

    def __getstate__(self) -> dict[str, Any]:
        """Leave the running tokenizer out: its text is kept, and makes it again."""
        return {key: value for key, value in self.__dict__.items() if key != "_made"}

    def _tokenizer(self) -> Any:
        """Return the running tokenizer, which cuts texts to the length asked for."""
        made = getattr(self, "_made", None)
        if made is None or made.truncation["max_length"] != self.max_length:
            made = _running(self.tokenizer)
            side = (made.truncation or {}).get("direction", "right")
            made.no_padding()
            made.enable_truncation(int(self.max_length), direction=side)
            self._made = made  # last: another thread may look
        return made


def _running(tokenizer: Any) -> Any:
    try:
        from tokenizers import Tokenizer
    except ImportError:
        raise MissingExtra("SubwordEncoder", "torch") from None
    if not isinstance(tokenizer, str):
        raise InputError(
            "tokenizer must be the text of a tokenizer.json, got "
            f"{type(tokenizer).__name__}: read that file first."
        )
    try:
        return Tokenizer.from_str(tokenizer)
    except Exception as error:  # the tokenizers library raises bare exceptions
        reason = str(error).strip().partition("\n")[0][:120]
        raise InputError(
            f"tokenizer is not the text of a tokenizer.json ({reason}): get a fresh copy."
        ) from error
