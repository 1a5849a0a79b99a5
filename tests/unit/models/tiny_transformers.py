"""Tiny transformers with random weights, as the transformers library writes them into folders."""

import os
import socket

import pytest
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForSequenceClassification,
    PreTrainedTokenizerFast,
)
from transformers.utils import logging

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = [
    "it", "came", "broken", "on", "arrival", "too", "small", "for", "me", "one", "size", "a", "is",
    "not",
]  # fmt: skip
PIECES = [*SPECIAL, *WORDS, *(f"##{letter}" for letter in "abcdefghijklmnopqrst")]
ROWS = 40
"""Tokens that the networks know; the tokenizer has 39."""

_SMALL = {
    "vocab_size": ROWS,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 37,
    "max_position_embeddings": 100,
    "pad_token_id": 0,
}
ARCHITECTURES = {
    "bert": _SMALL,
    "roberta": {**_SMALL, "pad_token_id": 1},
    "distilbert": {
        "vocab_size": ROWS, "dim": 32, "n_layers": 2, "n_heads": 2, "hidden_dim": 37,
        "max_position_embeddings": 100,
    },
    "electra": {**_SMALL, "embedding_size": 16},
    "albert": {**_SMALL, "embedding_size": 16},
    "deberta-v2": {**_SMALL, "relative_attention": True, "pos_att_type": ["p2c", "c2p"]},
    "gpt2": {"vocab_size": ROWS, "n_embd": 32, "n_layer": 2, "n_head": 2, "n_positions": 100},
    "llama": {**_SMALL, "num_key_value_heads": 2, "pad_token_id": None},
    "xlnet": {"vocab_size": ROWS, "d_model": 32, "n_layer": 2, "n_head": 2, "d_inner": 37},
    "funnel": {
        "vocab_size": ROWS, "d_model": 32, "block_sizes": [1, 1], "n_head": 2, "d_head": 16,
        "d_inner": 37,
    },
}  # fmt: skip
READ = ["albert", "bert", "deberta-v2", "distilbert", "electra", "gpt2", "llama", "roberta"]
"""Those that can be read with either pooling."""


def described(kind="bert", **changes):
    """Return what `Transformer` is built from."""
    return {"model_type": kind, **ARCHITECTURES.get(kind, _SMALL), **changes}


def written(path, kind="bert", *, n_classes=None, tokenizer=True, seed=0, **changes):
    """Write a tiny transformer into a folder; with `n_classes` it has a head."""
    path.mkdir(parents=True, exist_ok=True)
    given = {**ARCHITECTURES.get(kind, _SMALL), **changes}
    if n_classes is not None:
        given["num_labels"] = n_classes
    config = AutoConfig.for_model(kind, **given)
    made = AutoModel if n_classes is None else AutoModelForSequenceClassification
    logging.disable_progress_bar()
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        made.from_config(config).save_pretrained(path)
    logging.enable_progress_bar()
    if tokenizer:
        fast(cutter()).save_pretrained(path)
    return path


def cutter(pieces=tuple(PIECES)):
    """Return a WordPiece tokenizer that sets [CLS] and [SEP] around a text."""
    known = {piece: number for number, piece in enumerate(pieces)}
    made = Tokenizer(models.WordPiece(known, unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer()
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    ends = [(name, known[name]) for name in ("[SEP]", "[CLS]")]
    made.post_processor = processors.BertProcessing(*ends)
    made.add_special_tokens(list(SPECIAL))
    return made


def fast(tokenizer, **options):
    """Return a tokenizer as the transformers library has it."""
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        **options,
    )


@pytest.fixture
def no_network(monkeypatch):
    """Let every attempt to reach another machine fail, and be counted."""
    asked = []

    def refused(*arguments, **options):
        asked.append(arguments)
        raise OSError("there is no network in this test")

    for name in ("connect", "connect_ex", "sendto"):
        monkeypatch.setattr(socket.socket, name, refused)
    for name in ("create_connection", "getaddrinfo"):
        monkeypatch.setattr(socket, name, refused)
    return asked


@pytest.fixture
def same_environment():
    """Check that no environment variable was set or changed."""
    before = _environment()
    yield
    assert _environment() == before


def _environment():
    """Return all variables but pytest's, and the one that torch sets when it is imported."""
    others = ("PYTEST_CURRENT_TEST", "TORCHINDUCTOR_CACHE_DIR")
    return {name: value for name, value in os.environ.items() if name not in others}
