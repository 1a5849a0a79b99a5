"""Decoding of image files."""

from __future__ import annotations

from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import InputError
from calibrant.files.find import permission_error
from calibrant.files.source import reason_of

if TYPE_CHECKING:
    from PIL import Image


SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".webp", ".gif")

# JPEG includes MPO, which some cameras write. Other decoders, one of which runs Ghostscript, are
# never tried, whatever the suffix of a file.
_FORMATS = ("PNG", "JPEG", "BMP", "WEBP", "GIF")

Size = int | tuple[int, int] | None
"""Pixels on each side, or (height, width); None keeps the original size."""


def read_image(file: Path, *, size: Size = None, channels: int | None = None) -> NDArray[np.uint8]:
    """Read an image file as (H, W, C) uint8, with 1 channel for grey and 3 for colour.

    The EXIF orientation is applied, transparency becomes white, the first frame of an animation is
    used, and 16-bit grey is reduced to its upper eight bits.

    Examples
    --------
    >>> import tempfile
    >>> from PIL import Image
    >>> file = Path(tempfile.mkdtemp()) / "wide.png"
    >>> Image.new("RGB", (64, 32)).save(file)
    >>> read_image(file).shape, read_image(file, size=16).shape
    ((32, 64, 3), (16, 16, 3))
    """
    from PIL import Image

    try:
        with Image.open(file, formats=_FORMATS) as file_image:
            image = _crop_to_size(_to_grey_or_rgb(file_image), size)
    except PermissionError:
        raise permission_error(file) from None
    except Image.DecompressionBombError as error:
        raise InputError(
            f"{file} has too many pixels to be decoded safely ({reason_of(error)}): downscale "
            "it first."
        ) from None
    except Exception as error:  # decoders raise arbitrary errors on damaged files
        raise InputError(
            f"{file} cannot be read as an image ({reason_of(error)}): save it again, or remove "
            "it from the folder."
        ) from None
    if channels is not None:
        image = image.convert("L" if channels == 1 else "RGB")
    pixels = np.asarray(image)
    return pixels[..., None] if pixels.ndim == 2 else pixels


def resize_images(images: NDArray[np.uint8], size: Size) -> NDArray[np.uint8]:
    """Resize (n, H, W, C) images as `read_image` does.

    Examples
    --------
    >>> resize_images(np.zeros((2, 8, 4, 3), dtype=np.uint8), 2).shape
    (2, 2, 2, 3)
    """
    target_size = _height_and_width(size)
    if target_size is None or target_size == images.shape[1:3]:
        return images
    from PIL import Image

    resized_images = np.empty((len(images), *target_size, images.shape[3]), dtype=np.uint8)
    for i, image in enumerate(images):
        grey = image.shape[2] == 1
        pixels = np.asarray(
            _crop_to_size(Image.fromarray(image[..., 0] if grey else image), target_size)
        )
        resized_images[i] = pixels[..., None] if grey else pixels
    return resized_images


def check_size(size: Any) -> None:
    """Check that a size is a positive number of pixels."""
    pair = size if isinstance(size, tuple) and len(size) == 2 else (size,)
    for pixels in pair if size is not None else ():
        if not isinstance(pixels, Integral) or isinstance(pixels, bool) or pixels < 1:
            raise InputError(
                "size must be a whole number of pixels of at least 1, such as 64 "
                f"(--image-size 64), got {size!r}."
            )


def check_channels(channels: Any) -> None:
    """Check that the number of channels is 1 or 3."""
    if channels is not None and channels not in (1, 3):
        raise InputError(f"channels must be 1 for grey or 3 for colour, got {channels!r}.")


def _to_grey_or_rgb(image: Image.Image) -> Image.Image:
    """Apply the EXIF orientation and convert to grey ("L") or colour ("RGB")."""
    from PIL import Image, ImageOps

    image = ImageOps.exif_transpose(image)
    if image.mode.startswith("I"):  # PNG: a "32-bit" image has 16 bits
        values = np.asarray(image).astype(np.uint16) >> 8
        return Image.fromarray(values.astype(np.uint8))
    grey = image.mode in ("1", "L", "LA", "La")
    if image.mode in ("RGBA", "LA", "PA", "RGBa", "La") or "transparency" in image.info:
        image = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image)
    return image.convert("L" if grey else "RGB")


def _crop_to_size(image: Image.Image, size: Size) -> Image.Image:
    from PIL import Image, ImageOps

    target_size = _height_and_width(size)
    if target_size is None or target_size == (image.height, image.width):
        return image
    return ImageOps.fit(image, target_size[::-1], Image.Resampling.BILINEAR)


def _height_and_width(size: Size) -> tuple[int, int] | None:
    if size is None or isinstance(size, tuple):
        return size
    return int(size), int(size)
