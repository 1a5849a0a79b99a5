"""Images from files: a folder with a folder for each class, or a numpy archive."""

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
from calibrant.files.find import denied

__all__ = ["ImageSet", "read_images", "scan_images"]

_BATCH = 256
_SHOWN = "png, jpg, bmp, webp or gif"
_WANTED = "name a folder with one folder of images for each class, or an .npz file"


class _File(NamedTuple):
    """An image file, its name relative to the folder that was named, and its class."""

    path: Path
    name: str
    label: str | None


class _First(NamedTuple):
    """The first image of all, whose size the others must have."""

    name: str
    height: int
    width: int


def read_images(path: str | Path, *, size: Size = None, channels: int | None = None) -> ImageSet:
    """Read labelled images: a folder with one folder for each class, or an npz file.

    A class is called after its folder. Files that end in png, jpg, jpeg, bmp, webp or gif are
    read in the order of their names; others, and all that begin with a dot, are passed over. Each
    is turned upright as its camera noted; what is transparent shows white; of an animation the
    first picture counts. Where some are in colour, grey ones become colour too.

    An npz file holds `images`, (n, H, W, C) bytes, and by wish `labels` (names or whole numbers),
    `classes` (names, of which labels are the positions) and `weights`. Nothing is unpickled.

    Parameters
    ----------
    path : the folder or the npz file
    size : pixels on each side, or (height, width): images are scaled until they just cover that,
        and their middle is cut out. None to leave them as they are; then all must have one size
    channels : 1 to make all grey, 3 to make all coloured; None for what the files have

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
    >>> found = read_images(folder, size=16)
    >>> found.images.shape, found.labels, found.names
    ((2, 16, 16, 3), ['cat', 'dog'], ['cat/1.png', 'dog/1.png'])
    """
    path = _checked(path, size, channels)
    if not path.is_dir():
        return read_archive(path, size=size, channels=channels)
    folders, loose = _inside(path)
    if not folders:
        beside = f" (it holds images itself, such as {loose[0].name})" if loose else ""
        raise InputError(
            f"{path} holds no folders{beside}: put the images of each class into a folder of its "
            "own, called after the class."
        )
    files, classes = _files(path, folders, loose)
    images = _pixels(files, size, channels, None)
    labels = [file.label for file in files]
    return ImageSet(images, labels, [file.name for file in files], None, classes)


def scan_images(
    path: str | Path,
    *,
    size: Size = None,
    batch: int = _BATCH,
    channels: int | None = None,
) -> Iterator[ImageSet]:
    """Read images batch by batch, with their labels where they have some.

    As `read_images`, and also a folder that holds images without folders, or one image file:
    these have no labels. Only a batch of a folder is in memory at a time; an npz file is read
    whole.

    Parameters
    ----------
    path : a folder, an npz file or an image file
    size, channels : see `read_images`; without `channels`, a batch of grey images has one channel
        and one with a coloured image has three
    batch : images at a time

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
    path = _checked(path, size, channels, alone=True)
    if path.is_dir() or _is_image(path):
        return _scan_files(path, size, int(batch), channels)
    return _parts(read_archive(path, size=size, channels=channels), int(batch))


def _scan_files(path: Path, size: Size, batch: int, channels: int | None) -> Iterator[ImageSet]:
    if path.is_dir():
        folders, loose = _inside(path)
        files, classes = _files(path, folders, loose)
    else:
        files, classes = [_File(path, path.name, None)], None
    first: _First | None = None
    for start in range(0, len(files), batch):
        some = files[start : start + batch]
        images = _pixels(some, size, channels, first)
        first = first or _First(some[0].name, *images.shape[1:3])
        labels = None if classes is None else [file.label for file in some]
        yield ImageSet(images, labels, [file.name for file in some], None, classes)


def _parts(whole: ImageSet, batch: int) -> Iterator[ImageSet]:
    for start in range(0, len(whole), batch):
        own = slice(start, start + batch)
        yield replace(
            whole,
            images=whole.images[own],
            labels=None if whole.labels is None else whole.labels[own],
            names=whole.names[own],
            weights=None if whole.weights is None else whole.weights[own],
        )


def _checked(path: str | Path, size: Size, channels: int | None, *, alone: bool = False) -> Path:
    """Check what was asked for; return a folder or file that is there."""
    check_size(size)
    check_channels(channels)
    if not str(path):  # '' would be the current folder: a shell variable left unset
        raise InputError(f"no images were named: {_WANTED}.")
    found = Path(path)
    if not found.exists():
        raise InputError(f"{found} does not exist: {_WANTED}.")
    single = found.suffix.lower() == ".npz" or (alone and _is_image(found))
    if not found.is_dir() and not single:
        raise InputError(f"{found} is neither a folder nor an .npz file: {_WANTED}.")
    return found


def _is_image(file: Path) -> bool:
    return file.suffix.lower() in SUFFIXES and not file.name.startswith(".")


def _inside(folder: Path) -> tuple[list[Path], list[Path]]:
    """Return the folders and the image files in a folder, each in the order of their names."""
    try:
        found = sorted(folder.iterdir(), key=lambda one: one.name)
    except PermissionError:
        raise denied(folder) from None
    # Names that begin with a dot, and this one, are the droppings of other tools.
    kept = [one for one in found if not one.name.startswith(".") and one.name != "__MACOSX"]
    folders = [one for one in kept if one.is_dir()]
    return folders, [one for one in kept if not one.is_dir() and _is_image(one)]


def _files(
    path: Path, folders: Sequence[Path], loose: Sequence[Path]
) -> tuple[list[_File], tuple[str, ...] | None]:
    """Return all image files, and the classes where they lie in folders."""
    if not folders:
        if not loose:
            raise InputError(f"{path} is a folder without any {_SHOWN} file: check the path.")
        return [_File(file, file.name, None) for file in loose], None
    if loose:
        raise InputError(
            f"{loose[0]} lies beside the folders of the classes: move it into the folder of its "
            "class, or out."
        )
    files: list[_File] = []
    for folder in folders:
        deeper, own = _inside(folder)
        if not own:
            where = (
                f" but folders such as {deeper[0].name!r}: name {folder} itself" if deeper else ""
            )
            remedy = where or f" ({_SHOWN}): add some, or take the folder out"
            raise InputError(f"the class folder {folder} holds no images{remedy}.")
        files += [_File(file, f"{folder.name}/{file.name}", folder.name) for file in own]
    return files, tuple(folder.name for folder in folders)


def _pixels(
    files: Sequence[_File], size: Size, channels: int | None, first: _First | None
) -> NDArray[np.uint8]:
    """Read files into one array, all grey or all in colour."""
    found: NDArray[np.uint8] | None = None
    coloured = False
    for place, file in enumerate(files):
        image = read_image(file.path, size=size, channels=channels)
        height, width, depth = image.shape
        first = first or _First(file.name, height, width)
        if (height, width) != first[1:]:
            raise InputError(
                f"images must all have one size, but {first.name} has {first.height} x "
                f"{first.width} pixels and {file.name} has {height} x {width}: bring them to one "
                "with size=64 (--image-size 64)."
            )
        if found is None:
            found = np.empty((len(files), height, width, 3), dtype=np.uint8)
        found[place] = image  # grey is repeated
        coloured = coloured or depth == 3
    assert found is not None  # there is at least one file
    return found if coloured else np.ascontiguousarray(found[..., :1])
