"""Images stacked in one picture, and archives of such pictures."""

from __future__ import annotations

import io
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import InputError
from calibrant.files.npz import read_npz
from calibrant.inputs import IntArray

__all__ = ["read_strips"]


def read_strips(file: Path, *, side: int = 32) -> tuple[NDArray[np.uint8], IntArray | None]:
    """Read an archive of strips: images (n, side, side, 3) and their labels, where it has some.

    A strip is a lossless WebP picture of some images one under another, which takes a third of the
    room of their bytes. The archive holds all of them end to end.

    Parameters
    ----------
    file : npz with `blob` (bytes of all strips), `offsets` (where each begins, and where the last
        ends) and optionally `labels`
    side : pixels of an image

    Examples
    --------
    >>> import tempfile
    >>> from PIL import Image
    >>> from pathlib import Path
    >>> kept = io.BytesIO()
    >>> Image.fromarray(np.zeros((64, 32, 3), dtype=np.uint8)).save(kept, "WEBP", lossless=True)
    >>> blob = np.frombuffer(kept.getvalue(), dtype=np.uint8)
    >>> file = Path(tempfile.mkdtemp()) / "two.npz"
    >>> np.savez(file, blob=blob, offsets=[0, len(blob)], labels=[3, 8])
    >>> images, labels = read_strips(file)
    >>> images.shape, labels
    ((2, 32, 32, 3), array([3, 8]))
    """
    from PIL import Image, UnidentifiedImageError

    arrays = read_npz(file)
    missing = [name for name in ("blob", "offsets") if name not in arrays]
    if missing:
        raise InputError(f"{file} holds no array {missing[0]!r}: replace the file.")
    blob, strips = arrays["blob"].tobytes(), []
    try:
        for start, stop in pairwise(arrays["offsets"].tolist()):
            # WebP alone: no other decoder is tried, whatever the bytes look like.
            with Image.open(io.BytesIO(blob[start:stop]), formats=("WEBP",)) as picture:
                pixels = np.asarray(picture.convert("RGB"))
            strips.append(pixels.reshape(-1, side, side, 3))
        images = np.concatenate(strips)
    except (UnidentifiedImageError, ValueError, OSError):
        raise InputError(
            f"{file} is damaged: strip {len(strips)} is not a picture of {side} x {side} images: "
            "replace the file."
        ) from None
    labels = arrays["labels"].astype(np.int64) if "labels" in arrays else None
    if labels is not None and labels.shape != (len(images),):
        raise InputError(
            f"{file} is damaged: it has {len(images)} images and labels of shape {labels.shape}: "
            "replace the file."
        )
    return images, labels
