"""Images as batches: bytes until they are dealt, then numbers around 0, moved and mirrored."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral
from typing import Any

import numpy as np
import torch
from torch import Generator, Tensor

from calibrant.data.encoders.image_encoder import as_images, scale_and_offset
from calibrant.errors import InputError
from calibrant.training.augmentation import crop_and_flip
from calibrant.training.batches import Batch
from calibrant.training.sharding import as_row_labels, blocks, dealt, views

__all__ = ["ImageRows"]

_BLOCK = 32 * 2**20
"""Bytes made at a time: a GPU needs as long to be told of a step as to take it, and this way it is
told once for many batches, in memory that is small beside a network's."""


class ImageRows:
    r"""Images kept as bytes, a quarter of their size as floats, and dealt as normalised batches.

    $$
    x'_{bcij} = \frac{x_{bijc} / 255 - \mu_c}{\sigma_c}
    $$

    - $x$ : bytes, $x'$ : 32-bit floats (b, C, H, W), in memory with the channels of a pixel
      together, as convolutions on a GPU want them
    - $\mu, \sigma$ : `mean` and `std`

    A shuffled epoch deals each image moved by up to `crop` pixels, and one in two mirrored, as
    `crop_and_flip` says; the border is black before it is normalised. It draws from torch's own
    generator of the device. Without a generator images come in their own order, as they are.

    Images are not copied: do not write into them. A shuffled epoch never ends with a batch that
    leaves a process fewer than two rows: such a rest goes into the batch before.

    Parameters
    ----------
    images : (n, H, W, C) bytes, see `as_images`; a tensor stays on its device
    labels : (n,) classes as whole numbers; None for prediction, dealt as zeros
    mean, std : (C,) of each channel, in units of 0..1; `ImageEncoder` learns them
    crop : pixels that an image is moved by at most; 0 for none
    flip : whether to mirror images

    Examples
    --------
    >>> import numpy as np, torch
    >>> from calibrant.training.image_rows import ImageRows
    >>> images = np.full((6, 8, 8, 3), 255, dtype=np.uint8)
    >>> rows = ImageRows(images, np.arange(6), mean=[0.5] * 3, std=[0.5] * 3, crop=1, flip=True)
    >>> batch = next(rows.batches(4))
    >>> batch.inputs[0].shape, float(batch.inputs[0].min())
    (torch.Size([4, 3, 8, 8]), 1.0)
    >>> _ = torch.manual_seed(0)
    >>> shuffled = next(rows.batches(4, generator=torch.Generator().manual_seed(0)))
    >>> float(shuffled.inputs[0].min())  # the border
    -1.0
    """

    def __init__(
        self,
        images: Any,
        labels: Any = None,
        *,
        mean: Any,
        std: Any,
        crop: int = 0,
        flip: bool = False,
    ) -> None:
        self.images = _as_tensor(images)
        self.labels = as_row_labels(labels, len(self.images)).to(self.images.device)
        self.crop, self.flip = _checked_crop(crop, self.images), _checked_flip(flip)
        scale, offset = scale_and_offset(mean, std)
        channels = self.images.shape[3]
        if len(scale) != channels:
            raise InputError(
                f"mean and std must hold a number for each of the {channels} channels of the "
                f"images, got {len(scale)}."
            )
        self._scale = torch.from_numpy(scale).to(self.images.device)
        self._offset = torch.from_numpy(offset).to(self.images.device)

    def __len__(self) -> int:
        return len(self.images)

    @property
    def nbytes(self) -> int:
        """Size of the rows in bytes."""
        return self.images.nbytes + self.labels.nbytes

    @property
    def augmentation(self) -> str:
        """What a shuffled epoch does to the images, in words; '' for nothing."""
        cropped = f"crop {self.crop}" if self.crop else ""
        return f"{cropped} {'flip' if self.flip else ''}".strip()

    def to(self, device: torch.device | str) -> ImageRows:
        """Return the same rows on a device."""
        moved = object.__new__(ImageRows)
        moved.crop, moved.flip = self.crop, self.flip
        for name in ("images", "labels", "_scale", "_offset"):
            setattr(moved, name, getattr(self, name).to(device))
        return moved

    def batches(
        self, size: int, *, generator: Generator | None = None, shard: tuple[int, int] = (0, 1)
    ) -> Iterator[Batch]:
        """Deal out all rows: shuffled by `generator` and augmented, as they are without one."""
        order, sizes = dealt(len(self), size, generator, shard)
        order = order.to(self.labels.device)
        in_order = generator is None and shard[1] == 1
        for start, stop, block in blocks(sizes, 4 * self.images[:1].numel(), _BLOCK):
            places = order[start:stop]
            if in_order:
                images, labels = self.images[start:stop], self.labels[start:stop]
            else:
                pad, flip = (0, False) if generator is None else (self.crop, self.flip)
                images = crop_and_flip(self.images, pad=pad, flip=flip, places=places)
                labels = self.labels[places]
            yield from views(places, self._normalised(images), labels, block)

    def _normalised(self, images: Tensor) -> Tensor:
        """Return bytes (b, H, W, C) as floats (b, C, H, W) around 0; one product and one sum."""
        return images.mul(self._scale).add_(self._offset).permute(0, 3, 1, 2)


def _as_tensor(images: Any) -> Tensor:
    """Return images as a tensor (n, H, W, C) of bytes; one that is so already stays where it is."""
    if isinstance(images, Tensor) and images.dtype == torch.uint8 and images.is_cuda:
        found = as_images(images[:1].cpu())  # its shape is that of all
        return images.detach().reshape(-1, *found.shape[1:]).contiguous()
    array = np.ascontiguousarray(as_images(images))
    # Torch cannot promise not to write into an array, and warns where it must not.
    return torch.from_numpy(array if array.flags.writeable else array.copy())


def _checked_crop(crop: Any, images: Tensor) -> int:
    whole = isinstance(crop, Integral) and not isinstance(crop, bool)
    smallest = min(images.shape[1:3])
    if not whole or not 0 <= crop < smallest:
        raise InputError(
            f"crop must be a whole number of pixels from 0 to {smallest - 1}, less than the images "
            f"have, got {crop!r}."
        )
    return int(crop)


def _checked_flip(flip: Any) -> bool:
    if not isinstance(flip, bool | np.bool_):
        raise InputError(f"flip must be True or False, got {flip!r}.")
    return bool(flip)
