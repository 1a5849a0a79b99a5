"""What a description may ask for: a network for texts, built offline and from known code alone."""

import json

import pytest
from tests.sentences import assert_mentions, refuses
from tests.unit.bundle.model_parts import subword_scorer
from tests.unit.bundle.test_models import refused, reseal
from tests.unit.models.tiny_transformers import described, no_network, written

from calibrant.bundle import load_bundle, pack
from calibrant.errors import InputError
from calibrant.models import Transformer
from calibrant.models.architectures import config_from

__all__ = ["no_network"]

EVIL = "kernels-community/evil"
HOW = {
    "attn_implementation": EVIL,
    "_attn_implementation": EVIL,
    "_attn_implementation_internal": EVIL,
    "experts_implementation": EVIL,
    "_experts_implementation_internal": EVIL,
    "quantization_config": {"quant_method": EVIL},
    "use_kernels": EVIL,
}
FETCHED = [
    {"use_pretrained_backbone": True},
    {"use_timm_backbone": True},
    {"backbone": "evil/net"},
    {"layers": [{"deep": {"backbone": "evil/net"}}]},
]
OTHER_KINDS = [
    "grounding-dino", "vit", "clip", "detr", "timm_backbone", "gemma3", "layoutlmv2", "llama4",
    "musicgen", "phi4_multimodal", "rwkv",
]  # fmt: skip


def forged(pieces, pooling, architecture):
    def change(found):
        found["scorer"]["model"]["architecture"] = architecture
        found["scorer"]["model"]["pooling"] = pooling

    return reseal(pieces.path, change)


@pytest.fixture
def pieces(tmp_path):
    return pack(tmp_path / "pieces", scorer=subword_scorer())


@pytest.mark.parametrize("pooling", ["own", "mean"])
def test_a_forged_bundle_reaches_no_network(pieces, pooling, no_network):
    own = pieces.manifest["scorer"]["model"]["architecture"]
    asked = {"backbone": "evil/net", "use_pretrained_backbone": True, "backbone_config": None}
    dino = {"model_type": "grounding-dino", **asked}
    assert_mentions(refused(forged(pieces, pooling, dino)), "'grounding-dino'", "not only", "texts")
    for more in FETCHED:
        said = refused(forged(pieces, pooling, {**own, **more}))
        assert_mentions(said, "part", "downloaded", "not allowed")
    assert no_network == []


def test_a_forged_bundle_cannot_name_the_code_that_computes(pieces, no_network):
    own = pieces.manifest["scorer"]["model"]["architecture"]
    network = load_bundle(forged(pieces, "own", {**own, **HOW})).scorer.model
    assert EVIL not in json.dumps(network.config)
    assert network.network.config._attn_implementation in ("sdpa", "eager")
    assert no_network == []


def test_neither_can_a_folder(tmp_path, no_network):
    folder = written(tmp_path)
    told = json.loads((folder / "config.json").read_text())
    how = {name: value for name, value in HOW.items() if name != "quantization_config"}
    (folder / "config.json").write_text(json.dumps({**told, **how}))
    assert EVIL not in json.dumps(Transformer.from_pretrained(folder, 3).config)
    (folder / "config.json").write_text(json.dumps({**told, "backbone": "evil/net"}))
    with refuses(InputError, "config.json", "'backbone'", "part"):
        Transformer.from_pretrained(folder, 3)
    assert no_network == []


def test_what_lies_deep_is_left_out_too():
    made = config_from(described(inside={"parts": [{"kept": 1, **HOW}]}), 3)
    assert made.inside == {"parts": [{"kept": 1}]}


@pytest.mark.parametrize("kind", OTHER_KINDS)
def test_what_is_not_for_texts_alone_is_refused(kind, no_network):
    for pooling in ("own", "mean"):
        with refuses(InputError, f"'{kind}'", "not only", "texts"):
            Transformer({"model_type": kind}, 3, pooling)
    assert no_network == []


@pytest.mark.parametrize("kind", ["mpnet", "modernbert", "nomic_bert", "xlm-roberta", "granite"])
def test_encoders_of_texts_are_taken(kind):
    assert config_from({"model_type": kind}, 3).model_type == kind
