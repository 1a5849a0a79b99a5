"""TextClassifier: texts in, probabilities out, with the vocabulary of the train texts alone."""

import gzip
import json
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from sklearn.base import clone, is_classifier
from tests.data_sets import data_file
from tests.sentences import refuses

from calibrant import TextClassifier
from calibrant.errors import InputError
from calibrant.models import TextCNN

TEXTS = ["it came broken", "broken on arrival", "too small for me", "one size too small"] * 12
WHY = ["defect", "defect", "size", "size"] * 12
SMALL = {
    "model_options": {"embedding": 16, "hidden": 8},
    "epochs": 12,
    "learning_rate": 0.02,
    "device": "cpu",
}


def sms(seed=0):
    """Real messages in random order, with their labels."""
    with gzip.open(data_file("sms_spam", "sms_spam.jsonl.gz"), "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    order = np.random.default_rng(seed).permutation(len(rows))
    return [rows[i]["text"] for i in order], [rows[i]["label_name"] for i in order]


def test_texts_are_told_apart():
    fitted = TextClassifier(**SMALL).fit(TEXTS, WHY)
    assert fitted.predict(["BROKEN!", "small size", ""])[:2].tolist() == ["defect", "size"]
    assert fitted.predict_proba(["broken"]).shape == (1, 2)
    assert fitted.classes_.tolist() == ["defect", "size"]
    assert is_classifier(fitted)


@pytest.mark.parametrize(
    ("network", "options"),
    [
        ("text_cnn", {"embedding": 16, "filters": 16}),
        (lambda n_tokens, n_classes, **more: TextCNN(n_tokens, n_classes, **more), {"filters": 16}),
    ],
)
def test_other_networks_and_own_ones_learn(network, options):
    model = TextClassifier(**{**SMALL, "model": network, "model_options": options})
    assert model.fit(TEXTS, WHY).score(TEXTS, WHY) > 0.9


@pytest.mark.parametrize("make", [tuple, np.array, pd.Series, pl.Series])
def test_columns_of_any_kind_give_the_same_probabilities(make):
    expected = TextClassifier(**SMALL).fit(TEXTS, WHY).predict_proba(TEXTS)
    found = TextClassifier(**SMALL).fit(make(TEXTS), make(WHY)).predict_proba(make(TEXTS))
    assert np.array_equal(found, expected)


def test_answers_come_in_the_order_of_the_texts():
    fitted = TextClassifier(**SMALL).fit(TEXTS, WHY)
    texts = ["broken " * length for length in (30, 1, 9, 2)]
    together = fitted.predict_logits(texts)
    alone = np.concatenate([fitted.predict_logits([text]) for text in texts])
    assert together == pytest.approx(alone, abs=1e-5)


def test_the_vocabulary_is_that_of_the_train_texts():
    texts = [f"{text} w{i}" for i, text in enumerate(TEXTS)]
    fitted = TextClassifier(**SMALL, min_count=1).fit(texts, WHY)
    own = {f"w{i}" for i in range(len(texts))}
    spent = {f"w{i}" for i in fitted.steer_places_}
    assert len(spent) == 4
    assert own & set(fitted.encoder_.words) == own - spent
    given = TextClassifier(**SMALL, min_count=1).fit(
        TEXTS, WHY, steer=(["wholly other", "broken"], WHY[:3:2])
    )
    assert "wholly" not in given.encoder_.words


def test_the_same_seed_gives_the_same_bits():
    first = TextClassifier(**SMALL).fit(TEXTS, WHY).predict_proba(TEXTS)
    torch.rand(7)
    assert np.array_equal(TextClassifier(**SMALL).fit(TEXTS, WHY).predict_proba(TEXTS), first)
    other = TextClassifier(**SMALL, seed=1).fit(TEXTS, WHY).predict_proba(TEXTS)
    assert not np.array_equal(other, first)


def test_clone_and_pickle_go_round():
    fitted = TextClassifier(**SMALL).fit(TEXTS, WHY)
    again = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(again.predict_proba(TEXTS), fitted.predict_proba(TEXTS))
    assert clone(fitted).get_params() == fitted.get_params()
    assert clone(fitted).set_params(max_length=5).max_length == 5


def test_texts_are_no_features_to_scikit_learn():
    tags = TextClassifier().__sklearn_tags__().input_tags
    assert (tags.one_d_array, tags.two_d_array, tags.string) == (True, False, True)
    assert not hasattr(TextClassifier(**SMALL).fit(TEXTS, WHY), "n_features_in_")


@pytest.mark.parametrize(
    ("texts", "labels", "sentence"),
    [
        (pd.DataFrame({"text": TEXTS}), WHY, ("X", "column", "texts", "got a table")),
        ([*TEXTS[:-1], None], WHY, ("X row 47", "missing", "not text", "drop")),
        ("broken", WHY, ("got str", "put", "single text", "list")),
        (TEXTS, WHY[:-1], ("got 47", "labels", "48 rows")),
        (TEXTS, ["size"] * 48, ("y holds", "class", "'size'")),
        (["a", "b"], ["size", "defect"], ("steer split", "empty")),
        (["a", "b", "c"], ["size", "size", "defect"], ("steer split", "1 row")),
    ],
)
def test_rows_that_cannot_be_learned_from_are_refused(texts, labels, sentence):
    with refuses(InputError, *sentence):
        TextClassifier(**SMALL).fit(texts, labels)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"model": "bilstn"}, ("model", "name", "network", "got 'bilstn'", "you mean 'bilstm'")),
        (
            {"model_options": {"hiddn": 3}},
            ("model_options names 'hiddn'", "not an option", "'bilstm'", "you mean 'hidden'"),
        ),
        ({"model_options": {"width": 3}}, ("model_options names 'width'", ": known", "n_tok")),
        ({"model_options": 3}, ("model_options", "dict", "network's options")),
        ({"model_options": {"hidden": True}}, ("hidden", "whole number")),
        ({"model": "mlp"}, ("model", "read texts", "got 'mlp'")),
        ({"model": "resnet50"}, ("model", "read texts", "got 'resnet50'", "choose 'bilstm'")),
        (
            {"model": "transformer"},
            ("got 'transformer'", "give", "folder", "hub id"),
        ),
        (
            {"model": "./nowhere", "model_options": None},
            ("model names", "folder './nowhere'", "not there"),
        ),
        ({"model": 3}, ("model", "name", "network", "got 3", "known", "bilstm")),
        ({"vocabulary": 1}, ("vocabulary", "whole number >= 3")),
        ({"max_length": 0}, ("max_length", "whole number >= 1")),
        ({"max_length": "long"}, ("max_length", "whole number >= 1", "got 'long'")),
        ({"epochs": "many"}, ("epochs", "whole number", "at least 1", "got 'many'")),
        ({"momentum": "auto"}, ("momentum", "[0, 1)", "got 'auto'")),
    ],
)
def test_options_are_checked_by_fit(options, sentence):
    with refuses(InputError, *sentence):
        TextClassifier(**{**SMALL, **options}).fit(TEXTS, WHY)


