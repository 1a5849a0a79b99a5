"""Networks that turn encoded rows into logits: one file each."""

from calibrant.models.bilstm import BiLSTM
from calibrant.models.densenet import DenseNet121
from calibrant.models.ensemble import Ensemble
from calibrant.models.mc_dropout import MCDropout
from calibrant.models.mlp import MLP
from calibrant.models.registry import build, models, register
from calibrant.models.resnet import ResNet50, ResNet110
from calibrant.models.small_cnn import SmallCNN
from calibrant.models.text_cnn import TextCNN
from calibrant.models.transformer import Transformer
from calibrant.models.wide_resnet import WideResNet

__all__ = [
    "MLP",
    "BiLSTM",
    "DenseNet121",
    "Ensemble",
    "MCDropout",
    "ResNet50",
    "ResNet110",
    "SmallCNN",
    "TextCNN",
    "Transformer",
    "WideResNet",
    "build",
    "models",
    "register",
]
