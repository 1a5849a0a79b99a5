"""One image file as an array of bytes."""

from __future__ import annotations

from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import InputError
from calibrant.files.find import denied
from calibrant.files.source import reason_of

if TYPE_CHECKING:
    from PIL import Image

__all__ = ["SUFFIXES", "Size", "check_channels", "check_size", "read_image", "resized"]

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".webp", ".gif")

# What these suffixes promise (JPEG also opens MPO, which some cameras write): decoders of other
# formats, one of which starts Ghostscript, are not tried, whatever a file is called.
_FORMATS = ("PNG", "JPEG", "BMP", "WEBP", "GIF")

Size = int | tuple[int, int] | None
"""Pixels on each side, or (height, width); None to leave images as they are."""


def read_image(file: Path, *, size: Size = None, channels: int | None = None) -> NDArray[np.uint8]:
    """Read an image file as (H, W, C) bytes, upright, with 1 channel for grey and 3 for colour.

    What a camera noted about the way it was held is followed. What is transparent shows white. Of
    an animation the first picture is read. Of 16-bit grey the upper eight bits are.

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
        with Image.open(file, formats=_FORMATS) as opened:
            image = _fitted(_plain(opened), size)
    except PermissionError:
        raise denied(file) from None
    except Image.DecompressionBombError as error:
        raise InputError(
            f"{file} has too many pixels to be unpacked safely ({reason_of(error)}): make it "
            "smaller first."
        ) from None
    except Exception as error:  # decoders raise whatever a damaged file makes them stumble over
        raise InputError(
            f"{file} cannot be read as an image ({reason_of(error)}): save it again, or take it "
            "out of the folder."
        ) from None
    if channels is not None:
        image = image.convert("L" if channels == 1 else "RGB")
    found = np.asarray(image)
    return found[..., None] if found.ndim == 2 else found


def resized(images: NDArray[np.uint8], size: Size) -> NDArray[np.uint8]:
    """Bring (n, H, W, C) images to a size, as `read_image` does.

    Examples
    --------
    >>> resized(np.zeros((2, 8, 4, 3), dtype=np.uint8), 2).shape
    (2, 2, 2, 3)
    """
    wanted = _pair(size)
    if wanted is None or wanted == images.shape[1:3]:
        return images
    from PIL import Image

    found = np.empty((len(images), *wanted, images.shape[3]), dtype=np.uint8)
    for place, image in enumerate(images):
        grey = image.shape[2] == 1
        fitted = np.asarray(_fitted(Image.fromarray(image[..., 0] if grey else image), wanted))
        found[place] = fitted[..., None] if grey else fitted
    return found


def check_size(size: Any) -> None:
    """Refuse what is no number of pixels."""
    pair = size if isinstance(size, tuple) and len(size) == 2 else (size,)
    for pixels in pair if size is not None else ():
        if not isinstance(pixels, Integral) or isinstance(pixels, bool) or pixels < 1:
            raise InputError(
                "size must be a whole number of pixels of at least 1, such as 64 "
                f"(--image-size 64), got {size!r}."
            )


def check_channels(channels: Any) -> None:
    """Refuse what is neither grey nor colour."""
    if channels is not None and channels not in (1, 3):
        raise InputError(f"channels must be 1 for grey or 3 for colour, got {channels!r}.")


def _plain(image: Image.Image) -> Image.Image:
    """Return an upright picture in grey ("L") or colour ("RGB")."""
    from PIL import Image, ImageOps

    image = ImageOps.exif_transpose(image)
    if image.mode.startswith("I"):  # of png, where a "32-bit" image has 16 bits
        values = np.asarray(image).astype(np.uint16) >> 8
        return Image.fromarray(values.astype(np.uint8))
    grey = image.mode in ("1", "L", "LA", "La")
    if image.mode in ("RGBA", "LA", "PA", "RGBa", "La") or "transparency" in image.info:
        image = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image)
    return image.convert("L" if grey else "RGB")


def _fitted(image: Image.Image, size: Size) -> Image.Image:
    from PIL import Image, ImageOps

    wanted = _pair(size)
    if wanted is None or wanted == (image.height, image.width):
        return image
    return ImageOps.fit(image, wanted[::-1], Image.Resampling.BILINEAR)


def _pair(size: Size) -> tuple[int, int] | None:
    if size is None or isinstance(size, tuple):
        return size
    return int(size), int(size)
