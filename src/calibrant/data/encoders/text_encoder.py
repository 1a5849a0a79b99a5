"""Encoding of texts as word ids, with the vocabulary of the train texts."""

from __future__ import annotations

import json
import string
from collections.abc import Mapping
from numbers import Integral
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from calibrant.data.encoders.table_columns import is_missing
from calibrant.errors import InputError, MissingExtra, NotFitted
from calibrant.inputs import IntArray

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


FORMAT = 1


PAD, UNKNOWN = 0, 1
"""Ids of padding and of words outside the vocabulary."""


_SPECIAL = ["[PAD]", "[UNK]"]


_BATCH = 4096
"""Texts per batch: enough to amortise overhead, few enough to stay in the CPU caches."""


_PARTS = ("normalizer", "pre_tokenizer", "post_processor")


class TextEncoder:
    r"""Encode texts as word ids, with the vocabulary of the train texts.

    A text is normalised to Unicode form NFKC and lower case, and split into runs of letters and
    digits and runs of other characters. Words are numbered by frequency in the train texts, ties in
    alphabetical order, so that the order of the texts does not matter. 0 is padding and 1 is a word
    outside the vocabulary; an empty text is encoded as one unknown word. Texts are truncated to
    `max_length` words.

    Only `fit` learns: pass it the train texts only.

    This is not a sub-word tokenizer: a misspelt word is unknown, and in a language without spaces
    each run of letters is one word.

    Parameters
    ----------
    vocabulary : maximum size of the vocabulary, including the two special words
    min_count : minimum frequency of a word in the train texts
    max_length : maximum number of words per text

    Attributes
    ----------
    tokenizer_ : the fitted tokenizer as the text of a `tokenizer.json`, readable by the
        `tokenizers` and `transformers` libraries

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
        tokenizer = _new_tokenizer()
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
                f"no word occurs at least {self.min_count} times in texts: give more texts, or "
                "lower min_count."
            )
        self.tokenizer_ = str(tokenizer.to_str())
        self._cached: Any = None
        return self

    def encode(self, texts: Any) -> tuple[IntArray, IntArray]:
        """Return the word ids of all texts, concatenated, and the offsets (n + 1,) of the texts.

        Text i is `tokens[offsets[i]:offsets[i + 1]]`, with at least one word.
        """
        self._check_fitted()
        rows = as_text_column(texts)
        parts = [self._numbers(rows[i : i + _BATCH]) for i in range(0, len(rows), _BATCH)]
        tokens, counts = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        return tokens, np.concatenate([[0], np.cumsum(counts)])

    @property
    def words(self) -> tuple[str, ...]:
        """The vocabulary by id."""
        known = self._tokenizer().get_vocab()
        return tuple(sorted(known, key=known.__getitem__))

    def to_dict(self) -> dict[str, Any]:
        """Return options and fitted state as JSON values."""
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
        encoder = cls(**saved["options"])
        encoder._check_options()
        encoder.tokenizer_ = json.dumps(saved["tokenizer"], ensure_ascii=False)
        return encoder

    def __getstate__(self) -> dict[str, Any]:
        """Exclude the cached tokenizer, which is rebuilt from its JSON text."""
        caches = ("_cached", "_known", "_number_of")
        return {key: value for key, value in self.__dict__.items() if key not in caches}

    def _tokenizer(self) -> Any:
        self._check_fitted()
        if getattr(self, "_cached", None) is None:
            tokenizer = _import_tokenizers().Tokenizer.from_str(self.tokenizer_)
            tokenizer.enable_truncation(int(self.max_length))
            vocabulary: dict[str, int] = tokenizer.get_vocab() if _is_own_format(tokenizer) else {}
            self._known = pa.array(list(vocabulary), pa.large_string())
            self._number_of = np.array([*vocabulary.values(), UNKNOWN])
            self._cached = tokenizer  # last, for thread safety
        return self._cached

    def _numbers(self, rows: pa.LargeStringArray) -> tuple[IntArray, IntArray]:
        """Return the word ids of a batch of texts, concatenated, and the number per text.

        ASCII texts take a vectorised path with the same result in a tenth of the time. A bracket
        may start a special word, so texts with one go through the tokenizer.
        """
        tokenizer = self._tokenizer()
        most = tokenizer.truncation["max_length"]
        plain = _is_plain(rows) if len(self._known) else np.zeros(len(rows), dtype=bool)
        if plain.all():
            return self._plain_numbers(rows, most)
        ids_of_texts = [
            encoding.ids
            for encoding in tokenizer.encode_batch_fast(rows.filter(pa.array(~plain)).to_pylist())
        ]
        tokens, counts = _fill_empty_texts(
            np.array([number for ids in ids_of_texts for number in ids], dtype=np.int64),
            np.array([len(ids) for ids in ids_of_texts]),
        )
        if not plain.any():
            return tokens, counts
        plain_tokens, plain_counts = self._plain_numbers(rows.filter(pa.array(plain)), most)
        both_counts = np.empty(len(rows), dtype=np.int64)
        both_counts[plain], both_counts[~plain] = plain_counts, counts
        both, is_plain = np.empty(int(both_counts.sum()), np.int64), np.repeat(plain, both_counts)
        both[is_plain], both[~is_plain] = plain_tokens, tokens
        return both, both_counts

    def _plain_numbers(
        self, rows: pa.LargeStringArray, max_length: int
    ) -> tuple[IntArray, IntArray]:
        """Encode ASCII texts without the tokenizer."""
        words, counts = ascii_words(rows)
        position = pc.index_in(words, value_set=self._known).fill_null(len(self._known))
        return _fill_empty_texts(*_truncate(self._number_of[position], counts, max_length))

    def _check_fitted(self) -> None:
        if not hasattr(self, "tokenizer_"):
            raise NotFitted("this TextEncoder is not fitted yet: call fit with the train texts.")

    def _check_options(self) -> None:
        for option, least in (("vocabulary", 3), ("min_count", 1), ("max_length", 1)):
            value = getattr(self, option)
            if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
                raise InputError(f"{option} must be a whole number >= {least}, got {value!r}.")


def as_text_column(texts: Any, *, name: str = "texts") -> pa.LargeStringArray:
    """Convert a list or a column of texts to an Arrow column; see `as_texts`.

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
    """Convert a list or a column of texts to a list; raise `InputError` for other values."""
    _reject_non_column(texts, name)
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
                f"{name} row {i} is {shown}, not text: drop that row, or use '' for an empty text."
            )
        if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
            raise InputError(f"{name} row {i} is not valid Unicode: correct that text.")
    return rows


