"""Image files: a folder with one subfolder per class, or a numpy archive."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant.data.encoders.image_encoder import as_images
from calibrant.data.images.decoding import (
    SUFFIXES,
    Size,
    check_channels,
    check_size,
    read_image,
    resize_images,
)
from calibrant.errors import InputError
from calibrant.files.find import permission_error
from calibrant.files.npz import read_npz
from calibrant.inputs import FloatArray, as_weights


@dataclass(frozen=True, eq=False)
class ImageSet:
    """Images of one size, with their labels if there are any.

    Parameters
    ----------
    images : (n, H, W, C) uint8; C is 1 for grey and 3 for colour
    labels : n class names or integers, or None
    names : n image names: paths relative to the folder, or "0", "1", ...
    weights : (n,) row weights, or None
    classes : names of all classes, in file order; None without labels

    Examples
    --------
    >>> import numpy as np
    >>> pets = ImageSet(np.zeros((2, 4, 4, 1), dtype=np.uint8), ["cat", "dog"], ["a.png", "b.png"])
    >>> len(pets)
    2
    """

    images: NDArray[np.uint8]
    labels: list[Any] | None
    names: list[str]
    weights: FloatArray | None = None
    classes: tuple[Any, ...] | None = None

    def __len__(self) -> int:
        return len(self.names)


def read_archive(file: Path, *, size: Size = None, channels: int | None = None) -> ImageSet:
    """Read an npz file of images.

    Labels are names or integers; with `classes`, integers are positions in it. Colour is converted
    to grey by luminance, and grey to colour by repetition.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "pets.npz"
    >>> images = np.zeros((2, 8, 8, 3), dtype=np.uint8)
    >>> np.savez(file, images=images, labels=[1, 0], classes=["cat", "dog"])
    >>> read_archive(file).labels
    ['dog', 'cat']
    """
    try:
        arrays = read_npz(file)
    except PermissionError:
        raise permission_error(file) from None
    if "images" not in arrays:
        names_found = ", ".join(repr(name) for name in arrays) or "nothing"
        raise InputError(
            f"{file} has no array 'images' (arrays: {names_found}): save it with "
            "numpy.savez(file, images=..., labels=...)."
        )
    images = resize_images(as_images(arrays["images"], name=f"{file}: images"), size)
    n = len(images)
    labels, classes = _read_labels(arrays, n, file)
    weights = as_weights(arrays.get("weights"), n, name=f"{file}: weights")
    names = [str(place) for place in range(n)]
    return ImageSet(_with_channels(images, channels), labels, names, weights, classes)


def _with_channels(images: NDArray[np.uint8], channels: int | None) -> NDArray[np.uint8]:
    if channels is None or channels == images.shape[3]:
        return images
    if channels == 3:
        return images.repeat(3, axis=3)
    from PIL import Image

    grey = [np.asarray(Image.fromarray(image).convert("L")) for image in images]
    return np.stack(grey)[..., None]


def _read_labels(
    arrays: Mapping[str, NDArray[Any]], n: int, file: Path
) -> tuple[list[Any] | None, tuple[Any, ...] | None]:
    """Return the labels, and all classes in order."""
    if "labels" not in arrays:
        return None, None
    values = arrays["labels"]
    if values.shape != (n,):
        raise InputError(
            f"{file}: labels must have one label for each of the {n:,} images, got shape "
            f"{values.shape}."
        )
    if values.dtype.kind not in "iubUS":
        raise InputError(
            f"{file}: labels must be names or whole numbers, got {values.dtype}: save them as text "
            "or as integers."
        )
    labels = _decode_bytes(values, "labels", file)
    if "classes" not in arrays:
        return labels.tolist(), tuple(np.unique(labels).tolist())
    classes = _read_classes(arrays["classes"], file)
    if labels.dtype.kind == "U":
        return _check_known_names(labels, classes, file), classes
    return _names_at_positions(labels.astype(np.int64), classes, file), classes


def _read_classes(values: NDArray[Any], file: Path) -> tuple[Any, ...]:
    if values.ndim != 1 or values.dtype.kind not in "iuUS":
        raise InputError(
            f"{file}: classes must be a list of names, got {values.dtype} of shape {values.shape}."
        )
    names = _decode_bytes(values, "classes", file).tolist()
    duplicate = next((name for i, name in enumerate(names) if name in names[:i]), None)
    if duplicate is not None:
        raise InputError(f"{file}: classes contains {duplicate!r} twice: names must be unique.")
    return tuple(names)


def _decode_bytes(values: NDArray[Any], key: str, file: Path) -> NDArray[Any]:
    """Decode an array of bytes; return any other array unchanged."""
    if values.dtype.kind != "S":
        return values
    try:
        return np.char.decode(values, "utf-8")
    except UnicodeDecodeError:
        raise InputError(
            f"{file}: {key} contains bytes that are not UTF-8: save them as text (dtype str)."
        ) from None


def _names_at_positions(
    labels: NDArray[np.int64], classes: tuple[Any, ...], file: Path
) -> list[Any]:
    """Convert positions to class names."""
    out_of_range = (labels < 0) | (labels >= len(classes))
    if out_of_range.any():
        position = int(np.argmax(out_of_range))
        raise InputError(
            f"{file}: label {labels[position]} of image {position} is not a position in classes, "
            f"which has {len(classes)} names: correct the label or the array classes."
        )
    _warn_unused_classes({classes[label] for label in np.unique(labels)}, classes, file)
    return [classes[label] for label in labels]


def _check_known_names(labels: NDArray[Any], classes: tuple[Any, ...], file: Path) -> list[Any]:
    """Check that all labels are among the classes."""
    names: list[Any] = labels.tolist()
    listed = set(classes)
    position = next((i for i, name in enumerate(names) if name not in listed), None)
    if position is not None:
        raise InputError(
            f"{file}: label {names[position]!r} of image {position} is not in classes, which has "
            f"{len(classes)} names: correct the label or the array classes."
        )
    _warn_unused_classes(set(names), classes, file)
    return names


def _warn_unused_classes(used: set[Any], classes: tuple[Any, ...], file: Path) -> None:
    """Warn about classes without an image: fine in a golden set, but not in a train set."""
    unused = [name for name in classes if name not in used]
    if unused:
        warnings.warn(
            f"{file.name}: classes has {len(classes)} names, but only {len(used)} of them have an "
            f"image (the first without one is {unused[0]!r}).",
            UserWarning,
            stacklevel=6,
        )


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
