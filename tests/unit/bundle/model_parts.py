"""Tiny models with known weights, for bundles that have one."""

import torch

from calibrant.data.table_encoder import TableEncoder
from calibrant.data.text_encoder import TextEncoder
from calibrant.models import MLP, BiLSTM
from calibrant.models.scorer import Scorer

CLASSES = ("defect", "parts", "other")
TEXTS = ["it came broken", "broken on arrival", "a part is missing", "it is too small for me"]
TABLE = {"price": [1.0, 2.0, 4.0, 8.0], "shelf": ["Top", "low", "top", "Low"]}


def with_known_weights(model):
    """Give every weight a value that no version of torch changes."""
    with torch.no_grad():
        for i, part in enumerate(model.parameters()):
            places = torch.arange(part.numel(), dtype=torch.float64)
            part.copy_(2 * torch.sin(5.0 * places + i).reshape(part.shape))
    return model


def text_scorer(*, shift=(0.5, 0.0, -0.25), redact=False, column="message", **network):
    encoder = TextEncoder(min_count=1, max_length=8).fit(TEXTS)
    options = {"embedding": 4, "hidden": 3, "layers": 1, "dense": 6, **network}
    model = with_known_weights(BiLSTM(len(encoder.words), 3, **options))
    return Scorer(encoder, model, shift, redact=redact, column=column, classes=CLASSES)


def table_scorer(*, shift=None, **network):
    encoder = TableEncoder().fit(TABLE)
    options = {"hidden": [6], "dropout": [0.0], **network}
    model = with_known_weights(MLP(3, 3, **options))
    return Scorer(encoder, model, shift, classes=CLASSES)
