"""Images in a numpy archive: `images`, and optionally `labels`, `classes` and `weights`."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.data.encoders.image_encoder import as_images
from calibrant.data.images.decoding import Size, resize_images
from calibrant.data.images.image_set import ImageSet
from calibrant.errors import InputError
from calibrant.files.find import permission_error
from calibrant.files.npz import read_npz
from calibrant.inputs import as_weights

__all__ = ["read_archive"]


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
