"""Transformers: parity with the library, padding, config and weights, offline, bad input."""

import copy
import json
import pickle

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from tests.sentences import refuses
from tests.unit.models import text_network_checks as checks
from tests.unit.models.tiny_transformers import (
    READ,
    ROWS,
    described,
    no_network,
    same_environment,
    written,
)
from torch import nn
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from calibrant.data.encoders.subword_encoder import SubwordEncoder
from calibrant.errors import InputError
from calibrant.models import Transformer, build, transformer
from calibrant.models.pretrained import read_pretrained
from calibrant.models.saved_parts import read_network, write_network
from calibrant.models.scoring import text_logits

__all__ = ["no_network", "same_environment"]

POOLINGS = ["own", "mean"]
TEXTS = ["It came broken!", "too small", "", "one size too small for me, it is not", "[MASK] 你"]


def tiny(kind="bert", pooling="own", **options):
    torch.manual_seed(0)
    return Transformer(described(kind), 3, pooling=pooling, **options)


@pytest.mark.parametrize("kind", ["bert", "roberta", "distilbert", "electra", "gpt2"])
def test_logits_equal_those_of_the_library(tmp_path, kind):
    folder = written(tmp_path, kind, n_classes=3)
    network = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    model = Transformer.from_pretrained(folder, 3, pooling="own").eval()
    cut = AutoTokenizer.from_pretrained(folder)
    with torch.no_grad():
        expected = [network(**_of(cut, text)).logits for text in TEXTS]
    encoder = SubwordEncoder(read_pretrained(folder).tokenizer)
    found = text_logits(model, *encoder.encode(TEXTS))
    np.testing.assert_allclose(found, torch.cat(expected).numpy(), rtol=0, atol=1e-6)


def _of(cut, text):
    coded = cut(text, return_tensors="pt")
    return {name: coded[name] for name in ("input_ids", "attention_mask")}


@pytest.mark.parametrize("kind", ["bert", "gpt2"])
def test_the_mean_of_the_tokens_by_a_loop(kind):
    model = tiny(kind, "mean").eval()
    tokens, lengths = checks.drawn_texts(5, ROWS)
    lengths = lengths.clamp(min=1)
    linear = model.head[1]
    for row, length in enumerate(lengths.tolist()):
        states = model.network(input_ids=tokens[row : row + 1, :length]).last_hidden_state[0]
        mean = sum(states[place] for place in range(length)) / length
        expected = linear.weight @ mean + linear.bias
        found = model(tokens, lengths)[row]
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("kind", READ)
def test_padding_and_the_rest_of_the_batch_do_not_matter(kind, pooling):
    model = tiny(kind, pooling).eval()
    tokens, lengths = checks.drawn_texts(12, ROWS)
    together = model(tokens, lengths)
    for other in (F.pad(tokens, (0, 30)), tokens + 7 * (tokens == 0)):
        assert (model(other, lengths) - together).abs().max() < 1e-5
    for row, length in enumerate(lengths.tolist()):
        alone = model(tokens[row : row + 1, : max(length, 1)], lengths[row : row + 1])
        assert (alone[0] - together[row]).abs().max() < 1e-5
    assert (together[1:-1] - together[-1]).abs().max() > 1e-3


@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_a_text_may_hold_the_token_that_pads(kind):
    model = tiny(kind).eval()
    text = torch.tensor([[5, model.padding, 6, model.padding]])
    whole = model(text, torch.tensor([4]))
    states = model.network.base_model(input_ids=text).last_hidden_state
    assert (whole - model.network.score(states[:, 3])).abs().max() < 1e-6
    assert (model(F.pad(text, (0, 3)), torch.tensor([4])) - whole).abs().max() < 1e-6


@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("kind", READ)
def test_config_and_weights_make_the_same_network_again(tmp_path, kind, pooling, no_network):
    written(tmp_path / "source", kind)
    model = Transformer.from_pretrained(tmp_path / "source", 3, pooling=pooling).eval()
    config = json.loads(json.dumps(model.config))
    assert config == model.config
    assert str(tmp_path) not in json.dumps(config)
    assert not {"_name_or_path", "id2label", "dtype"} & set(config["architecture"])
    write_network(model, tmp_path)
    (tmp_path / "source").rename(tmp_path / "elsewhere")
    again = read_network({"model": config}, tmp_path).eval()
    tokens, lengths = checks.drawn_texts(6, ROWS)
    assert torch.equal(again(tokens, lengths), model(tokens, lengths))
    assert again.config == config
    assert no_network == []


