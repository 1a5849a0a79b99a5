"""TextEncoder: the vocabulary of the train texts alone, the same in every order of rows."""

import gzip
import json
import pickle
import re
import subprocess
import sys
import unicodedata
from collections import Counter
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.data_sets import data_file
from tests.sentences import refuses
from tokenizers import Tokenizer

from calibrant.data import TextEncoder
from calibrant.data.encoders.text_encoder import PAD, UNKNOWN, as_text_column, as_texts
from calibrant.errors import InputError, NotFitted

TEXTS = ["It broke.", "It is broken", "Broken, again!"]


def rows_of(encoder, texts):
    tokens, offsets = encoder.encode(texts)
    return [tokens[a:b].tolist() for a, b in pairwise(offsets)]


def plain_words(text):
    return re.findall(r"\w+|[^\w\s]+", unicodedata.normalize("NFKC", text).lower())


def test_numbers_follow_frequency_then_the_alphabet():
    encoder = TextEncoder(min_count=1).fit(TEXTS)
    counts = Counter(word for text in TEXTS for word in plain_words(text))
    order = sorted(counts, key=lambda word: (-counts[word], word))
    assert encoder.words == ("[PAD]", "[UNK]", *order)
    assert (PAD, UNKNOWN) == (0, 1)


def test_texts_by_hand():
    encoder = TextEncoder(min_count=1).fit(TEXTS)
    number = {word: i for i, word in enumerate(encoder.words)}
    it, broken, end = number["it"], number["broken"], number["."]
    assert rows_of(encoder, ["IT broken.", "it melted"]) == [[it, broken, end], [it, UNKNOWN]]
    tokens, offsets = encoder.encode(["IT broken."])
    assert tokens.dtype == offsets.dtype == np.int64


def test_a_text_without_words_is_one_unknown_word():
    encoder = TextEncoder(min_count=1).fit(TEXTS)
    assert rows_of(encoder, ["", " \n", "it"]) == [
        [UNKNOWN],
        [UNKNOWN],
        [encoder.words.index("it")],
    ]


def test_long_texts_lose_their_end():
    encoder = TextEncoder(min_count=1, max_length=2).fit(TEXTS)
    assert rows_of(encoder, ["it is broken again"]) == rows_of(encoder, ["it is"])


def test_width_and_case_of_letters_make_no_difference():
    encoder = TextEncoder(min_count=1).fit(TEXTS)
    assert rows_of(encoder, ["ＢＲＯＫＥＮ"]) == rows_of(encoder, ["broken"])


def test_rare_words_and_words_beyond_the_vocabulary_are_unknown():
    assert TextEncoder(min_count=2).fit(TEXTS).words == ("[PAD]", "[UNK]", "broken", "it")
    assert TextEncoder(min_count=1, vocabulary=3).fit(TEXTS).words == ("[PAD]", "[UNK]", "broken")


def test_the_order_of_train_texts_has_no_say_and_encoding_learns_nothing():
    encoder = TextEncoder(min_count=1).fit(TEXTS)
    assert TextEncoder(min_count=1).fit(TEXTS[::-1]).to_dict() == encoder.to_dict()
    before = encoder.tokenizer_
    alone = rows_of(encoder, ["a wholly new text"])
    assert rows_of(encoder, ["a wholly new text", "and another"])[:1] == alone
    assert encoder.tokenizer_ == before


@pytest.mark.parametrize("make", [list, tuple, np.array, pd.Series, pl.Series, pa.array])
def test_columns_of_any_kind_hold_texts(make):
    encoder = TextEncoder(min_count=1).fit(make(TEXTS))
    assert encoder.to_dict() == TextEncoder(min_count=1).fit(TEXTS).to_dict()
    assert rows_of(encoder, make(TEXTS)) == rows_of(encoder, TEXTS)


def test_the_encoder_survives_json_and_pickle():
    encoder = TextEncoder(min_count=1, max_length=3).fit(TEXTS)
    encoder.encode(TEXTS)
    for again in (
        TextEncoder.from_dict(json.loads(json.dumps(encoder.to_dict()))),
        pickle.loads(pickle.dumps(encoder)),
    ):
        assert again.to_dict() == encoder.to_dict()
        assert rows_of(again, TEXTS) == rows_of(encoder, TEXTS)


def test_the_tokenizers_library_reads_what_is_saved():
    encoder = TextEncoder(min_count=1).fit(TEXTS)
    tokenizer = Tokenizer.from_str(encoder.tokenizer_)
    assert [tokenizer.encode(text).ids for text in TEXTS] == rows_of(encoder, TEXTS)


@pytest.mark.parametrize(
    ("texts", "sentence"),
    [
        ("one text", ("got str", "put", "single text", "list")),
        (None, ("got NoneType",)),
        ({"text": ["a"]}, ("got dict",)),
        ({"a", "b"}, ("texts is a set", "list")),
        ([], ("texts is empty",)),
        (["a", None], ("row 1", "missing", "not text", "drop")),
        (pd.Series(["a", np.nan], dtype=object), ("row 1 is missing",)),
        (["a", 3], ("row 1", "1 is 3", "not text")),
        (["a", "b\ud800"], ("row 1", "not valid Unicode")),
        (pd.DataFrame({"text": ["a"]}), ("got a table", "select", "text column")),
        (pa.table({"text": ["a"]}), ("got a table",)),
        (np.array([["a"]]), ("got a table",)),
    ],
)
def test_what_is_no_column_of_texts_is_refused(texts, sentence):
    with refuses(InputError, *sentence):
        as_texts(texts)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"vocabulary": 2}, ("vocabulary", "whole number >= 3", "got 2")),
        ({"min_count": True}, ("min_count", "whole number >= 1", "got True")),
        ({"min_count": 0}, ("min_count", "whole number >= 1")),
        ({"max_length": 2.5}, ("max_length", "whole number >= 1", "got 2.5")),
        ({"min_count": 4}, ("no word", "at least 4 times")),
    ],
)
def test_options_that_leave_no_words_are_refused(options, sentence):
    with refuses(InputError, *sentence):
        TextEncoder(**options).fit(TEXTS)


