"""Batches of images, stored as bytes, normalised and augmented per batch."""

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
from calibrant.training.sharding import as_row_labels, blocks, plan_batches, views

__all__ = ["ImageRows"]

_BLOCK = 32 * 2**20
"""Bytes prepared at a time. Launching a GPU kernel takes as long as running it, so a block of
batches is prepared by one launch, in little memory compared to a network's."""


class ImageRows:
    r"""Images stored as bytes, a quarter of their size as floats, in normalised batches.

    $$
    x'_{bcij} = \frac{x_{bijc} / 255 - \mu_c}{\sigma_c}
    $$

    - $x$ : bytes, $x'$ : 32-bit floats (b, C, H, W) in channels-last memory layout, which GPU
      convolutions prefer
    - $\mu, \sigma$ : `mean` and `std`

    A shuffled epoch shifts each image by up to `crop` pixels and mirrors half of them, see
    `crop_and_flip`; the border is black before normalisation. It draws from torch's generator of
    the device. Without a generator images come in order and without augmentation.

    Images are not copied: do not write into them. A shuffled epoch never ends with a batch that
    leaves a process fewer than two rows: such a remainder joins the batch before.

    Parameters
    ----------
    images : (n, H, W, C) bytes, see `as_images`; a tensor stays on its device
    labels : (n,) classes as whole numbers; None for prediction, plan_batches as zeros
    mean, std : (C,) of each channel, in units of 0..1; `ImageEncoder` computes them
    crop : maximum shift in pixels; 0 for none
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
        self.crop, self.flip = _check_crop(crop, self.images), _check_flip(flip)
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
        """Description of the augmentation of a shuffled epoch; '' for none."""
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
        """Yield all rows in batches: shuffled by `generator` and augmented, in order without."""
        order, sizes = plan_batches(len(self), size, generator, shard)
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
            yield from views(places, self._normalise(images), labels, block)

    def _normalise(self, images: Tensor) -> Tensor:
        """Return bytes (b, H, W, C) as normalised floats (b, C, H, W)."""
        return images.mul(self._scale).add_(self._offset).permute(0, 3, 1, 2)


def _as_tensor(images: Any) -> Tensor:
    """Return images as a byte tensor (n, H, W, C); a tensor on a GPU stays there."""
    if isinstance(images, Tensor) and images.dtype == torch.uint8 and images.is_cuda:
        first = as_images(images[:1].cpu())  # all images have its shape
        return images.detach().reshape(-1, *first.shape[1:]).contiguous()
    array = np.ascontiguousarray(as_images(images))
    # Torch warns about read-only arrays, since it could write into them.
    return torch.from_numpy(array if array.flags.writeable else array.copy())


def _check_crop(crop: Any, images: Tensor) -> int:
    whole = isinstance(crop, Integral) and not isinstance(crop, bool)
    smallest = min(images.shape[1:3])
    if not whole or not 0 <= crop < smallest:
        raise InputError(
            f"crop must be a whole number of pixels from 0 to {smallest - 1}, below the size of "
            f"the images, got {crop!r}."
        )
    return int(crop)


def _check_flip(flip: Any) -> bool:
    if not isinstance(flip, bool | np.bool_):
        raise InputError(f"flip must be True or False, got {flip!r}.")
    return bool(flip)
