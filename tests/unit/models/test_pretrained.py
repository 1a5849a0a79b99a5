"""Pretrained transformers: found, checked, read without pickles and code; refused in a sentence."""

import json
import logging as python_logging
import shutil
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from huggingface_hub.utils import RepositoryNotFoundError
from safetensors.torch import load_file, save_file
from tests.sentences import assert_mentions, refuses
from tests.unit.models.tiny_transformers import (
    PIECES,
    ROWS,
    cutter,
    described,
    fast,
    no_network,
    same_environment,
    written,
)
from tokenizers import Tokenizer, models, pre_tokenizers

from calibrant.data.encoders.subword_encoder import SubwordEncoder
from calibrant.errors import InputError, MissingExtra
from calibrant.models import Transformer
from calibrant.models.pretrained import fingerprint, read_pretrained
from calibrant.models.pretrained_folder import folder_of, is_source

__all__ = ["no_network", "same_environment"]

pytestmark = pytest.mark.usefixtures("same_environment")
WEIGHTS = "model.safetensors"


def changed(folder, **values):
    """Write other values into config.json; None takes a key out."""
    path = folder / "config.json"
    told = {**json.loads(path.read_text()), **values}
    path.write_text(json.dumps({key: value for key, value in told.items() if value is not None}))
    return folder


def refusal(folder, **options):
    with pytest.raises(InputError) as caught:
        Transformer.from_pretrained(folder, 3, **options)
    sentence = str(caught.value)
    assert "\n" not in sentence
    assert sentence.endswith(".")
    return sentence


def test_a_folder_is_read_without_the_network_and_without_a_word(tmp_path, no_network, capfd):
    before = transformers.logging.get_verbosity(), transformers.logging.is_progress_bar_enabled()
    model = Transformer.from_pretrained(written(tmp_path), 3)
    after = transformers.logging.get_verbosity(), transformers.logging.is_progress_bar_enabled()
    assert model.config["architecture"]["model_type"] == "bert"
    assert before == after
    assert no_network == []
    assert capfd.readouterr() == ("", "")


def test_what_is_known_before_the_weights_are_read(tmp_path):
    found = read_pretrained(written(tmp_path, "roberta"))
    assert (found.rows, found.positions, found.pooling) == (ROWS, 98, "own")
    assert found.architecture["pad_token_id"] == 1
    assert found.encoder(9).words == tuple(PIECES)
    assert "tokenizer" not in repr(found)


def test_texts_and_paths_name_the_same_folder(tmp_path, monkeypatch):
    written(tmp_path / "mine" / "own-bert")
    monkeypatch.chdir(tmp_path)
    for source in (Path("mine/own-bert"), "mine/own-bert", str(tmp_path / "mine/own-bert")):
        assert folder_of(source).samefile(tmp_path / "mine" / "own-bert")


def test_what_names_a_transformer(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert not is_source("bilstmm")
    (tmp_path / "bilstmm").mkdir()
    (tmp_path / "bilstm").mkdir()
    assert is_source("bilstmm")
    assert not is_source("bilstm")
    assert is_source(Path("bilstm"))
    names = ("gpt2", "roberta-base", "distilbert-base-uncased", "org/bilstm-large", "./x", "a\0b")
    assert all(is_source(name) for name in names)
    assert not any(is_source(other) for other in ("text_cn", "resnet50", "Transformer", 3, None))


def test_a_head_is_drawn_anew_and_half_precision_becomes_whole(tmp_path):
    folder = written(tmp_path, n_classes=2)
    held = {name: part.half() for name, part in load_file(folder / WEIGHTS).items()}
    save_file(held, folder / WEIGHTS, metadata={"format": "pt"})
    changed(folder, dtype="float16")
    model = Transformer.from_pretrained(folder, 3)
    assert {part.dtype for part in model.parameters()} == {torch.float32}
    name = "bert.embeddings.word_embeddings.weight"
    assert torch.equal(model.network.state_dict()[name], held[name].float())
    assert "dtype" not in model.config["architecture"]


def test_weights_in_several_files_are_read(tmp_path):
    whole, parts = written(tmp_path / "whole"), tmp_path / "parts"
    written(parts)
    (parts / WEIGHTS).unlink()
    held = sorted(load_file(whole / WEIGHTS).items())
    files = {f"model-0000{i + 1}-of-00002.safetensors": dict(held[i::2]) for i in range(2)}
    for name, some in files.items():
        save_file(some, parts / name, metadata={"format": "pt"})
    listed = {key: name for name, some in files.items() for key in some}
    index = parts / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {}, "weight_map": listed}))
    torch.manual_seed(0)
    first = Transformer.from_pretrained(whole, 3).state_dict()
    torch.manual_seed(0)
    second = Transformer.from_pretrained(parts, 3).state_dict()
    assert all(torch.equal(first[name], second[name]) for name in first)
    (parts / "model-00002-of-00002.safetensors").unlink()
    assert_mentions(
        refusal(parts), "lacks 'model-00002-of-00002.safetensors'", "model.safetensors.index"
    )
    index.write_text(json.dumps({"weight_map": {"a": "../elsewhere.safetensors"}}))
    assert_mentions(refusal(parts), "model.safetensors.index.json")


