"""The networks for images: residual ones, with 50 or 110 layers."""

from __future__ import annotations

from typing import Any, ClassVar

from torch import Tensor, nn

from calibrant.models.image_network import check_images, check_stem, convolution, prepare
from calibrant.models.options import check_counts
from calibrant.models.registry import register

_EXPANSION = 4
_SIDES = {"cifar": (8, 8), "tiny_imagenet": (16, 8), "imagenet": (32, 32)}
"""Pixels that a side must have with each stem, and up to which one value is left of a side."""


class _Bottleneck(nn.Module):
    """Narrow, look around, widen; and add what came in."""

    def __init__(self, before: int, width: int, stride: int) -> None:
        super().__init__()
        after = _EXPANSION * width
        # These names, and their order, are torchvision's: its weights can be loaded.
        self.conv1 = convolution(before, width, 1)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = convolution(width, width, 3, stride)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = convolution(width, after, 1)
        self.bn3 = nn.BatchNorm2d(after)
        self.relu = nn.ReLU(inplace=True)
        self.downsample: nn.Module | None = None
        if stride != 1 or before != after:
            self.downsample = nn.Sequential(
                convolution(before, after, 1, stride), nn.BatchNorm2d(after)
            )

    def forward(self, x: Tensor) -> Tensor:
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.relu(self.bn2(self.conv2(out)))
        out = self.bn3(self.conv3(out))
        out += x if self.downsample is None else self.downsample(x)
        done: Tensor = self.relu(out)
        return done


class _ResNet(nn.Module):
    """What residual networks of any depth share; a subclass says its name and its blocks."""

    called: ClassVar[str]
    blocks: ClassVar[tuple[int, int, int, int]]

    def __init__(
        self,
        n_channels: int,
        n_classes: int,
        stem: str = "cifar",
        width: int = 64,
        zero_init: bool = False,
    ) -> None:
        super().__init__()
        check_counts(n_channels=n_channels, width=width)
        check_counts(n_classes=n_classes, least=2)
        check_stem(stem, _SIDES)
        self.n_channels = n_channels
        self.least, self.lone = _SIDES[stem]
        large = stem == "imagenet"
        self.conv1 = convolution(n_channels, width, 7 if large else 3, 2 if large else 1)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1) if large else nn.Identity()
        self.layer1 = _stage(width, width, self.blocks[0], stride=1)
        self.layer2 = _stage(4 * width, 2 * width, self.blocks[1], stride=2)
        self.layer3 = _stage(8 * width, 4 * width, self.blocks[2], stride=2)
        self.layer4 = _stage(16 * width, 8 * width, self.blocks[3], stride=2)
        cells = 2 if stem == "tiny_imagenet" else 1
        self.avgpool = nn.AdaptiveAvgPool2d(cells)
        self.fc = nn.Linear(32 * width * cells**2, n_classes)
        prepare(self)
        if zero_init:
            for block in self.modules():
                if isinstance(block, _Bottleneck):
                    nn.init.zeros_(block.bn3.weight)
        self.config: dict[str, Any] = {
            "model": self.called,
            "n_channels": n_channels,
            "n_classes": n_classes,
            "stem": stem,
            "width": width,
            "zero_init": zero_init,
        }

    def forward(self, images: Tensor) -> Tensor:
        """Return the logits of (b, n_channels, height, width) normalised images."""
        check_images(images, self.n_channels, least=self.least, lone=self.lone * self.training)
        x = self.maxpool(self.relu(self.bn1(self.conv1(images))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        logits: Tensor = self.fc(self.avgpool(x).flatten(1))
        return logits


def _stage(before: int, width: int, blocks: int, stride: int) -> nn.Sequential:
    first = _Bottleneck(before, width, stride)
    others = (_Bottleneck(_EXPANSION * width, width, 1) for _ in range(blocks - 1))
    return nn.Sequential(first, *others)


@register("resnet50")
class ResNet50(_ResNet):
    r"""Residual network of 50 layers, for images.

    Each of its blocks adds to its input what three convolutions make of it,

    $$ y = \mathrm{relu}(x + f(x)), $$

    1x1 to `width` channels, 3x3, and 1x1 to four times as many, with batch norm after each. The
    four stages have 3, 4, 6 and 3 blocks, of 1, 2, 4 and 8 times `width`. The first block of a
    stage but the first halves the image, in its 3x3 convolution, and where shapes change a 1x1
    convolution with batch norm takes the place of $x$.

    Names of the weights are those of torchvision's resnet50, so that its state dict can be loaded
    into one of stem "imagenet". It is not the ResNet-v2 that normalises before it convolves.

    Parameters
    ----------
    n_channels : channels of an image: 1 for grey, 3 for colours
    n_classes : number of logits
    stem : how it begins and ends. "cifar": a 3x3 convolution at full size, and the mean over the
        last map (4x4 cells of a 32x32 image). "tiny_imagenet": the same convolution, and means over
        the four quarters of the last map, so that 8,192 numbers reach the last layer. "imagenet":
        a 7x7 convolution and a max-pool, each of stride 2, and the mean over the last map.
    width : channels of the first stage; 64 is the published network
    zero_init : whether the last batch norm of each block begins with scale 0, so that the block
        begins by passing on what came in; the papers on calibration do without

    Examples
    --------
    >>> import torch
    >>> from calibrant.models import ResNet50
    >>> ResNet50(3, 10, width=4)(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 10])

    References
    ----------
    He et al. (2016), Deep residual learning for image recognition; Mukhoti et al. (2020),
    Calibrating deep neural networks using focal loss, for the first two stems.
    """

    called = "resnet50"
    blocks = (3, 4, 6, 3)


@register("resnet110")
class ResNet110(_ResNet):
    """Residual network of 110 layers, for images.

    As `ResNet50`, with 3, 4, 26 and 3 blocks in its stages: the network that papers on calibration
    call ResNet-110. It is not the ResNet-110 of He et al. for CIFAR, which has 1.7 million weights.

    Parameters
    ----------
    n_channels : channels of an image: 1 for grey, 3 for colours
    n_classes : number of logits
    stem : "cifar", "tiny_imagenet" or "imagenet", as for `ResNet50`
    width : channels of the first stage; 64 is the published network
    zero_init : whether the last batch norm of each block begins with scale 0, so that the block
        begins by passing on what came in; the papers on calibration do without

    Examples
    --------
    >>> import torch
    >>> from calibrant.models import ResNet110
    >>> ResNet110(1, 10, width=2)(torch.zeros(2, 1, 28, 28)).shape
    torch.Size([2, 10])

    References
    ----------
    Mukhoti et al. (2020), Calibrating deep neural networks using focal loss.
    """

    called = "resnet110"
    blocks = (3, 4, 26, 3)
