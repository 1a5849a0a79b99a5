"""Pixels of images as the features of a linear model."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.data.encoders.image_encoder import ImageEncoder, scale_and_offset
from calibrant.inputs import IntArray

_SIDE = 32  # Largest height and width; larger images are averaged over blocks of pixels
_BLOCK = 1024  # Images at a time, to limit memory


def pixel_features(encoder: ImageEncoder, images: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Return the normalised pixels (n, F) of images, averaged to at most 32 x 32."""
    n = len(images)
    features = np.empty((n, count_pixels(encoder)), dtype=np.float32)
    scale, offset = scale_and_offset(encoder.mean_, encoder.std_)
    for start in range(0, n, _BLOCK):
        part = _average_blocks(images[start : start + _BLOCK])
        features[start : start + _BLOCK] = (part * scale + offset).reshape(len(part), -1)
    return features


def count_pixels(encoder: ImageEncoder) -> int:
    """Return the number of features."""
    height, width = encoder.size_
    return min(height, _SIDE) * min(width, _SIDE) * encoder.channels_


def _average_blocks(images: NDArray[np.uint8]) -> NDArray[Any]:
    means: NDArray[Any] = images.astype(np.float32)
    for axis in (1, 2):
        size = images.shape[axis]
        if size > _SIDE:
            starts: IntArray = np.arange(_SIDE) * size // _SIDE
            counts = np.diff(starts, append=size).astype(np.float32)
            sums = np.add.reduceat(means, starts, axis=axis)
            means = sums / counts.reshape([-1 if i == axis else 1 for i in range(4)])
    return means