def test_a_folder_of_sentence_vectors_takes_the_mean(tmp_path):
    written(tmp_path)
    assert Transformer.from_pretrained(tmp_path, 3).config["pooling"] == "own"
    (tmp_path / "1_Pooling").mkdir()
    told = tmp_path / "1_Pooling" / "config.json"
    told.write_text(json.dumps({"pooling_mode_mean_tokens": True}))
    assert Transformer.from_pretrained(tmp_path, 3).config["pooling"] == "mean"
    assert Transformer.from_pretrained(tmp_path, 3, pooling="own").config["pooling"] == "own"
    told.write_text(json.dumps({"pooling_mode_cls_token": True}))
    assert read_pretrained(tmp_path).pooling == "own"


@pytest.mark.parametrize("padding", [None, -1, 400])
def test_networks_without_a_padding_token_get_one(tmp_path, padding):
    folder = written(tmp_path, "gpt2", tokenizer=False, eos_token_id=7)
    changed(folder, pad_token_id=padding, eos_token_id=7)
    made = Tokenizer(models.WordLevel({"it": 0, "broke": 1}, unk_token="it"))
    made.pre_tokenizer = pre_tokenizers.ByteLevel()
    made.save(str(folder / "tokenizer.json"))
    model = Transformer.from_pretrained(folder, 3).eval()
    assert model.padding == model.config["architecture"]["pad_token_id"] == 7
    tokens, lengths = torch.tensor([[3, 4, 5], [3, 4, 5]]), torch.tensor([3, 2])
    alone = model(torch.tensor([[3, 4]]), torch.tensor([2]))
    assert (model(tokens, lengths)[1] - alone[0]).abs().max() < 1e-6


def test_the_padding_of_the_tokenizer_comes_before_the_end(tmp_path):
    folder = changed(written(tmp_path, "llama"), pad_token_id=None, eos_token_id=3)
    assert read_pretrained(folder).architecture["pad_token_id"] == PIECES.index("[PAD]")


def test_a_word_list_alone_makes_a_tokenizer(tmp_path, no_network):
    written(tmp_path, tokenizer=False)
    (tmp_path / "vocab.txt").write_text("\n".join(PIECES) + "\n", encoding="utf-8")
    encoder = read_pretrained(tmp_path).encoder(20)
    expected = SubwordEncoder(cutter().to_str(), max_length=20)
    texts = ["It came BROKEN", "", "on [MASK] arrival", "sizesabc"]
    for found, wanted in zip(encoder.encode(texts), expected.encode(texts), strict=True):
        assert np.array_equal(found, wanted)
    assert no_network == []


def test_the_side_that_long_texts_lose_is_the_tokenizers(tmp_path):
    written(tmp_path, tokenizer=False)
    fast(cutter(), truncation_side="left").save_pretrained(tmp_path)
    encoder = read_pretrained(tmp_path).encoder(4)
    tokens, _ = encoder.encode(["it came broken on arrival"])
    assert [encoder.words[token] for token in tokens] == ["[CLS]", "on", "arrival", "[SEP]"]


def without(name):
    return lambda folder: (folder / name).unlink()


def replaced(name, text):
    return lambda folder: (folder / name).write_text(text)


def pickled(folder):
    (folder / WEIGHTS).unlink()
    (folder / "pytorch_model.bin").write_bytes(b"\x80\x04cos\nsystem\n.")


def tensorflow(folder):
    (folder / WEIGHTS).rename(folder / "tf_model.h5")


