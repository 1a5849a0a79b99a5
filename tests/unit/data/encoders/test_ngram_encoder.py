"""NgramEncoder: n-grams in any script and of any length, weights as by hand and by scikit-learn."""

import gzip
import json
import math
import pickle
import unicodedata

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from tests.data_sets import data_file
from tests.sentences import refuses

from calibrant.data import NgramEncoder
from calibrant.data.encoders.ngram_keys import (
    keys_of_names,
    list_ngrams,
    name_ngrams,
    normalise_text,
    read_characters,
)
from calibrant.data.encoders.ngram_vocabulary import split_batches
from calibrant.errors import InputError, NotFitted

WORDS = {"characters": None, "min_count": 1}
CHARACTERS = {"words": None, "min_count": 1}


def names_of(encoder):
    return set(encoder.get_feature_names_out().tolist())


def weights_of(encoder, text):
    row = encoder.transform([text])
    names = encoder.get_feature_names_out()
    return dict(zip(names[row.indices].tolist(), row.data.tolist(), strict=True))


def listed(text, kind, lengths):
    read = read_characters([text])
    found = list_ngrams(read, kind, lengths)
    return [
        name
        for each in found
        for name in name_ngrams(read, kind, each.starts, np.full(len(each.starts), each.length))
    ]


def test_words_and_pairs_of_words():
    text = "It broke, AGAIN!  Really"
    assert listed(text, "words", (1, 1)) == ["it", "broke", ",", "again", "!", "really"]
    assert listed(text, "words", (2, 2)) == [
        "it broke", "broke ,", ", again", "again !", "! really",
    ]  # fmt: skip


def test_characters_lie_within_a_word_with_a_space_at_both_ends():
    assert listed("ab c", "characters", (1, 1)) == ["a", "b", "c"]
    assert listed("ab c", "characters", (2, 2)) == [" a", "ab", "b ", " c", "c "]
    assert listed("ab c", "characters", (3, 4)) == [" ab", "ab ", " c ", " ab "]


def test_weights_by_hand():
    encoder = NgramEncoder(words=(1, 1), characters=None, min_count=1)
    matrix = encoder.fit_transform(["cat cat dog", "cat"])
    often, rare = 1 + math.log(3 / 3), 1 + math.log(3 / 2)
    raw = [(1 + math.log(2)) * often, rare]
    length = math.hypot(*raw)
    found = weights_of(encoder, "cat cat dog")
    assert found == pytest.approx({"cat": raw[0] / length, "dog": raw[1] / length}, rel=1e-6)
    assert matrix.toarray()[1].tolist() == [1.0, 0.0]


def test_both_kinds_have_length_one():
    encoder = NgramEncoder(min_count=1).fit(["it came broken", "too small"])
    row = encoder.transform(["it is broken"])
    n_words = len(encoder.vocabularies_[0])
    lengths = [np.linalg.norm(row.data[row.indices < n_words])]
    lengths += [np.linalg.norm(row.data[row.indices >= n_words])]
    assert lengths == pytest.approx([1.0, 1.0], rel=1e-6)


@pytest.mark.data
@pytest.mark.parametrize("span", [(2, 2), (2, 5), (3, 4)])
def test_characters_are_those_of_scikit_learn(span):
    with gzip.open(data_file("banking77", "banking77.jsonl.gz"), "rt") as file:
        texts = [json.loads(line)["text"] for line in file][:1500]
    own = NgramEncoder(words=None, characters=span, min_count=2)
    weights = own.fit_transform(texts)
    peer = TfidfVectorizer(
        analyzer="char_wb",
        ngram_range=span,
        min_df=2,
        sublinear_tf=True,
        preprocessor=normalise_text,
    )
    expected = peer.fit_transform(texts)
    theirs = [f"'{name}'" for name in peer.get_feature_names_out()]
    assert names_of(own) == set(theirs)
    column = {name: i for i, name in enumerate(own.get_feature_names_out().tolist())}
    aligned = weights[:, [column[name] for name in theirs]]
    assert abs(aligned - expected).max() < 1e-6


def test_words_are_those_of_scikit_learn():
    texts = ["it is wet, wet", "Is it dry?", "dry dry it is"]
    peer = CountVectorizer(ngram_range=(1, 2), token_pattern=r"\w+|[^\w\s]+").fit(texts)
    assert names_of(NgramEncoder(**WORDS).fit(texts)) == set(peer.get_feature_names_out())


