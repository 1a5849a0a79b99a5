"""A network for images that learns in minutes on a CPU."""

from __future__ import annotations

import math
from typing import Any

import torch.nn.functional as F  # noqa: N812  # torch's own convention
from torch import Tensor, nn

from calibrant.models.dropout import Dropout
from calibrant.models.image_network import check_images, convolution, prepare
from calibrant.models.options import check_counts, check_dropout
from calibrant.models.registry import register

_LEAST = 8  # pixels of a side: three times halved, one is left
_LONE = 15  # pixels of a side up to which one is left


@register("small_cnn")
class SmallCNN(nn.Module):
    r"""Small convolutional network for images: five convolutions and a linear layer.

    Three 3x3 convolutions with `width`, 2 and 4 times `width` channels, each with batch norm, ReLU
    and a max-pool that halves the image; then a residual block at an eighth of the size,

    $$ y = x + g(g(x)), \qquad g(x) = \mathrm{relu}(b(C x)) $$

    with $C$ a 3x3 convolution and $b$ batch norm; the largest value of each channel, and one linear
    layer.

    An image of more than `side`² pixels is first averaged over squares of s x s pixels, with the
    smallest s that makes it small enough. So an image of 224 x 224 pixels takes about as long as
    one of 38 x 38; details smaller than s pixels are lost.

    Parameters
    ----------
    n_channels : channels of an image: 1 for grey, 3 for colours
    n_classes : number of logits
    width : channels of the first convolution; the time grows with its square
    side : side of the largest square image that is not averaged over squares first
    dropout : share of values dropped in training before the linear layer

    Examples
    --------
    >>> import torch
    >>> from calibrant.models import SmallCNN
    >>> network = SmallCNN(1, 10)
    >>> network(torch.zeros(2, 1, 28, 28)).shape, network(torch.zeros(2, 1, 224, 224)).shape
    (torch.Size([2, 10]), torch.Size([2, 10]))

    References
    ----------
    He et al. (2016), Deep residual learning for image recognition, for the residual block.
    """

    def __init__(
        self,
        n_channels: int,
        n_classes: int,
        width: int = 32,
        side: int = 40,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        check_counts(n_channels=n_channels, width=width)
        check_counts(n_classes=n_classes, least=2)
        check_counts(side=side, least=_LEAST)
        check_dropout(dropout=dropout)
        self.n_channels = n_channels
        self.side = side
        self.layers = nn.Sequential(
            _layer(n_channels, width), nn.MaxPool2d(2),
            _layer(width, 2 * width), nn.MaxPool2d(2),
            _layer(2 * width, 4 * width), nn.MaxPool2d(2),
        )  # fmt: skip
        self.block = nn.Sequential(_layer(4 * width, 4 * width), _layer(4 * width, 4 * width))
        self.dropout = Dropout(dropout)
        self.fc = nn.Linear(4 * width, n_classes)
        prepare(self)
        self.config: dict[str, Any] = {
            "model": "small_cnn",
            "n_channels": n_channels,
            "n_classes": n_classes,
            "width": width,
            "side": side,
            "dropout": dropout,
        }

    def forward(self, images: Tensor) -> Tensor:
        """Return the logits of (b, n_channels, height, width) normalised images."""
        check_images(images, self.n_channels, least=_LEAST, lone=_LONE * self.training)
        square = _square(images.shape[2], images.shape[3], self.side)
        x = self.layers(images if square == 1 else F.avg_pool2d(images, square))
        x = x + self.block(x)
        logits: Tensor = self.fc(self.dropout(x.amax(dim=(2, 3))))
        return logits


def _layer(before: int, after: int) -> nn.Sequential:
    return nn.Sequential(
        convolution(before, after, 3), nn.BatchNorm2d(after), nn.ReLU(inplace=True)
    )


def _square(height: int, width: int, side: int) -> int:
    """Return the side of the squares that an image is averaged over."""
    needed = math.ceil(math.sqrt(height * width) / side)
    return max(1, min(needed, min(height, width) // _LEAST))
