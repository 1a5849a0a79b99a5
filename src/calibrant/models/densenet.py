"""The network for images in which every layer reads all layers before it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from calibrant.models.image_network import check_images, check_stem, convolution, prepare
from calibrant.models.options import check_counts
from calibrant.models.registry import register

_BLOCKS = (6, 12, 24, 16)
_SIDES = {"cifar": (8, 15), "imagenet": (32, 60)}
"""Pixels that a side must have with each stem, and up to which one value is left of a side."""


class _Layer(nn.Sequential):
    """Make `growth` new channels of all that there are, through a 1x1 and a 3x3 convolution."""

    def __init__(self, before: int, growth: int) -> None:
        super().__init__()
        # These names, and their order, are torchvision's: its weights can be loaded.
        self.add_module("norm1", nn.BatchNorm2d(before))
        self.add_module("relu1", nn.ReLU(inplace=True))
        self.add_module("conv1", convolution(before, 4 * growth, 1))
        self.add_module("norm2", nn.BatchNorm2d(4 * growth))
        self.add_module("relu2", nn.ReLU(inplace=True))
        self.add_module("conv2", convolution(4 * growth, growth, 3))


class _Block(nn.Sequential):
    """Layers each of which reads the block's input and the outputs of all layers before it."""

    def __init__(self, before: int, growth: int, layers: int) -> None:
        super().__init__()
        for place in range(layers):
            self.add_module(f"denselayer{place + 1}", _Layer(before + place * growth, growth))

    def forward(self, x: Tensor) -> Tensor:
        for layer in self:
            x = torch.cat((x, layer(x)), dim=1)
        return x


class _Transition(nn.Sequential):
    """Half the channels, half the image."""

    def __init__(self, before: int, after: int) -> None:
        super().__init__()
        self.add_module("norm", nn.BatchNorm2d(before))
        self.add_module("relu", nn.ReLU(inplace=True))
        self.add_module("conv", convolution(before, after, 1))
        self.add_module("pool", nn.AvgPool2d(2))


@register("densenet121")
class DenseNet121(nn.Module):
    r"""Densely connected network of 121 layers, for images.

    Layer $i$ of a block adds `growth` channels to those that are there,

    $$ x_i = [x_{i-1},\; C_3\,r(b_2(C_1\,r(b_1(x_{i-1}))))] $$

    with $C_1$ a 1x1 convolution to four times `growth` channels, $C_3$ a 3x3 one, $b$ batch norm
    and $r$ ReLU. Four blocks have 6, 12, 24 and 16 layers; between two of them a 1x1 convolution
    keeps half the channels and a mean over 2x2 pixels a quarter of the image. After the last block
    come batch norm, ReLU, the mean over the map, and one linear layer.

    Names of the weights are those of torchvision's densenet121, so that its state dict can be
    loaded into one of stem "imagenet". It is light in weights, not in memory: training keeps every
    layer's joined input.

    Parameters
    ----------
    n_channels : channels of an image: 1 for grey, 3 for colours
    n_classes : number of logits
    growth : channels that a layer adds; 32 is the published network
    stem : how it begins. "cifar": a 3x3 convolution at full size to twice `growth` channels.
        "imagenet": a 7x7 one of stride 2, batch norm, ReLU, and a max-pool of stride 2.

    Examples
    --------
    >>> import torch
    >>> from calibrant.models import DenseNet121
    >>> DenseNet121(3, 10, growth=4)(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 10])

    References
    ----------
    Huang et al. (2017), Densely connected convolutional networks; Mukhoti et al. (2020),
    Calibrating deep neural networks using focal loss, for the stem "cifar".
    """

    def __init__(
        self, n_channels: int, n_classes: int, growth: int = 32, stem: str = "cifar"
    ) -> None:
        super().__init__()
        check_counts(n_channels=n_channels, growth=growth)
        check_counts(n_classes=n_classes, least=2)
        check_stem(stem, _SIDES)
        self.n_channels = n_channels
        self.least, self.lone = _SIDES[stem]
        width = 2 * growth
        self.features = _stem(stem, n_channels, width)
        for place, layers in enumerate(_BLOCKS, start=1):
            self.features.add_module(f"denseblock{place}", _Block(width, growth, layers))
            width += layers * growth
            if place < len(_BLOCKS):
                self.features.add_module(f"transition{place}", _Transition(width, width // 2))
                width //= 2
        self.features.add_module("norm5", nn.BatchNorm2d(width))
        self.relu = nn.ReLU(inplace=True)
        self.classifier = nn.Linear(width, n_classes)
        prepare(self)
        self.config: dict[str, Any] = {
            "model": "densenet121",
            "n_channels": n_channels,
            "n_classes": n_classes,
            "growth": growth,
            "stem": stem,
        }

    def forward(self, images: Tensor) -> Tensor:
        """Return the logits of (b, n_channels, height, width) normalised images."""
        check_images(images, self.n_channels, least=self.least, lone=self.lone * self.training)
        x = self.relu(self.features(images))
        logits: Tensor = self.classifier(x.mean(dim=(2, 3)))
        return logits


def _stem(stem: str, n_channels: int, width: int) -> nn.Sequential:
    layers = nn.Sequential()
    if stem == "cifar":
        layers.add_module("conv0", convolution(n_channels, width, 3))
        return layers
    layers.add_module("conv0", convolution(n_channels, width, 7, 2))
    layers.add_module("norm0", nn.BatchNorm2d(width))
    layers.add_module("relu0", nn.ReLU(inplace=True))
    layers.add_module("pool0", nn.MaxPool2d(3, stride=2, padding=1))
    return layers