def cut_short(folder):
    whole = (folder / WEIGHTS).read_bytes()
    (folder / WEIGHTS).write_bytes(whole[: len(whole) // 2])


def of_another(folder):
    other = written(folder / "other", "distilbert")
    shutil.move(other / WEIGHTS, folder / WEIGHTS)


def of_fewer_layers(folder):
    changed(folder, num_hidden_layers=4)


def no_tokenizer(folder):
    (folder / "tokenizer.json").unlink()
    (folder / "tokenizer_config.json").unlink()


def too_many_words(folder):
    fast(cutter([*PIECES, *(f"more{i}" for i in range(20))])).save_pretrained(folder)


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (without("config.json"), "has no config.json, so it is not a transformer: name a folder"),
        (replaced("config.json", "{abc"), "config.json in '*' is damaged (Expecting property name"),
        (replaced("config.json", "[1]"), "config.json in '*' is damaged (it holds no JSON object)"),
        (replaced("config.json", "{}"), "config.json in '*': architecture must be a dict with a"),
        (replaced("config.json", '{"model_type": "x"}'), "the architecture 'x' is not known to tr"),
        (replaced("adapter_config.json", "{}"), "holds an adapter, a part of a model: merge it"),
        (without(WEIGHTS), "holds no weights: model.safetensors is missing; fetch it too"),
        (tensorflow, "holds no weights that torch reads (only tf_model.h5): model.safetensors is"),
        (pickled, "are a pickle (pytorch_model.bin), which can run any code and is never opened"),
        (
            replaced(WEIGHTS, "abc"),
            "model.safetensors in '*' is damaged (Error while deserializing",
        ),
        (cut_short, "model.safetensors in '*' is damaged (Error while deserializing"),
        (of_another, "are of another network than config.json there: 33 of 37 are missing, such"),
        (of_fewer_layers, "are of another network than config.json there: 32 of 69 are missing"),
        (no_tokenizer, "holds no tokenizer (tokenizer.json or vocab.txt): save it there too"),
        (replaced("tokenizer.json", "{abc"), "the tokenizer in '*' cannot be read ("),
        (
            too_many_words,
            "has token ids up to 58, but its network has 40 tokens (up to 39): they",
        ),
    ],
)
def test_a_folder_that_is_no_whole_transformer_is_refused(tmp_path, spoil, sentence, no_network):
    spoil(written(tmp_path))
    found = refusal(tmp_path)
    for part in sentence.split("*"):
        assert part in found
    assert str(tmp_path) in found
    assert no_network == []


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        (
            {"auto_map": {"AutoConfig": "own.Config"}, "model_type": "own"},
            "asks to run its own code",
        ),
        (
            {"auto_map": {"AutoConfig": "own.Config"}, "model_type": None},
            "asks to run its own code",
        ),
        ({"quantization_config": {"bits": 4}}, "are quantised (quantization_config in config.json"),
        ({"hidden_size": 48}, "embeddings.LayerNorm.bias' has shape (32,), not (48,); get both"),
        (
            {"vocab_size": 60},
            "embeddings.word_embeddings.weight' has shape (40, 32), not (60, 32)",
        ),
        ({"hidden_size": "wide"}, "does not describe a network of kind 'bert'"),
    ],
)
def test_a_config_that_does_not_fit_is_refused(tmp_path, values, sentence):
    assert sentence in refusal(changed(written(tmp_path), **values))


def test_code_of_a_known_architecture_is_not_run(tmp_path):
    changed(written(tmp_path), auto_map={"AutoConfig": "own.Config", "AutoModel": "own.Model"})
    (tmp_path / "own.py").write_text("raise SystemExit('this code was run')\n")
    model = Transformer.from_pretrained(tmp_path, 3)
    assert "auto_map" not in model.config["architecture"]


def test_a_few_weights_that_lack_are_told(tmp_path):
    written(tmp_path)
    held = load_file(tmp_path / WEIGHTS)
    del held["embeddings.token_type_embeddings.weight"]
    save_file(held, tmp_path / WEIGHTS, metadata={"format": "pt"})
    with pytest.warns(
        UserWarning, match=r"lack 1 of 37 .*token_type.*: those are initialised at random"
    ):
        Transformer.from_pretrained(tmp_path, 3)


def test_a_missing_pooler_is_nothing_to_tell(tmp_path):
    written(tmp_path)
    held = {n: part for n, part in load_file(tmp_path / WEIGHTS).items() if "pooler" not in n}
    save_file(held, tmp_path / WEIGHTS, metadata={"format": "pt"})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Transformer.from_pretrained(tmp_path, 3)


