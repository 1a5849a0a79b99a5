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
from calibrant.training.batches import Batch
from calibrant.training.sharding import as_row_labels, blocks, plan_batches, views


def crop_and_flip(
    images: Tensor, *, pad: int = 0, flip: bool = False, places: Tensor | None = None
) -> Tensor:
    r"""Randomly crop each image after padding it with black, and mirror half of them.

    $$
    x'_{ijc} = \begin{cases}
    x_{i+u,\; j'+v,\; c} & \text{inside the image}\\ 0 & \text{outside}
    \end{cases}
    \qquad j' = \begin{cases} j & m = 0\\ W - 1 - j & m = 1 \end{cases}
    $$

    - $x$ : an image of H rows and W columns, $x'$ the augmented image
    - $u, v$ : uniform on $-p, \dots, p$; $p$ is `pad`
    - $m$ : 0 or 1 with equal probability if `flip`, else 0

    The result equals padding by $p$ black pixels, a random crop and a random horizontal flip, in
    one gather without a padded copy. Random numbers come from torch's generator of the images'
    device (`torch.manual_seed`), without synchronising with a GPU.

    Images are not rotated, rescaled or changed in colour.

    References
    ----------
    K. He, X. Zhang, S. Ren, J. Sun, Deep residual learning for image recognition, CVPR 2016,
    section 4.2.

    Examples
    --------
    >>> import torch
    >>> from calibrant.training.image_rows import crop_and_flip
    >>> image = torch.tensor([[1, 2], [3, 4]]).reshape(1, 2, 2, 1)
    >>> bool((crop_and_flip(image) == image).all())  # no border, no flip: unchanged
    True
    >>> mirrored = crop_and_flip(image.expand(20, 2, 2, 1), flip=True).unique(dim=0)
    >>> mirrored.reshape(-1, 2, 2).tolist()  # both orientations occur
    [[[1, 2], [3, 4]], [[2, 1], [4, 3]]]
    """
    if places is None:
        places = torch.arange(len(images), device=images.device)
    n, device = len(places), images.device
    down = right = mirrored = None
    if pad:
        down, right = torch.randint(-pad, pad + 1, (2, n), device=device)
    if flip:
        mirrored = torch.randint(2, (n,), device=device)
    return cut_out(images, places, down=down, right=right, mirrored=mirrored)


def cut_out(
    images: Tensor,
    places: Tensor,
    *,
    down: Tensor | None = None,
    right: Tensor | None = None,
    mirrored: Tensor | None = None,
) -> Tensor:
    """Return a shifted, optionally mirrored copy of each selected image, black outside of it.

    Examples
    --------
    >>> import torch
    >>> image = torch.tensor([[1, 2], [3, 4]]).reshape(1, 2, 2, 1)
    >>> one = torch.tensor([1])
    >>> cut_out(image, torch.tensor([0]), down=one, right=one, mirrored=one).reshape(2, 2)
    tensor([[0, 4],
            [0, 0]])
    """
    if down is None and mirrored is None:
        return images[places]
    height, width = images.shape[1:3]
    rows = torch.arange(height, device=images.device)[None]
    columns = torch.arange(width, device=images.device)[None]
    if mirrored is not None:
        mirrored = mirrored[:, None]
        # j' = j for m = 0 and W - 1 - j for m = 1
        columns = columns * (1 - 2 * mirrored) + (width - 1) * mirrored
    if down is None or right is None:
        return images[places[:, None, None], rows[:, :, None], columns[:, None, :]]
    rows, columns = rows + down[:, None], columns + right[:, None]
    near_rows, near_columns = rows.clamp(0, height - 1), columns.clamp(0, width - 1)
    frames = images[places[:, None, None], near_rows[:, :, None], near_columns[:, None, :]]
    # A product instead of boolean indexing, which would synchronise with the GPU.
    inside = (rows == near_rows)[:, :, None] & (columns == near_columns)[:, None, :]
    return frames.mul_(inside[..., None])


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