def test_japanese_and_chinese_need_no_spaces():
    texts = ["商品が壊れていました", "サイズが小さすぎる", "到着时商品已损坏", "尺寸太小"]
    encoder = NgramEncoder(min_count=1).fit(texts)
    assert {"'壊れ'", "'小さす'", "'损坏'", "'太小'"} <= names_of(encoder)
    assert not encoder.is_unknown(encoder.transform(["壊れた", "坏了"])).any()


def test_german_folds_case_and_sharp_s():
    encoder = NgramEncoder(**WORDS).fit(["Die GRÖSSE passt nicht", "Straße"])
    assert weights_of(encoder, "größe").keys() == {"grösse"}
    assert weights_of(encoder, "STRASSE").keys() == {"strasse"}


def test_an_emoji_is_a_word():
    encoder = NgramEncoder(**WORDS).fit(["great 👍", "bad 👎🏽"])
    assert {"👍", "great 👍"} <= names_of(encoder)
    assert weights_of(encoder, "so good 👍").keys() == {"👍"}


def test_combining_characters_make_no_difference():
    composed, apart = "café naïve", unicodedata.normalize("NFD", "CAFÉ NAÏVE")
    encoder = NgramEncoder(min_count=1).fit([composed])
    assert weights_of(encoder, apart) == weights_of(encoder, composed)
    assert names_of(NgramEncoder(**WORDS).fit(["नमस्ते दुनिया"])) == {"नमस्ते", "दुनिया", "नमस्ते दुनिया"}


def test_a_text_of_a_megabyte_and_one_of_combining_marks_alone_are_read():
    long = "it came broken and wet " * 50_000
    marks = "a" + "\u0301\u0323" * 500_000  # in the order that takes the longest to sort
    encoder = NgramEncoder(min_count=1).fit(["it came broken", "wet"])
    weights = encoder.transform([long, marks, "it came broken and wet"])
    n_words = len(encoder.vocabularies_[0])
    assert (weights[0] != 0).sum() >= (weights[2] != 0).sum()
    assert weights[0].data[weights[0].indices < n_words].size == 6
    assert np.isfinite(weights.data).all()


def test_texts_without_known_ngrams_are_unknown():
    encoder = NgramEncoder(min_count=1).fit(["broken", "small"])
    weights = encoder.transform(["", " \n\t", "yyy", "small"])
    assert encoder.is_unknown(weights).tolist() == [True, True, True, False]


def test_the_vocabulary_is_bounded_by_documents_and_size():
    texts = ["one two", "one two three three three", "one"]
    often = NgramEncoder(words=(1, 1), characters=None, min_count=2).fit(texts)
    assert names_of(often) == {"one", "two"}
    small = NgramEncoder(words=(1, 1), characters=None, vocabulary=2).fit(texts)
    assert small.get_feature_names_out().tolist() == ["one", "two"]


def test_the_order_of_the_texts_makes_no_difference():
    texts = ["it came broken", "broken on arrival", "too small", "a size too small"]
    one, other = (NgramEncoder(min_count=1, vocabulary=20).fit(t) for t in (texts, texts[::-1]))
    assert one.to_dict() == other.to_dict()


def test_batches_make_no_difference(monkeypatch):
    texts = [f"text {i} of {i % 7} parts" for i in range(60)] + ["", "x" * 90]
    whole = NgramEncoder()
    expected = whole.fit_transform(texts)
    monkeypatch.setattr(
        "calibrant.data.encoders.ngram_vocabulary.split_batches",
        lambda texts: split_batches(texts, 50),
    )
    parts = NgramEncoder()
    found = parts.fit_transform(texts)
    assert parts.to_dict() == whole.to_dict()
    assert (found != expected).nnz == 0


