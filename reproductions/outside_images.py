"""Images outside the classes of CIFAR-10: house numbers, clothes, and noisy images."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import InputError
from calibrant.files.npz import read_npz
from reproductions.data_sets import find
from reproductions.image_parts import cut
from reproductions.image_strips import read_strips

__all__ = ["OUTSIDE", "fashion_mnist", "outside_images", "svhn", "with_noise"]

Images = NDArray[np.uint8]

OUTSIDE = ("svhn", "fashion_mnist", "noise")
"""Names of the data sets that `outside_images` reads."""

_IDX_HEADER = np.dtype([("magic", ">u4"), ("n", ">u4"), ("height", ">u4"), ("width", ">u4")])
_IDX_IMAGES = 2051
"""The number that an idx file of images begins with."""


def outside_images(names: Sequence[str], test: Images, *, share: float = 1.0) -> dict[str, Images]:
    """Return images (n, 32, 32, 3) of each data set by name.

    Parameters
    ----------
    names : of `OUTSIDE`
    test : the test images of CIFAR-10, that noise is laid over
    share : of the images of a data set, the first ones; `test` is cut already

    Examples
    --------
    >>> test = np.full((2, 32, 32, 3), 100, dtype=np.uint8)
    >>> {name: images.shape for name, images in outside_images(["noise"], test).items()}
    {'noise': (2, 32, 32, 3)}
    """
    unknown = [name for name in names if name not in OUTSIDE]
    if unknown:
        raise InputError(f"outside must name some of {', '.join(OUTSIDE)}, got {unknown[0]!r}.")
    read = {"svhn": svhn, "fashion_mnist": fashion_mnist}
    return {
        name: with_noise(test) if name == "noise" else cut(read[name](), share) for name in names
    }


def svhn() -> Images:
    """Read test images of SVHN, digits of house numbers.

    The published file has 26,032; the archive of strips has the first 5,000 of them.
    """
    file = find("svhn")[0]
    if file.suffix == ".npz":
        return read_strips(file)[0]
    from scipy.io import loadmat

    try:
        pixels = loadmat(file, variable_names=["X"])["X"]
    except Exception as error:  # what a damaged file raises has no end
        raise InputError(
            f"{file} is not a readable SVHN file ({type(error).__name__}): download it again."
        ) from None
    if pixels.dtype != np.uint8 or pixels.ndim != 4 or pixels.shape[:3] != (32, 32, 3):
        raise InputError(f"{file} holds no images of 32 x 32 colour pixels: download it again.")
    return np.ascontiguousarray(pixels.transpose(3, 0, 1, 2))


def fashion_mnist() -> Images:
    """Read the 10,000 test images of Fashion-MNIST, with a black border and grey as colours."""
    file = find("fashion_mnist")[0]
    grey = read_npz(file)["images"] if file.suffix == ".npz" else _read_idx(file)
    return as_colour(grey)


def as_colour(grey: Images) -> Images:
    """Lay grey images of 28 x 28 pixels in the middle of black ones of 32 x 32, three times.

    Examples
    --------
    >>> made = as_colour(np.full((1, 28, 28), 7, dtype=np.uint8))
    >>> made.shape, made[0, 1].max(), made[0, 2, 2].tolist()
    ((1, 32, 32, 3), np.uint8(0), [7, 7, 7])
    """
    return np.pad(grey, ((0, 0), (2, 2), (2, 2)))[..., None].repeat(3, axis=3)


def with_noise(images: Images, *, sd: float = 0.10, seed: int = 1) -> Images:
    r"""Add Gaussian noise to every value of every pixel.

    $$ x' = \min(\max(x + \sigma e, 0), 1), \qquad e \sim N(0, 1) $$

    with $x$ a pixel as a share of the brightest one, rounded to bytes at the end. A standard
    deviation of 0.10 is that of the strongest Gaussian noise in CIFAR-10-C for images of 32 x 32
    pixels, so it stands in for that set. It is not the set itself: its draws are others, and it
    cuts fractions off where this rounds.

    Parameters
    ----------
    images : (n, H, W, C) bytes
    sd : standard deviation $\sigma$
    seed : of the draws

    References
    ----------
    Hendrycks and Dietterich (2019), Benchmarking neural network robustness to common corruptions
    and perturbations.

    Examples
    --------
    >>> grey = np.full((1, 32, 32, 3), 128, dtype=np.uint8)
    >>> round(float(with_noise(grey).std()) / 255, 2)
    0.1
    """
    draw, noisy_images = np.random.default_rng(seed), np.empty_like(images)
    for start in range(0, len(images), 1000):  # floats of all images at once need eight times more
        block = images[start : start + 1000]
        noisy = block + draw.standard_normal(block.shape, dtype=np.float32) * np.float32(255 * sd)
        noisy_images[start : start + 1000] = noisy.clip(0, 255).round()
    return noisy_images


def _read_idx(file: Path) -> Images:
    """Read a packed idx file: four numbers, and the bytes of all pixels."""
    try:
        with gzip.open(file) as packed:
            data = packed.read()
        header = np.frombuffer(data, dtype=_IDX_HEADER, count=1)[0]
        if header["magic"] != _IDX_IMAGES:
            raise ValueError
        shape = tuple(int(header[name]) for name in ("n", "height", "width"))
        return np.frombuffer(data, dtype=np.uint8, offset=_IDX_HEADER.itemsize).reshape(shape)
    except (OSError, EOFError, ValueError):
        raise InputError(f"{file} is not a packed idx file of images: download it again.") from None
