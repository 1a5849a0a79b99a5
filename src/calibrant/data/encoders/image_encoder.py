"""Normalisation of images with the channel means and standard deviations of the train images."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import InputError, NotFitted
from calibrant.inputs import FloatArray

FORMAT = 1
CHANNELS = (1, 3)
"""Grey, or red, green and blue."""

_BLOCK = 2**22
"""Pixel values counted per step: each takes eight bytes."""


class ImageEncoder:
    r"""Normalise images to mean 0 and standard deviation 1 per channel of the train images.

    $$
    x'_{ijc} = \frac{x_{ijc} / 255 - \mu_c}{\sigma_c}
    $$

    - $x_{ijc}$ : a pixel of channel c, 0..255
    - $\mu_c, \sigma_c$ : mean and standard deviation of channel c over all pixels of all train
      images, in units of 0..1; $\sigma_c = 1$ if all pixels are equal

    Only `fit` learns: pass it the train images only. Images are not resized: all must have the
    size of those seen by `fit`.

    Attributes
    ----------
    size_ : height and width in pixels
    channels_ : 1 for grey, 3 for colour
    mean_, std_ : (C,) mean and standard deviation of each channel, in units of 0..1

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
        """Learn the size, means and standard deviations of the train images."""
        train = as_images(images)
        self.size_ = (train.shape[1], train.shape[2])
        self.channels_ = train.shape[3]
        values = np.arange(256) / 255
        counts = _value_counts(train)
        share = counts / counts.sum(axis=1, keepdims=True)
        self.mean_ = share @ values
        # Centred, so that a constant channel has a standard deviation of exactly 0.
        square = (values[None] - self.mean_[:, None]) ** 2
        spread = np.sqrt((share * square).sum(axis=1))
        constant = (counts > 0).sum(axis=1) == 1
        self.std_ = np.where(constant, 1.0, spread)
        return self

    def transform(self, images: Any) -> NDArray[np.float32]:
        """Return normalised images (n, C, H, W) for a network.

        The memory layout is channels-last, as in `ImageRows`.
        """
        pixels = self.check_images(images)
        scale, offset = scale_and_offset(self.mean_, self.std_)
        return np.asarray(pixels * scale + offset).transpose(0, 3, 1, 2)

    def check_images(self, images: Any, *, name: str = "images") -> NDArray[np.uint8]:
        """Return images as (n, H, W, C), or raise `InputError` if their size differs from `fit`."""
        self._check_fitted()
        pixels = as_images(images, name=name)
        if pixels.shape[1:] != (*self.size_, self.channels_):
            raise InputError(
                f"{name} must be {_describe_size(*self.size_, self.channels_)} as at fit, got "
                f"{_describe_size(*pixels.shape[1:])}: resize or convert them first."
            )
        return pixels

    def to_dict(self) -> dict[str, Any]:
        """Return the fitted state as JSON values."""
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
        encoder = cls()
        height, width = saved["size"]
        encoder.size_ = (int(height), int(width))
        encoder.channels_ = int(saved["channels"])
        encoder.mean_ = np.array(saved["mean"], dtype=np.float64)
        encoder.std_ = np.array(saved["std"], dtype=np.float64)
        _check_channels(encoder.mean_, encoder.std_, encoder.channels_)
        return encoder

    def _check_fitted(self) -> None:
        if not hasattr(self, "mean_"):
            raise NotFitted("this ImageEncoder is not fitted yet: call fit with the train images.")


