"""Many image files from a folder or zip as one array, in memory or memory-mapped."""

from __future__ import annotations

import hashlib
import io
import os
import zipfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import InputError

__all__ = ["ImageFolder", "check_memory", "decoded"]

_AT_A_TIME = 4096
_GIB = 2**30
_SHARE = 0.75
"""Of a machine's memory that images may take: the rest is for training."""


class ImageFolder:
    """The files below a folder, or in a zip: their names, and the bytes of each.

    Parameters
    ----------
    place : a folder or a zip file
    inside : the folder in the zip that names are relative to, such as "tiny-imagenet-200"

    Examples
    --------
    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp())
    >>> (place / "val").mkdir()
    >>> _ = (place / "val" / "a.txt").write_text("dog")
    >>> found = ImageFolder(place)
    >>> found.names, found.read("val/a.txt")
    (['val/a.txt'], b'dog')
    """

    def __init__(self, place: Path, *, inside: str = "") -> None:
        self.place = place
        self._zip: zipfile.ZipFile | None = None
        self._inside = f"{inside}/" if inside else ""
        if place.is_dir():
            self.names = sorted(
                Path(top, name).relative_to(place).as_posix()
                for top, _, names in os.walk(place, followlinks=True)
                for name in names
            )
            return
        try:
            self._zip = zipfile.ZipFile(place)
        except (zipfile.BadZipFile, OSError):
            raise InputError(
                f"{place} is neither a folder nor a zip that can be read: download it again."
            ) from None
        listed = (name for name in self._zip.namelist() if not name.endswith("/"))
        self.names = sorted(
            name.removeprefix(self._inside) for name in listed if name.startswith(self._inside)
        )

    def read(self, name: str) -> bytes:
        """Return the bytes of a file."""
        try:
            if self._zip is not None:
                return self._zip.read(self._inside + name)
            return (self.place / name).read_bytes()
        except (KeyError, OSError, zipfile.BadZipFile):
            raise InputError(f"{self.place} holds no readable {name}: download it again.") from None


def decoded(
    folder: ImageFolder,
    names: Sequence[str],
    side: int,
    *,
    cache: Path | None = None,
) -> NDArray[np.uint8]:
    """Return the images of these names as (n, side, side, 3) bytes.

    An image is scaled until it just covers the square, and its middle is cut out. With a cache
    folder the array is a file there that is written once: memory then holds only the pages that
    are in use, and the next run reads it as it is.

    Parameters
    ----------
    folder : where they lie
    names : of JPEG or PNG files
    side : pixels on each side
    cache : where the array is kept; None for memory, which must be large enough

    Examples
    --------
    >>> import tempfile
    >>> from PIL import Image
    >>> place = Path(tempfile.mkdtemp())
    >>> Image.new("L", (80, 40), 9).save(place / "a.JPEG")
    >>> decoded(ImageFolder(place), ["a.JPEG"], 32).shape
    (1, 32, 32, 3)
    """
    shape = (len(names), side, side, 3)
    if cache is None:
        check_memory(int(np.prod(shape)))
        images = np.empty(shape, dtype=np.uint8)
        _fill(images, folder, names)
        return images
    digest = hashlib.sha256("\n".join([str(folder.place), *names]).encode()).hexdigest()[:12]
    cache_file = cache / f"images-{side}-{len(names)}-{digest}.npy"
    if not cache_file.is_file():
        cache.mkdir(parents=True, exist_ok=True)
        begun = cache_file.with_suffix(".part")
        written = np.lib.format.open_memmap(begun, mode="w+", dtype=np.uint8, shape=shape)
        _fill(written, folder, names)
        written.flush()
        begun.replace(cache_file)  # a file of that name is always whole
    # Private pages: torch wants memory that could be written to, and the file stays as it is.
    opened: NDArray[np.uint8] = np.load(cache_file, mmap_mode="c")
    return opened


def check_memory(needed: int) -> None:
    """Refuse images that do not fit into the memory of this machine.

    Examples
    --------
    >>> check_memory(32 * 32 * 3)
    """
    there = _memory()
    if there is not None and needed > _SHARE * there:
        raise InputError(
            f"the images take {needed / _GIB:,.1f} GiB, and this machine has {there / _GIB:,.1f} "
            "GiB of memory: set reading.image_size to fewer pixels, such as 64, reading.rows to "
            "fewer images, or reading.cache to a folder on a disk that has the room."
        )


def _memory() -> int | None:
    """Return the bytes of memory of this machine, None where the system does not tell."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # Windows
        return None


def _fill(images: NDArray[np.uint8], folder: ImageFolder, names: Sequence[str]) -> None:
    side = images.shape[1]

    def put(place: int) -> None:
        images[place] = _image(folder, names[place], side)

    with ThreadPoolExecutor(os.cpu_count()) as pool:  # decoders leave Python to the other threads
        for start in range(0, len(names), _AT_A_TIME):
            for _ in pool.map(put, range(start, min(start + _AT_A_TIME, len(names)))):
                pass


def _image(folder: ImageFolder, name: str, side: int) -> NDArray[np.uint8]:
    from PIL import Image, ImageOps

    data = folder.read(name)
    try:
        # Some of ImageNet's .JPEG files are PNG; no other decoder is tried.
        with Image.open(io.BytesIO(data), formats=("JPEG", "PNG")) as opened:
            image = opened.convert("RGB")
    except Exception as error:  # decoders raise whatever a damaged file makes them stumble over
        raise InputError(
            f"{name} in {folder.place} is not a readable image ({type(error).__name__}): "
            "download it again."
        ) from None
    if image.size != (side, side):
        image = ImageOps.fit(image, (side, side), Image.Resampling.BILINEAR)
    return np.asarray(image)
