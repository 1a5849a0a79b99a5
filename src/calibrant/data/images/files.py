"""Image files: a folder with one subfolder per class, or a numpy archive."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from numbers import Integral
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant.data.images.archive import read_archive
from calibrant.data.images.decoding import SUFFIXES, Size, check_channels, check_size, read_image
from calibrant.data.images.image_set import ImageSet
from calibrant.errors import InputError
from calibrant.files.find import permission_error

__all__ = ["ImageSet", "read_images", "scan_images"]

_BATCH = 256
_FORMATS_SHOWN = "png, jpg, bmp, webp or gif"
_HINT = "give a folder with one subfolder of images per class, or an .npz file"


class _File(NamedTuple):
    """An image file, its name relative to the data folder, and its class."""

    path: Path
    name: str
    label: str | None


class _FirstImage(NamedTuple):
    """The first image, which sets the size of the others."""

    name: str
    height: int
    width: int


def read_images(path: str | Path, *, size: Size = None, channels: int | None = None) -> ImageSet:
    """Read labelled images from a folder with one subfolder per class, or from an npz file.

    Classes are named after their folders. Files with the suffix png, jpg, jpeg, bmp, webp or gif
    are read in alphabetical order; other files and names that start with a dot are ignored. The
    EXIF orientation is applied, transparency becomes white, and the first frame of an animation is
    used. If any image is in colour, grey images are converted to colour.

    An npz file contains `images`, (n, H, W, C) uint8, and optionally `labels` (names or integers),
    `classes` (names, with labels as positions) and `weights`. Nothing is unpickled.

    Parameters
    ----------
    path : the folder or the npz file
    size : pixels on each side, or (height, width): images are scaled to cover this size and
        centre-cropped. None keeps the original size, which must be the same for all
    channels : 1 converts to grey, 3 to colour; None keeps the channels of the files

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from PIL import Image
    >>> from calibrant.data import read_images
    >>> folder = Path(tempfile.mkdtemp())
    >>> for name, colour in (("cat", "black"), ("dog", "white")):
    ...     (folder / name).mkdir()
    ...     Image.new("RGB", (40, 30), colour).save(folder / name / "1.png")
    >>> pets = read_images(folder, size=16)
    >>> pets.images.shape, pets.labels, pets.names
    ((2, 16, 16, 3), ['cat', 'dog'], ['cat/1.png', 'dog/1.png'])
    """
    path = _check_path(path, size, channels)
    if not path.is_dir():
        return read_archive(path, size=size, channels=channels)
    folders, loose = _list_folder(path)
    if not folders:
        beside = f" (only images, such as {loose[0].name})" if loose else ""
        raise InputError(
            f"{path} has no subfolders{beside}: put the images of each class into a folder "
            "named after the class."
        )
    files, classes = _list_images(path, folders, loose)
    images = _read_pixels(files, size, channels, None)
    labels = [file.label for file in files]
    return ImageSet(images, labels, [file.name for file in files], None, classes)


def scan_images(
    path: str | Path,
    *,
    size: Size = None,
    batch: int = _BATCH,
    channels: int | None = None,
) -> Iterator[ImageSet]:
    """Read images in batches, with labels if there are any.

    Accepts what `read_images` does, and also a flat folder of images or a single image file, which
    have no labels. Only one batch of a folder is in memory at a time; an npz file is read whole.

    Parameters
    ----------
    path : a folder, an npz file or an image file
    size, channels : see `read_images`; without `channels`, an all-grey batch has one channel and
        a batch with a colour image has three
    batch : number of images per batch

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from PIL import Image
    >>> from calibrant.data import scan_images
    >>> folder = Path(tempfile.mkdtemp())
    >>> for number in range(3):
    ...     Image.new("L", (8, 8)).save(folder / f"{number}.png")
    >>> [part.names for part in scan_images(folder, batch=2)]
    [['0.png', '1.png'], ['2.png']]
    """
    if not isinstance(batch, Integral) or isinstance(batch, bool) or batch < 1:
        raise InputError(f"batch must be a whole number of at least 1, got {batch!r}.")
    path = _check_path(path, size, channels, allow_image=True)
    if path.is_dir() or _is_image(path):
        return _scan_files(path, size, int(batch), channels)
    return _split_archive(read_archive(path, size=size, channels=channels), int(batch))


def _scan_files(path: Path, size: Size, batch: int, channels: int | None) -> Iterator[ImageSet]:
    if path.is_dir():
        folders, loose = _list_folder(path)
        files, classes = _list_images(path, folders, loose)
    else:
        files, classes = [_File(path, path.name, None)], None
    first: _FirstImage | None = None
    for start in range(0, len(files), batch):
        batch_files = files[start : start + batch]
        images = _read_pixels(batch_files, size, channels, first)
        first = first or _FirstImage(batch_files[0].name, *images.shape[1:3])
        labels = None if classes is None else [file.label for file in batch_files]
        yield ImageSet(images, labels, [file.name for file in batch_files], None, classes)


def _split_archive(whole: ImageSet, batch: int) -> Iterator[ImageSet]:
    for start in range(0, len(whole), batch):
        rows = slice(start, start + batch)
        yield replace(
            whole,
            images=whole.images[rows],
            labels=None if whole.labels is None else whole.labels[rows],
            names=whole.names[rows],
            weights=None if whole.weights is None else whole.weights[rows],
        )


def _check_path(
    path: str | Path, size: Size, channels: int | None, *, allow_image: bool = False
) -> Path:
    """Check the arguments; return an existing folder or file."""
    check_size(size)
    check_channels(channels)
    if not str(path):  # '' would be the current folder: an unset shell variable
        raise InputError(f"path is empty: {_HINT}.")
    path = Path(path)
    if not path.exists():
        raise InputError(f"{path} does not exist: {_HINT}.")
    single = path.suffix.lower() == ".npz" or (allow_image and _is_image(path))
    if not path.is_dir() and not single:
        raise InputError(f"{path} is neither a folder nor an .npz file: {_HINT}.")
    return path


def _is_image(file: Path) -> bool:
    return file.suffix.lower() in SUFFIXES and not file.name.startswith(".")


def _list_folder(folder: Path) -> tuple[list[Path], list[Path]]:
    """Return the subfolders and image files of a folder, in alphabetical order."""
    try:
        entries = sorted(folder.iterdir(), key=lambda entry: entry.name)
    except PermissionError:
        raise permission_error(folder) from None
    # Hidden files and __MACOSX are created by other tools.
    visible = [
        entry for entry in entries if not entry.name.startswith(".") and entry.name != "__MACOSX"
    ]
    folders = [entry for entry in visible if entry.is_dir()]
    return folders, [entry for entry in visible if not entry.is_dir() and _is_image(entry)]


def _list_images(
    path: Path, folders: Sequence[Path], loose: Sequence[Path]
) -> tuple[list[_File], tuple[str, ...] | None]:
    """Return all image files, and the classes if they are in subfolders."""
    if not folders:
        if not loose:
            raise InputError(f"{path} is a folder without {_FORMATS_SHOWN} files: check the path.")
        return [_File(file, file.name, None) for file in loose], None
    if loose:
        raise InputError(
            f"{loose[0]} is next to the class folders: move it into a class folder, or remove it."
        )
    files: list[_File] = []
    for folder in folders:
        deeper, images = _list_folder(folder)
        if not images:
            hint = (
                f" but subfolders such as {deeper[0].name!r}: give {folder} itself"
                if deeper
                else ""
            )
            remedy = hint or f" ({_FORMATS_SHOWN}): add some, or remove the folder"
            raise InputError(f"the class folder {folder} has no images{remedy}.")
        files += [_File(file, f"{folder.name}/{file.name}", folder.name) for file in images]
    return files, tuple(folder.name for folder in folders)


def _read_pixels(
    files: Sequence[_File], size: Size, channels: int | None, first: _FirstImage | None
) -> NDArray[np.uint8]:
    """Read files into one array, all grey or all colour."""
    pixels: NDArray[np.uint8] | None = None
    any_colour = False
    for i, file in enumerate(files):
        image = read_image(file.path, size=size, channels=channels)
        height, width, depth = image.shape
        first = first or _FirstImage(file.name, height, width)
        if (height, width) != first[1:]:
            raise InputError(
                f"images must all have the same size, but {first.name} has {first.height} x "
                f"{first.width} pixels and {file.name} has {height} x {width}: resize them, "
                "for example with size=64 (--image-size 64)."
            )
        if pixels is None:
            pixels = np.empty((len(files), height, width, 3), dtype=np.uint8)
        pixels[i] = image  # grey is repeated
        any_colour = any_colour or depth == 3
    assert pixels is not None  # there is at least one file
    return pixels if any_colour else np.ascontiguousarray(pixels[..., :1])
