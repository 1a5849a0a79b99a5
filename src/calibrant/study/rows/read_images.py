"""Read the images of a study from a folder or an npz file."""

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
from calibrant.study.rows.source import StudySource, is_text, mask_filled, note_left_out

IMAGE = "image"
"""Column with a hash of each image's pixels."""

WEIGHT = "weight"
"""Column with the weights stored with the images, if any."""


def read_image_source(
    name: str, file: str, size: int | None, notes: list[str], *, logs: StudySource | None = None
) -> StudySource:
    """Read images with their labels.

    A golden set of grey images is read in colour if the logs are in colour, which loses nothing.
    The reverse would lose colours, so it is not done.
    """
    coloured = logs is not None and logs.images is not None and logs.images.shape[3] == 3
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        batch = read_images(file, size=size, channels=3 if coloured else None)
    if name == "logs":  # gaps of the golden set are reported by class
        notes += [str(warning.message) for warning in caught]
    if batch.labels is None:
        raise InputError(
            f"{file} has no labels: put the images of each class into a separate folder, or add "
            "the array 'labels' to the npz file."
        )
    labels = pa.chunked_array([pa.array(batch.labels)])
    mask = mask_filled(labels)
    note_left_out(mask, "a label", file, notes, unit="image")
    columns: dict[str, Any] = {IMAGE: content_hashes(batch.images), "file": batch.names}
    if batch.weights is not None and name == "golden":
        columns[WEIGHT] = batch.weights
    elif batch.weights is not None:
        notes.append(
            f"The weights in {Path(file).name} were not used: only a golden set has weights."
        )
    source = StudySource(
        name,
        file,
        pa.table(columns),
        pc.utf8_trim_whitespace(labels) if is_text(labels) else labels,
        np.arange(len(labels)),
        "the label",
        batch.images,
    )
    return source.where(mask)


def content_hashes(images: NDArray[np.uint8]) -> list[str]:
    """Return a hash of the pixels of each image.

    Examples
    --------
    >>> one, same, other = content_hashes(np.array([7, 7, 8], dtype=np.uint8).reshape(3, 1, 1, 1))
    >>> one == same, one == other
    (True, False)
    """
    rows = np.ascontiguousarray(images).reshape(len(images), -1)
    return [hashlib.blake2b(row.data, digest_size=16).hexdigest() for row in rows]


def check_same_size(logs: StudySource, golden: StudySource) -> None:
    """Raise `InputError` if the golden images differ from the logs in size or colour."""
    if logs.images is None or golden.images is None:
        return
    log_shape, golden_shape = logs.images.shape[1:], golden.images.shape[1:]
    if log_shape == golden_shape:
        return
    remedy = (
        f"resize both, like --image-size {min(log_shape[:2])}"
        if log_shape[:2] != golden_shape[:2]
        else "save both as grey images, or both in colour"
    )
    raise InputError(
        f"the images of {logs.file} are {_describe_shape(log_shape)}, but those of {golden.file} "
        f"are {_describe_shape(golden_shape)}: {remedy}."
    )


def _describe_shape(shape: tuple[int, ...]) -> str:
    height, width, channels = shape
    return f"{height} x {width} pixels {'in grey' if channels == 1 else 'in colour'}"