def test_the_weights_of_a_text_do_not_depend_on_the_others():
    texts = ["it came broken", "größe ß", "", "too small for me 👍", "商品が壊れて"] * 3
    encoder = NgramEncoder(min_count=1)
    together = encoder.fit_transform(texts)
    assert (encoder.transform(texts) != together).nnz == 0
    for i, text in enumerate(texts):
        assert (encoder.transform([text]) != together[i]).nnz == 0


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=30), min_size=1))
def test_a_saved_encoder_gives_the_same_weights_for_any_texts(texts):
    encoder = NgramEncoder(min_count=1).fit([*texts, "one word"])
    saved = json.loads(json.dumps(encoder.to_dict()))
    loaded = NgramEncoder.from_dict(saved)
    assert loaded.to_dict() == encoder.to_dict()
    assert (loaded.transform(texts) != encoder.transform(texts)).nnz == 0
    for vocabulary in encoder.vocabularies_:
        known = [name.encode("utf-8", "surrogatepass") for name in vocabulary.names]
        assert len(set(known)) == len(known)


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_ngrams_of_characters_are_as_a_slow_version_lists_them(text):
    expected = []
    for n in (1, 2, 3):
        for run in normalise_text(text).split():
            padded = f" {run} " if n > 1 else run
            expected += [padded[i : i + n] for i in range(len(padded) - n + 1)]
    assert sorted(listed(text, "characters", (1, 3))) == sorted(expected)


def test_names_have_the_keys_of_their_ngrams():
    read = read_characters(["it's größer, ок 👍 壊れて", "ab"])
    for kind in ("words", "characters"):
        for each in list_ngrams(read, kind, (1, 4)):
            names = name_ngrams(read, kind, each.starts, np.full(len(each.starts), each.length))
            assert np.array_equal(keys_of_names(names, kind), each.keys)


def test_different_ngrams_have_different_keys():
    names = [f"{a}{b}{c}" for a in "abcdefghij" for b in "klmnopqrst" for c in "0123456789 "]
    assert len(np.unique(keys_of_names(names, "characters"))) == len(names)
    pairs = ["a b", "b a", "ab", "a", "b", "aa", "a a"]
    keys = np.concatenate([keys_of_names(pairs, "words"), keys_of_names(["aa", "a"], "characters")])
    assert len(np.unique(keys)) == len(keys)


def test_a_copy_by_pickle_is_the_same():
    encoder = NgramEncoder(min_count=1).fit(["it came broken"])
    assert pickle.loads(pickle.dumps(encoder)).to_dict() == encoder.to_dict()


@pytest.mark.parametrize(
    ("options", "mentions"),
    [
        ({"words": (2, 1)}, ("words", "(2, 1)")),
        ({"words": (0, 1)}, ("words", "(0, 1)")),
        ({"characters": 3}, ("characters", "3")),
        ({"characters": (1, 50)}, ("characters", "50")),
        ({"characters": (True, 2)}, ("characters",)),
        ({"words": None, "characters": None}, ("words", "characters")),
        ({"vocabulary": 0}, ("vocabulary", "0")),
        ({"min_count": 1.5}, ("min_count", "1.5")),
    ],
)
def test_invalid_options_are_refused(options, mentions):
    with refuses(InputError, *mentions):
        NgramEncoder(**options).fit(["it broke"])


def test_texts_that_share_nothing_are_refused():
    with refuses(InputError, "2 texts", "min_count"):
        NgramEncoder(characters=None, min_count=2).fit(["one", "two"])


def test_an_encoder_that_is_not_fitted_is_refused():
    with refuses(NotFitted, "fit"):
        NgramEncoder().transform(["it"])


@pytest.mark.parametrize("change", [{"format": 2}, {"kind": "text"}])
def test_another_kind_of_saved_encoder_is_refused(change):
    saved = NgramEncoder(min_count=1).fit(["it broke"]).to_dict()
    with refuses(InputError, "n-gram encoder"):
        NgramEncoder.from_dict({**saved, **change})


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("characters", [1, 100_000_000]),  # one text would take gigabytes
        ("characters", "14"),
        ("words", [0, 2]),
        ("words", 5),
        ("vocabulary", 0),
        ("min_count", "2"),
    ],
)
def test_options_that_fit_would_refuse_are_not_loaded(option, value):
    saved = NgramEncoder(min_count=1).fit(["it broke"]).to_dict()
    saved["options"][option] = value
    with refuses(InputError, option, str(value).strip("[]")):
        NgramEncoder.from_dict(saved)


def test_damaged_ngrams_are_refused():
    saved = NgramEncoder(min_count=1).fit(["it broke"]).to_dict()
    saved["ngrams"]["words"]["names"].pop()
    with refuses(InputError, "damaged"):
        NgramEncoder.from_dict(saved)
