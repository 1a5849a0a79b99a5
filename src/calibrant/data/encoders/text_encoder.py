"""Texts to word numbers: the vocabulary is that of the train texts alone."""

from __future__ import annotations

import json
from collections.abc import Mapping
from numbers import Integral
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from calibrant.data.encoders.ascii_words import ascii_words
from calibrant.data.encoders.table_columns import is_missing
from calibrant.errors import InputError, MissingExtra, NotFitted
from calibrant.inputs import IntArray

__all__ = ["PAD", "UNKNOWN", "TextEncoder", "as_text_column", "as_texts"]

FORMAT = 1
PAD, UNKNOWN = 0, 1
"""Numbers of the filler of short texts and of words outside the vocabulary."""

_SPECIAL = ["[PAD]", "[UNK]"]
_BATCH = 4096
"""Texts cut at a time: enough that a step over all of them costs nothing for each, and few enough
that they stay in the caches."""

_PARTS = ("normalizer", "pre_tokenizer", "post_processor")


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
        self._check_fitted()
        rows = as_text_column(texts)
        parts = [self._numbers(rows[i : i + _BATCH]) for i in range(0, len(rows), _BATCH)]
        tokens, counts = (np.concatenate(each) for each in zip(*parts, strict=True))
        return tokens, np.concatenate([[0], np.cumsum(counts)])

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
        made = ("_made", "_known", "_number_of")
        return {key: value for key, value in self.__dict__.items() if key not in made}

    def _tokenizer(self) -> Any:
        self._check_fitted()
        if getattr(self, "_made", None) is None:
            made = _library().Tokenizer.from_str(self.tokenizer_)
            made.enable_truncation(int(self.max_length))
            known: dict[str, int] = made.get_vocab() if _is_ours(made) else {}
            self._known = pa.array(list(known), pa.large_string())
            self._number_of = np.array([*known.values(), UNKNOWN])
            self._made = made  # last: another thread may look
        return self._made

    def _numbers(self, rows: pa.LargeStringArray) -> tuple[IntArray, IntArray]:
        """Return the words of some texts one after another, and how many each text has.

        ASCII texts are cut and looked up here, with the same result in a tenth of the time. A
        bracket may begin a special word, which only the tokenizer knows.
        """
        tokenizer = self._tokenizer()
        most = tokenizer.truncation["max_length"]
        plain = _is_plain(rows) if len(self._known) else np.zeros(len(rows), dtype=bool)
        if plain.all():
            return self._plain_numbers(rows, most)
        coded = [
            each.ids
            for each in tokenizer.encode_batch_fast(rows.filter(pa.array(~plain)).to_pylist())
        ]
        tokens, counts = _or_unknown(
            np.array([number for ids in coded for number in ids], dtype=np.int64),
            np.array([len(ids) for ids in coded]),
        )
        if not plain.any():
            return tokens, counts
        own, own_counts = self._plain_numbers(rows.filter(pa.array(plain)), most)
        both_counts = np.empty(len(rows), dtype=np.int64)
        both_counts[plain], both_counts[~plain] = own_counts, counts
        both, is_own = np.empty(int(both_counts.sum()), np.int64), np.repeat(plain, both_counts)
        both[is_own], both[~is_own] = own, tokens
        return both, both_counts

    def _plain_numbers(self, rows: pa.LargeStringArray, most: int) -> tuple[IntArray, IntArray]:
        """Return the words of texts that need no tokenizer."""
        words, counts = ascii_words(rows)
        place = pc.index_in(words, value_set=self._known).fill_null(len(self._known))
        return _or_unknown(*_shortened(self._number_of[place], counts, most))

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


def as_text_column(texts: Any, *, name: str = "texts") -> pa.LargeStringArray:
    """Read a list or a column of texts as an Arrow column; see `as_texts`.

    Examples
    --------
    >>> as_text_column(["It broke."]).to_pylist()
    ['It broke.']
    """
    if isinstance(texts, pa.Array | pa.ChunkedArray) and len(texts) and not texts.null_count:
        if pa.types.is_string(texts.type):
            texts = texts.cast(pa.large_string())
        if pa.types.is_large_string(texts.type):
            return texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts
    return pa.array(as_texts(texts, name=name), pa.large_string())


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


def _is_ours(tokenizer: Any) -> bool:
    """Whether a loaded tokenizer cuts texts as `fit` has it: a file may hold any other."""
    found, ours = (json.loads(each.to_str()) for each in (tokenizer, _untrained()))
    same = all(found[part] == ours[part] for part in _PARTS)
    model = {key: value for key, value in found["model"].items() if key != "vocab"}
    words = sorted((each["content"], each["id"]) for each in found["added_tokens"])
    special = [(word, number) for number, word in enumerate(_SPECIAL)]
    return (
        same and model == {"type": "WordLevel", "unk_token": _SPECIAL[UNKNOWN]} and words == special
    )


def _is_plain(rows: pa.LargeStringArray) -> NDArray[np.bool_]:
    plain = pc.and_not(pc.string_is_ascii(rows), pc.match_substring(rows, "["))
    return np.asarray(plain.to_numpy(zero_copy_only=False), dtype=bool)


def _shortened(tokens: IntArray, counts: IntArray, most: int) -> tuple[IntArray, IntArray]:
    """Keep the first words of each text."""
    if counts.max() <= most:
        return tokens, counts
    starts = np.cumsum(counts) - counts
    place = np.arange(len(tokens)) - np.repeat(starts, counts)
    return tokens[place < most], np.minimum(counts, most)


def _or_unknown(tokens: IntArray, counts: IntArray) -> tuple[IntArray, IntArray]:
    """Give a text without words one unknown word."""
    if counts.all():
        return tokens, counts
    starts = np.cumsum(counts) - counts
    return np.insert(tokens, starts[counts == 0], UNKNOWN), np.maximum(counts, 1)