def test_it_is_copied_and_pickled_without_a_path(tmp_path):
    model = Transformer.from_pretrained(written(tmp_path), 3).eval()
    tokens, lengths = checks.drawn_texts(4, ROWS)
    saved = pickle.dumps(model)
    assert str(tmp_path).encode() not in saved
    for again in (pickle.loads(saved), copy.deepcopy(model)):
        assert torch.equal(again(tokens, lengths), model(tokens, lengths))


@pytest.mark.parametrize("kind", ["bert", "gpt2"])
def test_every_token_counts(kind):
    checks.check_every_token_counts(tiny(kind))
    checks.check_every_token_counts(tiny(kind, "mean"))


@pytest.mark.parametrize("pooling", POOLINGS)
def test_an_empty_text_reads_as_padding(pooling):
    checks.check_an_empty_text_reads_as_padding(tiny("bert", pooling))


@pytest.mark.parametrize("pooling", POOLINGS)
def test_it_over_fits_64_rows(pooling):
    still = described(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    torch.manual_seed(0)
    model = Transformer(still, 3, pooling=pooling, dropout=0.0)
    checks.check_it_over_fits_64_rows(model, steps=60, lr=5e-3)


def test_bad_texts_are_named():
    model = tiny()
    checks.check_bad_texts_are_named(model)
    long = torch.ones(1, 101, dtype=torch.int64)
    with refuses(InputError, "at most 100 columns", "positions", "got 101", "cut"):
        model(long, torch.tensor([101]))


def test_roberta_keeps_positions_in_front():
    assert tiny("roberta").positions == 98
    assert tiny("gpt2").positions == 100
    model = tiny("roberta").eval()
    longest = torch.full((1, 98), 5)
    assert model(longest, torch.tensor([98])).isfinite().all()


@pytest.mark.parametrize("pooling", POOLINGS)
def test_many_texts_are_read_in_parts(monkeypatch, pooling):
    model = tiny("bert", pooling).eval()
    tokens, lengths = checks.drawn_texts(20, ROWS)
    whole = model(tokens, lengths).detach()
    monkeypatch.setitem(transformer._AT_A_TIME, "cpu", 150)
    calls = []
    model.network.register_forward_pre_hook(
        lambda _, __, given: calls.append(tuple(given["input_ids"].shape)), with_kwargs=True
    )
    with torch.no_grad():
        found = model(tokens, lengths)
    assert (found - whole).abs().max() < 1e-5
    assert [rows for rows, _ in calls] == [2] * 10
    assert [width for _, width in calls] == lengths.reshape(10, 2).amax(1).clamp(min=1).tolist()
    model(tokens, lengths)  # what is learned from stays one batch
    assert calls[-1] == (20, 60)


def test_the_usual_dropout_is_that_of_the_architecture():
    assert tiny("bert").network.dropout.p == 0.1
    assert tiny("bert", dropout=0.4).network.dropout.p == 0.4
    assert {
        part.p for part in tiny("bert", dropout=0.4).network.bert.modules() if _drops(part)
    } == {0.1}
    assert tiny("bert", "mean").head[0].p == 0.1
    assert tiny("bert", "mean", dropout=0.0).head[0].p == 0.0
    assert tiny("gpt2", "mean", dropout=0.3).config["dropout"] == 0.3
    with refuses(InputError, "head", "architecture 'gpt2'", "no dropout", "set"):
        tiny("gpt2", dropout=0.3)


def _drops(part):
    return isinstance(part, nn.Dropout)


def test_a_fresh_one_is_in_training_and_an_old_head_is_kept(tmp_path):
    folder = written(tmp_path, n_classes=3)
    model = Transformer.from_pretrained(folder, 3, pooling="own")
    assert all(part.training for part in model.modules())
    assert all(weights.requires_grad and weights.grad is None for weights in model.parameters())
    there = AutoModelForSequenceClassification.from_pretrained(folder).state_dict()
    assert torch.equal(model.network.classifier.weight, there["classifier.weight"])
    other = Transformer.from_pretrained(folder, 5, pooling="own")
    assert other.network.classifier.weight.shape == (5, 32)
    body = "bert.encoder.layer.0.output.dense.weight"
    assert torch.equal(other.network.state_dict()[body], there[body])


@pytest.mark.parametrize("pooling", POOLINGS)
def test_the_same_seed_draws_the_same_head(tmp_path, pooling):
    written(tmp_path)
    made = []
    for seed in (7, 7, 8):
        torch.manual_seed(seed)
        made.append(Transformer.from_pretrained(tmp_path, 3, pooling=pooling).state_dict())
    first, second, third = made
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert not all(torch.equal(first[name], third[name]) for name in first)


def test_weights_that_nothing_depends_on_do_not_learn(tmp_path):
    model = Transformer.from_pretrained(written(tmp_path, "layoutlm"), 3, pooling="mean")
    tokens, lengths = checks.drawn_texts(4, ROWS)
    model(tokens, lengths).sum().backward()
    learning = {name for name, part in model.named_parameters() if part.requires_grad}
    assert learning == {n for n, part in model.named_parameters() if part.grad is not None}
    assert {name for name, _ in model.named_parameters()} - learning == {
        "network.pooler.dense.weight",
        "network.pooler.dense.bias",
    }


def test_a_pooler_is_left_out_where_the_mean_is_taken():
    names = [name for name, _ in tiny("bert", "mean").named_parameters()]
    assert not [name for name in names if "pooler" in name]


@pytest.mark.parametrize(
    ("kind", "pooling", "sentence"),
    [
        ("xlnet", "own", ("'xlnet'", "pooling 'own' gives", "text other", "pooling='mean'")),
        ("convbert", "mean", ("'convbert'", "pooling 'mean'", "choose another model", "such")),
        ("funnel", "own", ("'funnel' cannot be called", "token ids")),
    ],
)
def test_an_architecture_that_looks_beyond_the_end_is_refused(tmp_path, kind, pooling, sentence):
    written(tmp_path, kind, n_classes=3)
    with refuses(InputError, *sentence):
        Transformer.from_pretrained(tmp_path, 3, pooling=pooling)


def test_xlnet_reads_with_the_mean(tmp_path):
    model = Transformer.from_pretrained(written(tmp_path, "xlnet"), 3, pooling="mean").eval()
    tokens, lengths = checks.drawn_texts(6, ROWS)
    further = model(F.pad(tokens, (0, 9)), lengths)
    assert (further - model(tokens, lengths)).abs().max() < 1e-5


@pytest.mark.parametrize(
    ("architecture", "options", "sentence"),
    [
        ({"model_type": "t5"}, {}, ("'t5' writes texts",)),
        (
            {"model_type": "granite"},
            {},
            ("'granite'", "no head", "classes", "texts", "choose another"),
        ),
        ({"model_type": "fnet"}, {}, ("'fnet'", "not take token", "ids", "mask", "padding")),
        (described("canine"), {"pooling": "mean"}, ("'canine'", "no table", "tokens")),
        ({"model_type": "nonesuch"}, {}, ("'nonesuch'", "not known", "transformers", ": install")),
        ({}, {}, ("architecture", "dict", "'model_type' like 'bert'", "got {}")),
        ([3], {}, ("architecture must be a dict", "got [3]")),
        (described(hidden_size="wide"), {}, ("not describe", "network", "kind 'bert'")),
        (described(hidden_size=33), {}, ("not describe", "network", "kind 'bert'", "33")),
        (described(), {"pooling": "max"}, ("pooling", "'own'", "'mean'", "got 'max'")),
        (described(), {"pooling": "auto"}, ("pooling", "'own'", "'mean'", "got 'auto'")),
        (described(), {"dropout": 1.0}, ("dropout", "at least 0", "below 1", "got 1.0")),
        (described(), {"n_classes": 1}, ("n_classes", "whole number", "at least 2", "got 1")),
    ],
)
def test_what_makes_no_network_is_refused(architecture, options, sentence):
    with refuses(InputError, *sentence) as caught:
        Transformer(architecture, **{"n_classes": 3, **options})
    assert "\n" not in str(caught.value)


def test_labels_and_paths_of_a_description_are_left_out():
    told = {"_name_or_path": "/home/me", "id2label": {"0": "secret"}, "label2id": {"secret": 0}}
    model = Transformer(described(**told, torch_dtype="float16", architectures=["X"]), 3)
    assert "/home/me" not in json.dumps(model.config)
    assert "secret" not in json.dumps(model.config)
    assert next(model.parameters()).dtype == torch.float32
    assert model.network.config.num_labels == 3


def test_numbers_of_numpy_make_a_network():
    model = Transformer(described(hidden_size=np.int64(32)), np.int64(3), dropout=np.float64(0.5))
    assert json.loads(json.dumps(model.config)) == model.config
    assert build(model.config).config == model.config


def test_half_precision_reads_the_mean():
    model = tiny("bert", "mean").to(torch.bfloat16).eval()
    tokens, lengths = checks.drawn_texts(4, ROWS)
    logits = model(tokens, lengths)
    assert logits.dtype == torch.bfloat16
    assert logits.isfinite().all()
