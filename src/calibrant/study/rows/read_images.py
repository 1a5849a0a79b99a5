"""Read the images of a study: a folder or an npz file as rows with labels, equal images known."""

from __future__ import annotations

import hashlib
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from calibrant.data.images.files import read_images
from calibrant.errors import InputError
from calibrant.study.rows.source import Source, filled, is_text, left_out

__all__ = ["IMAGE", "WEIGHT", "check_same_size", "content_hashes", "image_source"]

IMAGE = "image"
"""Column with a hash of each image's pixels."""

WEIGHT = "weight"
"""Column with the weights that lie by the images, where there are some."""


def image_source(
    name: str, file: str, size: int | None, notes: list[str], *, logs: Source | None = None
) -> Source:
    """Read images with their labels.

    A golden set that happens to be all grey is read in colour where the logs are: that loses
    nothing. The reverse would, so it is left as it is.
    """
    coloured = logs is not None and logs.images is not None and logs.images.shape[3] == 3
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        found = read_images(file, size=size, channels=3 if coloured else None)
    if name == "logs":  # what the golden set lacks is told by class
        notes += [str(one.message) for one in caught]
    if found.labels is None:
        raise InputError(
            f"{file} has no labels: put the images of each class into a folder of its own, or add "
            "the array 'labels' to the npz file."
        )
    labels = pa.chunked_array([pa.array(found.labels)])
    there = filled(labels)
    left_out(there, "a label", file, notes, unit="image")
    columns: dict[str, Any] = {IMAGE: content_hashes(found.images), "file": found.names}
    if found.weights is not None and name == "golden":
        columns[WEIGHT] = found.weights
    elif found.weights is not None:
        notes.append(
            f"The weights in {Path(file).name} were not used: only those of a golden set are."
        )
    source = Source(
        name,
        file,
        pa.table(columns),
        pc.utf8_trim_whitespace(labels) if is_text(labels) else labels,
        np.arange(len(labels)),
        "the label",
        found.images,
    )
    return source.where(there)


def content_hashes(images: NDArray[np.uint8]) -> list[str]:
    """Return for each image a text that only images with the same pixels have.

    Examples
    --------
    >>> one, same, other = content_hashes(np.array([7, 7, 8], dtype=np.uint8).reshape(3, 1, 1, 1))
    >>> one == same, one == other
    (True, False)
    """
    rows = np.ascontiguousarray(images).reshape(len(images), -1)
    return [hashlib.blake2b(row.data, digest_size=16).hexdigest() for row in rows]


def check_same_size(logs: Source, golden: Source) -> None:
    """Refuse a golden set whose images have another size or other colours than the logs."""
    if logs.images is None or golden.images is None:
        return
    mine, theirs = logs.images.shape[1:], golden.images.shape[1:]
    if mine == theirs:
        return
    size = mine[:2] != theirs[:2]
    remedy = (
        f"bring both to one size, like --image-size {min(mine[:2])}"
        if size
        else "save both as grey images, or both in colour"
    )
    raise InputError(
        f"the images of {logs.file} are {_told(mine)}, but those of {golden.file} are "
        f"{_told(theirs)}: {remedy}."
    )


def _told(shape: tuple[int, ...]) -> str:
    height, width, channels = shape
    return f"{height} x {width} pixels {'in grey' if channels == 1 else 'in colour'}"