def scale_and_offset(mean: Any, std: Any) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    r"""Return the scale and the offset that normalise a pixel of 0..255.

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
    """Convert images to one uint8 array (n, H, W, C); C is 1 for grey and 3 for colour.

    Examples
    --------
    >>> import numpy as np
    >>> as_images([np.zeros((2, 5), dtype=np.uint8)]).shape
    (1, 2, 5, 1)
    """
    if hasattr(images, "detach"):  # a tensor
        images = images.detach().cpu().numpy()
    pixels = images if isinstance(images, np.ndarray) else _stack_images(images, name)
    if pixels.dtype == object:
        pixels = _stack_images(pixels, name)
    if not len(pixels.shape) or not len(pixels):
        raise InputError(f"{name} is empty: at least one image is needed.")
    return _with_channels(_as_bytes(pixels, name), name)


def _stack_images(images: Any, name: str) -> NDArray[Any]:
    """Stack a list of images into one array."""
    if isinstance(images, str | bytes | Mapping) or not hasattr(images, "__iter__"):
        raise InputError(
            f"{name} must be an array (n, height, width, channels) of whole numbers 0..255, or a "
            f"list of such images, got {type(images).__name__}: use read_images for files."
        )
    rows = [_as_pixel_array(image, i, name) for i, image in enumerate(images)]
    for i, row in enumerate(rows):
        if row.shape != rows[0].shape:
            raise InputError(
                f"{name} must all have the same size, but image 0 has shape {rows[0].shape} and "
                f"image {i} has {row.shape}: resize or convert them first."
            )
    return np.stack(rows) if rows else np.empty(0, dtype=np.uint8)


def _as_pixel_array(image: Any, row: int, name: str) -> NDArray[Any]:
    if isinstance(image, str | bytes) or hasattr(image, "__fspath__"):
        raise InputError(
            f"{name} must be arrays of pixels, but row {row} is {image!r:.80}: use read_images "
            "for files."
        )
    if hasattr(image, "detach"):
        image = image.detach().cpu().numpy()
    try:
        pixels = np.asarray(image)
    except ValueError:  # ragged rows
        pixels = np.empty(0, dtype=object)
    if pixels.dtype.kind not in "uifb":
        raise InputError(
            f"{name} must be arrays of pixels, but row {row} is {type(image).__name__}."
        )
    return pixels


def _as_bytes(images: NDArray[Any], name: str) -> NDArray[np.uint8]:
    if images.dtype == np.uint8:
        return images
    if images.dtype.kind not in "ui":
        raise InputError(
            f"{name} must be whole numbers 0..255 (uint8), got {images.dtype}: if they are in "
            "0..1, pass (images * 255).round().astype('uint8')."
        )
    low, high = int(images.min(initial=0)), int(images.max(initial=0))
    if low < 0 or high > 255:
        raise InputError(
            f"{name} must be whole numbers 0..255, got {low if low < 0 else high}: rescale "
            "them first."
        )
    return images.astype(np.uint8)


def _with_channels(images: NDArray[np.uint8], name: str) -> NDArray[np.uint8]:
    """Check the shape; add the channel axis to grey images."""
    shape = images.shape
    if images.ndim == 3 and shape[2] == 3:
        raise InputError(
            f"{name} of shape {shape} is ambiguous, one colour image or {shape[0]} grey ones 3 "
            "pixels wide: pass images[None] for the first, images[..., None] for the second."
        )
    if images.ndim == 3:
        images = images[..., None]
    if images.ndim != 4 or images.shape[3] not in CHANNELS:
        channels_first = images.ndim == 4 and images.shape[1] in CHANNELS
        remedy = "pass images.transpose(0, 2, 3, 1)" if channels_first else "convert them first"
        raise InputError(
            f"{name} must have the shape (n, height, width, channels) with 1 channel for grey or "
            f"3 for colour, got {shape}: {remedy}."
        )
    if 0 in images.shape:
        raise InputError(f"{name} must have at least one pixel each, got shape {shape}.")
    return images


def _value_counts(images: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Count the values 0..255 in each channel, (C, 256)."""
    channels = images.shape[3]
    counts = np.zeros((channels, 256), dtype=np.int64)
    step = max(_BLOCK // images[0].size, 1)
    for start in range(0, len(images), step):
        block = images[start : start + step]
        for channel in range(channels):
            counts[channel] += np.bincount(block[..., channel].ravel(), minlength=256)
    return counts


def _check_channels(mean: FloatArray, std: FloatArray, channels: int) -> None:
    for name, values in (("mean", mean), ("std", std)):
        if values.shape != (channels,) or not np.isfinite(values).all():
            raise InputError(
                f"{name} must have one finite number for each of the {channels} channels, got "
                f"{values.tolist()}."
            )
    if (std <= 0).any():
        raise InputError(f"std must be above 0 in each channel, got {std.tolist()}.")


def _describe_size(height: int, width: int, channels: int) -> str:
    colour = {1: "grey", 3: "colour"}.get(channels, f"{channels}-channel")
    return f"{height} x {width} {colour} images"
