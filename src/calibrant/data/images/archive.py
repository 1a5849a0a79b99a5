"""Images in a numpy archive: `images`, and by wish `labels`, `classes` and `weights`."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.data.encoders.image_encoder import as_images
from calibrant.data.images.decoding import Size, resized
from calibrant.data.images.image_set import ImageSet
from calibrant.errors import InputError
from calibrant.files.find import denied
from calibrant.files.npz import read_npz
from calibrant.inputs import as_weights

__all__ = ["read_archive"]


def read_archive(file: Path, *, size: Size = None, channels: int | None = None) -> ImageSet:
    """Read an npz file of images.

    Labels are names or whole numbers; with `classes`, whole numbers are positions in it and become
    its names. Colour becomes grey as luminance, and grey colour by repeating it.

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
        raise denied(file) from None
    if "images" not in arrays:
        there = ", ".join(repr(name) for name in arrays) or "nothing"
        raise InputError(
            f"{file} has no array 'images', only {there}: save it with "
            "numpy.savez(file, images=..., labels=...)."
        )
    images = resized(as_images(arrays["images"], name=f"{file}: images"), size)
    n = len(images)
    labels, classes = _labels(arrays, n, file)
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


def _labels(
    arrays: Mapping[str, NDArray[Any]], n: int, file: Path
) -> tuple[list[Any] | None, tuple[Any, ...] | None]:
    """Return the labels, and all classes in their order."""
    if "labels" not in arrays:
        return None, None
    found = arrays["labels"]
    if found.shape != (n,):
        raise InputError(
            f"{file}: labels must hold one label for each of the {n:,} images, got shape "
            f"{found.shape}."
        )
    if found.dtype.kind not in "iubUS":
        raise InputError(
            f"{file}: labels must be names or whole numbers, got {found.dtype}: save them as text "
            "or as integers."
        )
    labels = _as_text(found, "labels", file)
    if "classes" not in arrays:
        return labels.tolist(), tuple(np.unique(labels).tolist())
    classes = _classes(arrays["classes"], file)
    if labels.dtype.kind == "U":
        return _known(labels, classes, file), classes
    return _named(labels.astype(np.int64), classes, file), classes


def _classes(found: NDArray[Any], file: Path) -> tuple[Any, ...]:
    if found.ndim != 1 or found.dtype.kind not in "iuUS":
        raise InputError(
            f"{file}: classes must be a list of names, got {found.dtype} of shape {found.shape}."
        )
    names = _as_text(found, "classes", file).tolist()
    twice = next((name for i, name in enumerate(names) if name in names[:i]), None)
    if twice is not None:
        raise InputError(f"{file}: classes has {twice!r} twice: names must differ.")
    return tuple(names)


def _as_text(values: NDArray[Any], key: str, file: Path) -> NDArray[Any]:
    """Return bytes as text; anything else as it is."""
    if values.dtype.kind != "S":
        return values
    try:
        return np.char.decode(values, "utf-8")
    except UnicodeDecodeError:
        raise InputError(
            f"{file}: {key} holds bytes that are no UTF-8 text: save them as text (dtype str)."
        ) from None


def _named(labels: NDArray[np.int64], classes: tuple[Any, ...], file: Path) -> list[Any]:
    """Turn positions into names."""
    off = (labels < 0) | (labels >= len(classes))
    if off.any():
        place = int(np.argmax(off))
        raise InputError(
            f"{file}: label {labels[place]} of image {place} is no position in classes, which has "
            f"{len(classes)} names: correct the label or the array classes."
        )
    _tell_unused({classes[label] for label in np.unique(labels)}, classes, file)
    return [classes[label] for label in labels]


def _known(labels: NDArray[Any], classes: tuple[Any, ...], file: Path) -> list[Any]:
    """Check that names are among the classes."""
    names: list[Any] = labels.tolist()
    listed = set(classes)
    place = next((i for i, name in enumerate(names) if name not in listed), None)
    if place is not None:
        raise InputError(
            f"{file}: label {names[place]!r} of image {place} is not in classes, which has "
            f"{len(classes)} names: correct the label or the array classes."
        )
    _tell_unused(set(names), classes, file)
    return names


def _tell_unused(used: set[Any], classes: tuple[Any, ...], file: Path) -> None:
    """Warn of names without an image: a golden set may lack a rare class, a train set not."""
    unused = [name for name in classes if name not in used]
    if unused:
        warnings.warn(
            f"{file.name}: classes has {len(classes)} names, but only {len(used)} of them have an "
            f"image (the first without is {unused[0]!r}).",
            UserWarning,
            stacklevel=6,
        )
