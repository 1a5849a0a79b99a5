"""Tiny models with known weights, for bundles that have one."""

import numpy as np
import torch

from calibrant.data.encoders.image_encoder import ImageEncoder
from calibrant.data.encoders.subword_encoder import SubwordEncoder
from calibrant.data.encoders.table_encoder import TableEncoder
from calibrant.data.encoders.text_encoder import TextEncoder
from calibrant.models import MLP, BiLSTM, Transformer, models, register
from calibrant.models.dropout import Dropout
from calibrant.models.scorer import Scorer

CLASSES = ("defect", "parts", "other")
TEXTS = ["it came broken", "broken on arrival", "a part is missing", "it is too small for me"]
TABLE = {"price": [1.0, 2.0, 4.0, 8.0], "shelf": ["Top", "low", "top", "Low"]}
IMAGES = (np.arange(6 * 4 * 5 * 3) * 37 % 256).astype(np.uint8).reshape(6, 4, 5, 3)
PIECES = [
    "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "it", "came", "brok", "##en", "on", "arrival",
    "a", "part", "is", "miss", "##ing", "too", "small", "for", "me", "?",
]  # fmt: skip
ARCHITECTURE = {
    "model_type": "bert", "vocab_size": len(PIECES), "hidden_size": 4, "num_hidden_layers": 1,
    "num_attention_heads": 2, "intermediate_size": 6, "max_position_embeddings": 12,
}  # fmt: skip


class TinyImage(torch.nn.Module):
    """A network for images with 50 weights or so: those that are built in have thousands."""

    def __init__(self, n_channels, n_classes, width=3, dropout=0.25):
        super().__init__()
        self.conv = torch.nn.Conv2d(n_channels, width, 3, padding=1)
        self.dropout = Dropout(dropout)
        self.head = torch.nn.Linear(width, n_classes)
        self.config = {"model": "tiny_image", "n_channels": n_channels, "n_classes": n_classes,
                       "width": width, "dropout": dropout}  # fmt: skip

    def forward(self, images):
        return self.head(self.dropout(self.conv(images).relu().mean(dim=(2, 3))))


def know_tiny_images(monkeypatch):
    """Register `TinyImage` for the time of a test."""
    monkeypatch.setattr("calibrant.models.registry._MODELS", models())
    register("tiny_image")(TinyImage)


def with_known_weights(model, start=0.0):
    """Give every weight a value that no version of torch changes."""
    with torch.no_grad():
        for i, part in enumerate(model.parameters()):
            places = torch.arange(part.numel(), dtype=torch.float64)
            part.copy_(2 * torch.sin(5.0 * places + i + start).reshape(part.shape))
    return model


def text_scorer(*, shift=(0.5, 0.0, -0.25), redact=False, column="message", **network):
    encoder = TextEncoder(min_count=1, max_length=8).fit(TEXTS)
    options = {"embedding": 4, "hidden": 3, "layers": 1, "dense": 6, **network}
    model = with_known_weights(BiLSTM(len(encoder.words), 3, **options))
    return Scorer(encoder, model, shift, redact=redact, column=column, classes=CLASSES)


def table_scorer(*, shift=None, start=0.0, **network):
    encoder = TableEncoder().fit(TABLE)
    options = {"hidden": [6], "dropout": [0.0], **network}
    model = with_known_weights(MLP(3, 3, **options), start)
    return Scorer(encoder, model, shift, classes=CLASSES)


def image_scorer(*, shift=None, start=0.0, resize=False, **network):
    """Return a model for images; `know_tiny_images` lets it be loaded again."""
    encoder = ImageEncoder().fit(IMAGES)
    model = with_known_weights(TinyImage(3, 3, **network), start)
    return Scorer(encoder, model, shift, classes=CLASSES, resize=resize)


def subword_tokenizer():
    """Return a tokenizer of a few pieces, as the text of a `tokenizer.json`."""
    from tokenizers import Tokenizer, normalizers, pre_tokenizers, processors
    from tokenizers.models import WordPiece

    number = {piece: i for i, piece in enumerate(PIECES)}
    made = Tokenizer(WordPiece(number, unk_token="[UNK]"))
    made.normalizer = normalizers.Lowercase()
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    ends = [(piece, number[piece]) for piece in ("[SEP]", "[CLS]")]
    made.post_processor = processors.BertProcessing(*ends)
    return made.to_str()


def subword_scorer(*, shift=None, start=2.0, max_length=8, **network):
    encoder = SubwordEncoder(subword_tokenizer(), max_length=max_length)
    model = with_known_weights(Transformer(ARCHITECTURE, 3, **network), start)
    return Scorer(encoder, model, shift, column="message", classes=CLASSES)
