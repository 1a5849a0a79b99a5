"""Texts to word numbers: the vocabulary is that of the train texts alone."""

from __future__ import annotations

import json
from collections.abc import Mapping
from numbers import Integral
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from calibrant.data.table_columns import is_missing
from calibrant.errors import InputError, MissingExtra, NotFitted
from calibrant.inputs import IntArray

__all__ = ["PAD", "UNKNOWN", "TextEncoder", "as_texts"]

FORMAT = 1
PAD, UNKNOWN = 0, 1
"""Numbers of the filler of short texts and of words outside the vocabulary."""

_SPECIAL = ["[PAD]", "[UNK]"]
_BATCH = 4096
"""Texts handed to the tokenizer at a time, which spreads them over the cores."""


class TextEncoder:
    r"""Turn texts into numbers of words, with the vocabulary of the texts it was fitted on.

    A text is brought into Unicode form NFKC and lower case, and cut into runs of letters and
    digits and runs of other signs. Each is numbered by how often the train texts hold it, the most
    frequent first, equals in alphabetical order: the same texts give the same numbers in any order.
    0 fills up short texts, 1 stands for a word outside the vocabulary; a text without words is one
    such word. The first `max_length` words count.

    `fit` learns, `encode` never does: give `fit` the train texts only.

    It is not a sub-word tokenizer: a misspelt word is unknown, and a language written without
    spaces becomes one word for each run of letters.

    Parameters
    ----------
    vocabulary : the largest number of different words kept, the two special ones included
    min_count : a word is kept if the train texts hold it at least so often
    max_length : words of a text that are read

    Attributes
    ----------
    tokenizer_ : what was learned, as the text of a `tokenizer.json`, which the `tokenizers` and
        `transformers` libraries read

    Examples
    --------
    >>> encoder = TextEncoder(min_count=1).fit(["It broke.", "It is broken"])
    >>> encoder.words
    ('[PAD]', '[UNK]', 'it', '.', 'broke', 'broken', 'is')
    >>> tokens, offsets = encoder.encode(["It IS wet", ""])
    >>> tokens, offsets
    (array([2, 6, 1, 1]), array([0, 3, 4]))
    """

    def __init__(
        self, *, vocabulary: int = 20_000, min_count: int = 2, max_length: int = 256
    ) -> None:
        self.vocabulary = vocabulary
        self.min_count = min_count
        self.max_length = max_length

    def fit(self, texts: Any) -> Self:
        """Learn the vocabulary of the train texts."""
        self._check_options()
        train = as_texts(texts)
        tokenizer = _untrained()
        from tokenizers.trainers import WordLevelTrainer

        trainer = WordLevelTrainer(
            vocab_size=int(self.vocabulary),
            min_frequency=int(self.min_count),
            show_progress=False,
            special_tokens=_SPECIAL,
        )
        tokenizer.train_from_iterator(train, trainer, length=len(train))
        if tokenizer.get_vocab_size() == len(_SPECIAL):
            raise InputError(
                f"texts hold no word at least {self.min_count} times: give more texts, or lower "
                "min_count."
            )
        self.tokenizer_ = str(tokenizer.to_str())
        self._made: Any = None
        return self

    def encode(self, texts: Any) -> tuple[IntArray, IntArray]:
        """Return the words of all texts one after another, and where each text begins.

        Text i is `tokens[offsets[i]:offsets[i + 1]]`; `offsets` has one entry more than there are
        texts. No text is empty.
        """
        tokenizer = self._tokenizer()
        rows = as_texts(texts)
        found: list[NDArray[np.int64]] = []
        lengths = np.empty(len(rows), dtype=np.int64)
        for start in range(0, len(rows), _BATCH):
            for i, coded in enumerate(tokenizer.encode_batch_fast(rows[start : start + _BATCH])):
                words = np.array(coded.ids or [UNKNOWN], dtype=np.int64)
                found.append(words)
                lengths[start + i] = len(words)
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        return np.concatenate(found), offsets

    @property
    def words(self) -> tuple[str, ...]:
        """The vocabulary, in the order of its numbers."""
        known = self._tokenizer().get_vocab()
        return tuple(sorted(known, key=known.__getitem__))

    def to_dict(self) -> dict[str, Any]:
        """Return options and what was learned as JSON."""
        self._check_fitted()
        return {
            "format": FORMAT,
            "kind": "text",
            "options": {
                "vocabulary": int(self.vocabulary),
                "min_count": int(self.min_count),
                "max_length": int(self.max_length),
            },
            "tokenizer": json.loads(self.tokenizer_),
        }

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> TextEncoder:
        """Rebuild from `to_dict`."""
        if saved.get("format") != FORMAT or saved.get("kind") != "text":
            raise InputError(
                f"this is not a text encoder of format {FORMAT}: got format "
                f"{saved.get('format')!r} and kind {saved.get('kind')!r}."
            )
        made = cls(**saved["options"])
        made.tokenizer_ = json.dumps(saved["tokenizer"], ensure_ascii=False)
        return made

    def __getstate__(self) -> dict[str, Any]:
        """Leave the running tokenizer out: its text is kept, and makes it again."""
        return {key: value for key, value in self.__dict__.items() if key != "_made"}

    def _tokenizer(self) -> Any:
        self._check_fitted()
        if getattr(self, "_made", None) is None:
            self._made = _library().Tokenizer.from_str(self.tokenizer_)
            self._made.enable_truncation(int(self.max_length))
        return self._made

    def _check_fitted(self) -> None:
        if not hasattr(self, "tokenizer_"):
            raise NotFitted(
                "this TextEncoder has not learned any words yet: call fit with the train texts."
            )

    def _check_options(self) -> None:
        for option, least in (("vocabulary", 3), ("min_count", 1), ("max_length", 1)):
            value = getattr(self, option)
            if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
                raise InputError(f"{option} must be a whole number >= {least}, got {value!r}.")