def _reject_non_column(texts: Any, name: str) -> None:
    """Reject inputs that are not a column of texts."""
    if texts is None or isinstance(texts, str | bytes | Mapping):
        raise InputError(
            f"{name} must be a list or a column of texts, got {type(texts).__name__}: put a single "
            "text into a list."
        )
    if isinstance(texts, set | frozenset):
        raise InputError(f"{name} is a set, which has no order: use a list.")
    if hasattr(texts, "columns") or hasattr(texts, "column_names") or _dimensions(texts) != 1:
        raise InputError(
            f"{name} must be one column of texts, got a table: select its text column."
        )


def _dimensions(texts: Any) -> int:
    return len(getattr(texts, "shape", (0,)))


def _import_tokenizers() -> Any:
    try:
        import tokenizers
    except ImportError:
        raise MissingExtra("TextEncoder", "torch") from None
    return tokenizers


def _new_tokenizer() -> Any:
    library = _import_tokenizers()
    from tokenizers import normalizers, pre_tokenizers

    tokenizer = library.Tokenizer(library.models.WordLevel(unk_token=_SPECIAL[UNKNOWN]))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    return tokenizer


def _is_own_format(tokenizer: Any) -> bool:
    """Return whether a tokenizer is configured as by `fit`, so that the fast path applies."""
    loaded, expected = (json.loads(encoding.to_str()) for encoding in (tokenizer, _new_tokenizer()))
    same = all(loaded[part] == expected[part] for part in _PARTS)
    model = {key: value for key, value in loaded["model"].items() if key != "vocab"}
    words = sorted((encoding["content"], encoding["id"]) for encoding in loaded["added_tokens"])
    special = [(word, number) for number, word in enumerate(_SPECIAL)]
    return (
        same and model == {"type": "WordLevel", "unk_token": _SPECIAL[UNKNOWN]} and words == special
    )


def _is_plain(rows: pa.LargeStringArray) -> NDArray[np.bool_]:
    plain = pc.and_not(pc.string_is_ascii(rows), pc.match_substring(rows, "["))
    return np.asarray(plain.to_numpy(zero_copy_only=False), dtype=bool)


def _truncate(tokens: IntArray, counts: IntArray, max_length: int) -> tuple[IntArray, IntArray]:
    """Truncate each text to its first words."""
    if counts.max() <= max_length:
        return tokens, counts
    starts = np.cumsum(counts) - counts
    position = np.arange(len(tokens)) - np.repeat(starts, counts)
    return tokens[position < max_length], np.minimum(counts, max_length)


def _fill_empty_texts(tokens: IntArray, counts: IntArray) -> tuple[IntArray, IntArray]:
    """Encode empty texts as one unknown word."""
    if counts.all():
        return tokens, counts
    starts = np.cumsum(counts) - counts
    return np.insert(tokens, starts[counts == 0], UNKNOWN), np.maximum(counts, 1)