def test_what_is_not_asked_for_is_usual():
    fitted = TextClassifier(**{**SMALL, "epochs": 1}).fit(TEXTS, WHY)
    found = fitted.options_.to_dict()
    usual = {
        "batch_size": 64, "optimizer": "adam", "learning_rate": 0.02, "weight_decay": 0.0,
        "schedule": "constant", "warmup": 0.0, "clip": None, "patience": 10, "epochs": 1,
    }  # fmt: skip
    assert {name: found[name] for name in usual} == usual
    assert fitted.encoder_.max_length == 256
    assert TextClassifier()._options().epochs == 100
    assert TextClassifier()._options().learning_rate == 1e-3
    assert TextClassifier(clip=2.0, patience=None)._options().clip == 2.0
    assert TextClassifier(clip=2.0, patience=None)._options().patience is None


def test_numbers_of_numpy_are_options():
    options = {"embedding": np.int64(16), "hidden": np.int64(8), "dense_dropout": np.float32(0.25)}
    counts = {"vocabulary": np.int64(100), "min_count": np.int64(1), "max_length": np.int64(9)}
    fitted = TextClassifier(**{**SMALL, "epochs": 1, **counts, "model_options": options})
    config = fitted.fit(TEXTS, WHY).model_.config
    assert json.loads(json.dumps(config)) == config
    assert (config["hidden"], config["dense_dropout"]) == (8, 0.25)


@pytest.mark.data
def test_real_spam_is_found_and_other_rows_leave_the_vocabulary_alone():
    texts, labels = sms()
    options = {**SMALL, "model_options": {"embedding": 32, "hidden": 16}, "max_length": 40}
    model = TextClassifier(**{**options, "epochs": 6, "learning_rate": 0.01})
    model.fit(texts[:1200], labels[:1200])
    majority = np.mean(np.array(labels[1200:3000]) == "ham")
    assert majority < 0.88
    assert model.score(texts[1200:3000], labels[1200:3000]) > majority + 0.06  # 0.97 of 0.86
    spoilt = [
        "zzz" if i in set(model.steer_places_.tolist()) else text
        for i, text in enumerate(texts[:1200])
    ]
    again = TextClassifier(**{**options, "epochs": 1}).fit(spoilt, labels[:1200])
    assert again.encoder_.to_dict() == model.encoder_.to_dict()
