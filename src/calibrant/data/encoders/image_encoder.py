"""Images to numbers around 0: mean and spread of each colour are those of the train images."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import InputError, NotFitted
from calibrant.inputs import FloatArray

__all__ = ["ImageEncoder", "as_images", "scale_and_offset"]

FORMAT = 1
CHANNELS = (1, 3)
"""Grey, or red, green and blue."""

_BLOCK = 2**22
"""Pixel values counted at a time: counting needs eight bytes for each."""


class ImageEncoder:
    r"""Turn images into numbers with mean 0 and spread 1 in each channel of the train images.

    $$
    x'_{ijc} = \frac{x_{ijc} / 255 - \mu_c}{\sigma_c}
    $$

    - $x_{ijc}$ : a pixel of channel c, 0..255
    - $\mu_c, \sigma_c$ : mean and standard deviation of channel c over all pixels of all train
      images, in units of 0..1; $\sigma_c = 1$ where all pixels are equal

    `fit` learns, `transform` never does: give `fit` the train images only. It does not resize:
    all images must have the size of those it was fitted on.

    Attributes
    ----------
    size_ : height and width in pixels
    channels_ : 1 for grey, 3 for colour
    mean_, std_ : (C,) of each channel, in units of 0..1

    Examples
    --------
    >>> import numpy as np
    >>> train = np.array([0, 255, 255, 0], dtype=np.uint8).reshape(1, 2, 2, 1)
    >>> encoder = ImageEncoder().fit(train)
    >>> encoder.size_, encoder.mean_.tolist(), encoder.std_.tolist()
    ((2, 2), [0.5], [0.5])
    >>> encoder.transform(train).tolist()
    [[[[-1.0, 1.0], [1.0, -1.0]]]]
    """

    size_: tuple[int, int]
    channels_: int
    mean_: FloatArray
    std_: FloatArray

    def fit(self, images: Any) -> Self:
        """Learn size, mean and spread of the train images."""
        train = as_images(images)
        self.size_ = (train.shape[1], train.shape[2])
        self.channels_ = train.shape[3]
        values = np.arange(256) / 255
        counts = _counted(train)
        share = counts / counts.sum(axis=1, keepdims=True)
        self.mean_ = share @ values
        # Around the mean, so that a channel of one colour has a spread of 0 exactly.
        square = (values[None] - self.mean_[:, None]) ** 2
        spread = np.sqrt((share * square).sum(axis=1))
        constant = (counts > 0).sum(axis=1) == 1
        self.std_ = np.where(constant, 1.0, spread)
        return self

    def transform(self, images: Any) -> NDArray[np.float32]:
        """Return (n, C, H, W) numbers for a network; nothing is learned from the images.

        In memory the channels of a pixel stand together, as `ImageRows` deals them.
        """
        found = self.checked(images)
        scale, offset = scale_and_offset(self.mean_, self.std_)
        return np.asarray(found * scale + offset).transpose(0, 3, 1, 2)

    def checked(self, images: Any, *, name: str = "images") -> NDArray[np.uint8]:
        """Return images as (n, H, W, C); those of another size than at `fit` are refused."""
        self._check_fitted()
        found = as_images(images, name=name)
        if found.shape[1:] != (*self.size_, self.channels_):
            raise InputError(
                f"{name} must be {_told(*self.size_, self.channels_)} as at fit, got "
                f"{_told(*found.shape[1:])}: resize or convert them first."
            )
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return what was learned as JSON."""
        self._check_fitted()
        return {
            "format": FORMAT,
            "kind": "image",
            "size": list(self.size_),
            "channels": self.channels_,
            "mean": self.mean_.tolist(),
            "std": self.std_.tolist(),
        }

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> ImageEncoder:
        """Rebuild from `to_dict`."""
        if saved.get("format") != FORMAT or saved.get("kind") != "image":
            raise InputError(
                f"this is not an image encoder of format {FORMAT}: got format "
                f"{saved.get('format')!r} and kind {saved.get('kind')!r}."
            )
        made = cls()
        height, width = saved["size"]
        made.size_ = (int(height), int(width))
        made.channels_ = int(saved["channels"])
        made.mean_ = np.array(saved["mean"], dtype=np.float64)
        made.std_ = np.array(saved["std"], dtype=np.float64)
        _check_channels(made.mean_, made.std_, made.channels_)
        return made

    def _check_fitted(self) -> None:
        if not hasattr(self, "mean_"):
            raise NotFitted(
                "this ImageEncoder has not learned anything yet: call fit with the train images."
            )


def scale_and_offset(mean: Any, std: Any) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    r"""Return the one product and the one sum that normalise a pixel of 0..255.

    $$
    \frac{x / 255 - \mu}{\sigma} = x \cdot \frac{1}{255 \sigma} - \frac{\mu}{\sigma}
    $$

    Examples
    --------
    >>> scale, offset = scale_and_offset([0.5], [0.25])
    >>> (255 * scale + offset).tolist()
    [2.0]
    """
    mean, std = np.asarray(mean, dtype=np.float64), np.asarray(std, dtype=np.float64)
    _check_channels(mean, std, mean.size)
    return (1 / (255 * std)).astype(np.float32), (-mean / std).astype(np.float32)


