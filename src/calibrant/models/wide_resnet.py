"""The network for small images that is wide rather than deep."""

from __future__ import annotations

from typing import Any

import torch.nn.functional as F  # noqa: N812  # torch's own convention
from torch import Tensor, nn

from calibrant.models.dropout import Dropout
from calibrant.models.image_network import check_images, convolution, prepare
from calibrant.models.options import check_counts, check_dropout
from calibrant.models.registry import register

_SIDE = 4
"""Pixels that a side must have: two strides of 2."""


class _Block(nn.Module):
    """Two 3x3 convolutions, each after batch norm and ReLU; and add what came in."""

    def __init__(self, before: int, after: int, stride: int, dropout: float) -> None:
        super().__init__()
        self.bn1 = nn.BatchNorm2d(before)
        self.conv1 = convolution(before, after, 3, stride)
        self.bn2 = nn.BatchNorm2d(after)
        self.dropout = Dropout(dropout)
        self.conv2 = convolution(after, after, 3)
        self.shortcut = convolution(before, after, 1, stride) if before != after else None

    def forward(self, x: Tensor) -> Tensor:
        ready = F.relu(self.bn1(x), inplace=True)
        out = F.relu(self.bn2(self.conv1(ready)), inplace=True)
        out = self.conv2(self.dropout(out))
        done: Tensor = out + (x if self.shortcut is None else self.shortcut(ready))
        return done


@register("wrn_26_10")
class WideResNet(nn.Module):
    r"""Wide residual network, for small images: WRN-26-10 as it stands.

    A 3x3 convolution to 16 channels, then three groups of `blocks` blocks with 16, 32 and 64 times
    `widen` channels, of which the second and the third begin by halving the image; batch norm,
    ReLU, the mean over the last map, and one linear layer. A block computes

    $$ y = x + C_2\,r(b_2(C_1\,r(b_1(x)))) $$

    with $C$ 3x3 convolutions, $b$ batch norm and $r$ ReLU; where the channels change, a 1x1
    convolution of $r(b_1(x))$ takes the place of $x$.

    Papers count its layers differently. Mukhoti et al. call it WRN-26-10, for 24 convolutions in
    the blocks, the first one and the linear layer. Zagoruyko and Komodakis call it WRN-28-10, for
    the first one and the three of 1x1 beside those 24. It is not the code of Mukhoti et al. to the
    letter: that one normalises and activates after each convolution, and normalises the 1x1 ones
    too, which makes 2,240 weights more around the same convolutions.

    Parameters
    ----------
    n_channels : channels of an image: 1 for grey, 3 for colours
    n_classes : number of logits
    widen : how many times 16, 32 and 64 channels the groups have
    blocks : in each group
    dropout : share of values dropped in training between the convolutions of a block

    Examples
    --------
    >>> import torch
    >>> from calibrant.models import WideResNet
    >>> WideResNet(3, 10, widen=1, blocks=1)(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 10])

    References
    ----------
    Zagoruyko and Komodakis (2016), Wide residual networks; Mukhoti et al. (2020), Calibrating deep
    neural networks using focal loss.
    """

    def __init__(
        self,
        n_channels: int,
        n_classes: int,
        widen: int = 10,
        blocks: int = 4,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        check_counts(n_channels=n_channels, widen=widen, blocks=blocks)
        check_counts(n_classes=n_classes, least=2)
        check_dropout(dropout=dropout)
        self.n_channels = n_channels
        self.conv1 = convolution(n_channels, 16, 3)
        self.group1 = _group(16, 16 * widen, blocks, 1, dropout)
        self.group2 = _group(16 * widen, 32 * widen, blocks, 2, dropout)
        self.group3 = _group(32 * widen, 64 * widen, blocks, 2, dropout)
        self.bn = nn.BatchNorm2d(64 * widen)
        self.fc = nn.Linear(64 * widen, n_classes)
        prepare(self)
        self.config: dict[str, Any] = {
            "model": "wrn_26_10",
            "n_channels": n_channels,
            "n_classes": n_classes,
            "widen": widen,
            "blocks": blocks,
            "dropout": dropout,
        }

    def forward(self, images: Tensor) -> Tensor:
        """Return the logits of (b, n_channels, height, width) normalised images."""
        check_images(images, self.n_channels, least=_SIDE, lone=_SIDE * self.training)
        x = self.group3(self.group2(self.group1(self.conv1(images))))
        x = F.relu(self.bn(x), inplace=True)
        logits: Tensor = self.fc(x.mean(dim=(2, 3)))
        return logits


def _group(before: int, after: int, blocks: int, stride: int, dropout: float) -> nn.Sequential:
    first = _Block(before, after, stride, dropout)
    others = (_Block(after, after, 1, dropout) for _ in range(blocks - 1))
    return nn.Sequential(first, *others)