def as_texts(texts: Any, *, name: str = "texts") -> list[str]:
    """Read a list or a column of texts; anything that is not a text is refused with its row."""
    _refuse_no_column(texts, name)
    if isinstance(texts, pa.Array | pa.ChunkedArray):
        rows: list[Any] = texts.to_pylist()
    else:
        rows = texts.tolist() if hasattr(texts, "tolist") else list(texts)
    if not rows:
        raise InputError(f"{name} is empty: at least one text is needed.")
    for i, text in enumerate(rows):
        if not isinstance(text, str):
            shown = "missing" if is_missing(text) else f"{text!r}"[:60]
            raise InputError(
                f"{name} row {i} is {shown}, not a text: drop that row, or write '' for no text."
            )
        if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
            raise InputError(f"{name} row {i} is not valid Unicode: repair that text.")
    return rows


def _refuse_no_column(texts: Any, name: str) -> None:
    """Refuse what is no column, each with its remedy."""
    if texts is None or isinstance(texts, str | bytes | Mapping):
        raise InputError(
            f"{name} must be a list or a column of texts, got {type(texts).__name__}: put a single "
            "text into a list."
        )
    if isinstance(texts, set | frozenset):
        raise InputError(f"{name} is a set, which has no order: give the texts as a list.")
    if hasattr(texts, "columns") or hasattr(texts, "column_names") or _dimensions(texts) != 1:
        raise InputError(
            f"{name} must be one column of texts, got a table: choose its column of texts."
        )


def _dimensions(texts: Any) -> int:
    return len(getattr(texts, "shape", (0,)))


def _library() -> Any:
    try:
        import tokenizers
    except ImportError:
        raise MissingExtra("TextEncoder", "torch") from None
    return tokenizers


def _untrained() -> Any:
    library = _library()
    from tokenizers import normalizers, pre_tokenizers

    tokenizer = library.Tokenizer(library.models.WordLevel(unk_token=_SPECIAL[UNKNOWN]))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    return tokenizer
