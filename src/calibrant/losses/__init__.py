"""Training losses of `(logits, labels)`: one file each, a function and a Module."""

from calibrant.losses.base import Loss, RowLoss
from calibrant.losses.class_weights import balanced_weights, class_balanced_weights
from calibrant.losses.cross_entropy import CrossEntropyLoss, cross_entropy_loss
from calibrant.losses.focal import FocalLoss, focal_loss
from calibrant.losses.function import FunctionLoss
from calibrant.losses.names import as_loss, losses, register
from calibrant.losses.sums import LossSum

__all__ = [
    "CrossEntropyLoss",
    "FocalLoss",
    "FunctionLoss",
    "Loss",
    "LossSum",
    "RowLoss",
    "as_loss",
    "balanced_weights",
    "class_balanced_weights",
    "cross_entropy_loss",
    "focal_loss",
    "losses",
    "register",
]
