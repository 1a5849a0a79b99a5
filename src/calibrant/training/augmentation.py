"""Image augmentation: random crops and horizontal flips."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["crop_and_flip", "cut_out"]


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
    >>> from calibrant.training.augmentation import crop_and_flip
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