def test_lengths_beyond_the_positions_are_refused(tmp_path):
    found = read_pretrained(written(tmp_path, "roberta"))
    assert found.encoder(98).max_length == 98
    with refuses(InputError, "max_length", "at most 98", "positions", "got 99"):
        found.encoder(99)
    with refuses(InputError, "max_length", "at least 3", "2 special tokens", "got 2"):
        found.encoder(2)


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("no/such/folder", "model names the folder 'no/such/folder', which is not there: check"),
        (Path("nothing"), "model names the folder 'nothing', which is not there"),
        ("./nothing", "model names the folder './nothing', which is not there"),
        ("a\0b", "which is not there"),
        ("x" * 5000 + "!", "which is not there"),
        ("config.json", "model names the file 'config.json', but a transformer is a folder"),
    ],
)
def test_what_is_no_folder_is_refused(tmp_path, monkeypatch, no_network, source, sentence):
    monkeypatch.chdir(written(tmp_path))
    assert sentence in refusal(source)
    assert no_network == []


def test_a_hub_that_cannot_be_reached_is_one_sentence(tmp_path, monkeypatch, no_network):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    found = refusal("some-org/some-model")
    assert found.startswith("model 'some-org/some-model' is neither a network of Calibrant nor a ")
    assert "could not be fetched from a hub (" in found
    assert found.endswith("download it where there is a connection, and name its folder.")
    assert no_network


def test_a_hub_without_the_model_is_one_sentence(monkeypatch):
    def unknown(*arguments, **options):
        raise RepositoryNotFoundError.__new__(RepositoryNotFoundError, "401 Client Error.")

    monkeypatch.setattr("huggingface_hub.snapshot_download", unknown)
    assert_mentions(refusal("gpt-2022"), "hub", "no such model", "not for you", "check", "spelling")


def test_what_a_hub_has_is_read_like_a_folder(tmp_path, monkeypatch):
    asked = []

    def fetched(source, *, allow_patterns):
        asked.append((source, allow_patterns))
        return str(written(tmp_path / "snapshot"))

    monkeypatch.setattr("huggingface_hub.snapshot_download", fetched)
    model = Transformer.from_pretrained("some-org/some-model", 3)
    (source, patterns) = asked[0]
    assert source == "some-org/some-model"
    assert {"config.json", "model.safetensors", "tokenizer.json", "vocab.txt"} <= set(patterns)
    assert not [name for name in patterns if name.endswith((".bin", ".py", ".h5", "*"))]
    assert model.config["architecture"]["model_type"] == "bert"


def test_fingerprints_change_with_any_file(tmp_path):
    first, second = written(tmp_path / "a"), written(tmp_path / "b")
    assert fingerprint(first) == fingerprint(second) == fingerprint(str(first))
    assert len(fingerprint(first)) == 16
    (first / "notes.txt").write_text("mine")
    assert fingerprint(first) == fingerprint(second)
    seen = {fingerprint(first)}
    (second / "1_Pooling").mkdir()
    names = ("1_Pooling/config.json", "config.json", "tokenizer.json")
    for spoil in (*(replaced(name, "{}") for name in names), cut_short):
        spoil(second)
        seen.add(fingerprint(second))
    assert len(seen) == 5


def test_without_the_library_the_extra_is_named(tmp_path, monkeypatch):
    written(tmp_path)
    monkeypatch.setitem(sys.modules, "transformers", None)
    asked = (
        lambda: Transformer(described(), 3),
        lambda: Transformer.from_pretrained(tmp_path, 3),
        lambda: Transformer.from_pretrained("some-org/some-model", 3),
    )
    for ask in asked:
        with refuses(MissingExtra, "transformer needs", "'calibrant[transformers]'"):
            ask()


def test_the_callers_wishes_for_logging_come_back(tmp_path):
    transformers.logging.set_verbosity_info()
    transformers.logging.disable_progress_bar()
    try:
        with pytest.raises(InputError):
            Transformer.from_pretrained(tmp_path, 3)
        Transformer.from_pretrained(written(tmp_path / "whole"), 3)
        transformers.logging.disable_progress_bar()
        read_pretrained(tmp_path / "whole")
        assert transformers.logging.get_verbosity() == python_logging.INFO
        assert not transformers.logging.is_progress_bar_enabled()
    finally:
        transformers.logging.set_verbosity_warning()
        transformers.logging.enable_progress_bar()