def test_numbers_of_numpy_are_options():
    encoder = TextEncoder(min_count=np.int64(1), max_length=np.int32(3)).fit(TEXTS)
    again = TextEncoder.from_dict(json.loads(json.dumps(encoder.to_dict())))
    assert (again.min_count, again.max_length) == (1, 3)


def test_nothing_works_before_fit():
    for use in (lambda: TextEncoder().encode(TEXTS), TextEncoder().to_dict):
        with refuses(NotFitted, "call fit with the train texts"):
            use()
    with refuses(InputError, "not a text encoder"):
        TextEncoder.from_dict({"format": 1, "kind": "table"})


@pytest.mark.parametrize("value", [0, -1, 2.5, "9", True, None])
def test_options_that_fit_would_refuse_are_not_loaded(value):
    saved = TextEncoder(min_count=1).fit(TEXTS).to_dict()
    saved["options"]["max_length"] = value
    with refuses(InputError, "max_length", repr(value)):
        TextEncoder.from_dict(saved)


def test_without_the_tokenizers_library_the_extra_is_named():
    code = (
        "import sys; sys.modules['tokenizers'] = None\n"
        "from calibrant.data import TextEncoder\n"
        "try: TextEncoder().fit(['a a'])\n"
        "except ImportError as error: print(error)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'calibrant[torch]'" in ran.stdout


@pytest.mark.data
def test_real_messages_are_read_as_a_plain_transcription_reads_them():
    with gzip.open(data_file("sms_spam", "sms_spam.jsonl.gz"), "rt", encoding="utf-8") as file:
        texts = [json.loads(line)["text"] for line in file]
    train, other = texts[:3000], texts[3000:]
    encoder = TextEncoder(vocabulary=2000, max_length=30).fit(train)
    counts = Counter(word for text in train for word in plain_words(text))
    often = sorted((w for w in counts if counts[w] > 1), key=lambda word: (-counts[word], word))
    assert encoder.words == ("[PAD]", "[UNK]", *often[:1998])
    number = {word: i for i, word in enumerate(encoder.words)}
    expected = [
        [number.get(word, UNKNOWN) for word in plain_words(text)[:30]] or [UNKNOWN]
        for text in other
    ]
    assert rows_of(encoder, other) == expected


ENCODER = TextEncoder(min_count=1, max_length=7).fit([*TEXTS, "caf\u00e9 \u00df a_b 42 ... ([x])"])
ODD = ["[PAD]", "[UNK]", "\u00e9", "\u0130", "e\u0301", "\uff21", "\u200d", "caf\u00e9"]
LETTERS = st.sampled_from([*"aB4.,[]()_ \t\n\r\x00\x1c\x1f\x85\xa0", "it ", "BROKE", *ODD])


@given(st.lists(st.lists(LETTERS, max_size=12).map("".join), min_size=1, max_size=5))
@example(["[PAD] it", "it [UNK]", "[pad]", "it\x1cbroke", ""])
def test_the_fast_way_gives_what_the_tokenizer_gives(texts):
    tokenizer = Tokenizer.from_str(ENCODER.tokenizer_)
    tokenizer.enable_truncation(7)
    due = [tokenizer.encode(text).ids or [UNKNOWN] for text in texts]
    assert rows_of(ENCODER, texts) == due


@given(st.text(st.characters(max_codepoint=127), max_size=40))
def test_every_ascii_text_is_cut_as_the_tokenizer_cuts_it(text):
    tokenizer = Tokenizer.from_str(ENCODER.tokenizer_)
    assert rows_of(ENCODER, [text]) == [tokenizer.encode(text).ids[:7] or [UNKNOWN]]


def test_a_tokenizer_of_another_kind_is_followed():
    """A tokenizer.json may come from elsewhere, such as one that keeps capitals."""
    saved = TextEncoder(min_count=1).fit(TEXTS).to_dict()
    saved["tokenizer"]["normalizer"] = None
    other = TextEncoder.from_dict(saved)
    assert rows_of(other, ["It it"]) == [[UNKNOWN, other.words.index("it")]]


def test_arrow_columns_pass_as_they_are_and_others_become_one():
    texts = pa.array(TEXTS, pa.large_string())
    assert as_text_column(texts) is texts
    chunks = pa.chunked_array([TEXTS[:1], TEXTS[1:]])
    for given_ in (TEXTS, pa.array(TEXTS), chunks, pa.array(TEXTS).dictionary_encode()):
        assert as_text_column(given_).equals(texts)
    assert rows_of(ENCODER, chunks.slice(1)) == rows_of(ENCODER, TEXTS[1:])


@pytest.mark.parametrize(
    ("texts", "sentence"),
    [
        (pa.array([], pa.string()), ("texts is empty",)),
        (pa.array(["a", None]), ("row 1 is missing",)),
        (pa.array([1, 2]), ("row 0", "0 is 1", "not text")),
    ],
)
def test_arrow_columns_that_hold_no_texts_are_refused(texts, sentence):
    with refuses(InputError, *sentence):
        as_text_column(texts)


def test_texts_of_all_kinds_keep_their_rows_in_a_long_column():
    kinds = ["it broke", "", "caf\u00e9 it", "[UNK] it", "it " * 9, "\u00a0"]
    alone = [rows_of(ENCODER, [text])[0] for text in kinds]
    assert rows_of(ENCODER, kinds * 1500) == alone * 1500  # more than are cut at a time
