"""Networks that turn encoded rows into logits: one file each."""

from calibrant.models.bilstm import BiLSTM
from calibrant.models.mlp import MLP
from calibrant.models.registry import build, models, register
from calibrant.models.text_cnn import TextCNN

__all__ = ["MLP", "BiLSTM", "TextCNN", "build", "models", "register"]