def as_images(images: Any, *, name: str = "images") -> NDArray[np.uint8]:
    """Read images as one array (n, H, W, C) of bytes; C is 1 for grey and 3 for colour.

    Examples
    --------
    >>> import numpy as np
    >>> as_images([np.zeros((2, 5), dtype=np.uint8)]).shape
    (1, 2, 5, 1)
    """
    if hasattr(images, "detach"):  # a tensor
        images = images.detach().cpu().numpy()
    found = images if isinstance(images, np.ndarray) else _stacked(images, name)
    if found.dtype == object:
        found = _stacked(found, name)
    if not len(found.shape) or not len(found):
        raise InputError(f"{name} is empty: at least one image is needed.")
    return _with_channels(_as_bytes(found, name), name)


def _stacked(images: Any, name: str) -> NDArray[Any]:
    """Return a list of arrays as one array."""
    if isinstance(images, str | bytes | Mapping) or not hasattr(images, "__iter__"):
        raise InputError(
            f"{name} must be an array (n, height, width, channels) of whole numbers 0..255, or a "
            f"list of such images, got {type(images).__name__}: read_images reads files."
        )
    rows = [_one(image, i, name) for i, image in enumerate(images)]
    for i, row in enumerate(rows):
        if row.shape != rows[0].shape:
            raise InputError(
                f"{name} must all have one size, but image 0 has shape {rows[0].shape} and image "
                f"{i} has {row.shape}: resize or convert them first."
            )
    return np.stack(rows) if rows else np.empty(0, dtype=np.uint8)


def _one(image: Any, place: int, name: str) -> NDArray[Any]:
    if isinstance(image, str | bytes) or hasattr(image, "__fspath__"):
        raise InputError(
            f"{name} must be arrays of pixels, but row {place} is {image!r:.80}: read_images reads "
            "files."
        )
    if hasattr(image, "detach"):
        image = image.detach().cpu().numpy()
    try:
        found = np.asarray(image)
    except ValueError:  # rows of pixels of unequal length
        found = np.empty(0, dtype=object)
    if found.dtype.kind not in "uifb":
        raise InputError(
            f"{name} must be arrays of pixels, but row {place} is {type(image).__name__}."
        )
    return found


def _as_bytes(images: NDArray[Any], name: str) -> NDArray[np.uint8]:
    if images.dtype == np.uint8:
        return images
    if images.dtype.kind not in "ui":
        raise InputError(
            f"{name} must be whole numbers 0..255 (uint8), got {images.dtype}: where they lie in "
            "0..1, give (images * 255).round().astype('uint8')."
        )
    low, high = int(images.min(initial=0)), int(images.max(initial=0))
    if low < 0 or high > 255:
        raise InputError(
            f"{name} must be whole numbers 0..255, got {low if low < 0 else high}: bring them into "
            "this range first."
        )
    return images.astype(np.uint8)


def _with_channels(images: NDArray[np.uint8], name: str) -> NDArray[np.uint8]:
    """Check the shape; grey images get their one channel."""
    shape = images.shape
    if images.ndim == 3 and shape[2] == 3:
        raise InputError(
            f"{name} of shape {shape} may be one colour image or {shape[0]} grey ones that are 3 "
            "pixels wide: give images[None] for the first, images[..., None] for the second."
        )
    if images.ndim == 3:
        images = images[..., None]
    if images.ndim != 4 or images.shape[3] not in CHANNELS:
        turned = images.ndim == 4 and images.shape[1] in CHANNELS
        remedy = "give images.transpose(0, 2, 3, 1)" if turned else "convert them first"
        raise InputError(
            f"{name} must have the shape (n, height, width, channels) with 1 channel for grey or "
            f"3 for colour, got {shape}: {remedy}."
        )
    if 0 in images.shape:
        raise InputError(f"{name} must have at least one pixel each, got shape {shape}.")
    return images


def _counted(images: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Return how often each channel holds each of the values 0..255, (C, 256)."""
    channels = images.shape[3]
    found = np.zeros((channels, 256), dtype=np.int64)
    step = max(_BLOCK // images[0].size, 1)
    for start in range(0, len(images), step):
        block = images[start : start + step]
        for channel in range(channels):
            found[channel] += np.bincount(block[..., channel].ravel(), minlength=256)
    return found


def _check_channels(mean: FloatArray, std: FloatArray, channels: int) -> None:
    for name, given in (("mean", mean), ("std", std)):
        if given.shape != (channels,) or not np.isfinite(given).all():
            raise InputError(
                f"{name} must hold one finite number for each of the {channels} channels, got "
                f"{given.tolist()}."
            )
    if (std <= 0).any():
        raise InputError(f"std must be above 0 in each channel, got {std.tolist()}.")


def _told(height: int, width: int, channels: int) -> str:
    colour = {1: "grey", 3: "colour"}.get(channels, f"{channels}-channel")
    return f"{height} x {width} {colour} images"
