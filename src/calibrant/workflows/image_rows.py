"""The images of a folder or an npz file as a bundle takes them."""

from __future__ import annotations

import warnings
from collections.abc import Generator, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from calibrant.data.encoders.image_encoder import ImageEncoder
from calibrant.data.images.decoding import SUFFIXES
from calibrant.data.images.files import ImageSet, scan_images
from calibrant.errors import InputError
from calibrant.inputs import FloatArray
from calibrant.workflows.scored_rows import Given, scored_in_order

if TYPE_CHECKING:
    from calibrant.models.scorer import Scorer

__all__ = ["ImageFileRows", "holds_images"]

_ARCHIVE = ".npz"
_MIXED = "images must all have the same size"


class ImageFileRows:
    """Images, each a row that has its name, and what else lies by it.

    Where the model was trained on images that were brought to one size, these are too. Colour
    becomes grey and grey colour, as the model reads it.

    Parameters
    ----------
    scorer : the bundle's model
    data : a folder of images, flat or with a folder for each class, an image file, or an npz file
    """

    notes: tuple[str, ...] = ()

    def __init__(self, scorer: Scorer, data: str) -> None:
        assert isinstance(scorer.encoder, ImageEncoder)  # it reads images
        self._scorer, self._encoder, self._data = scorer, scorer.encoder, data
        self.files = [Path(data)]
        if self.files[0].is_file() and self.files[0].suffix.lower() not in (_ARCHIVE, *SUFFIXES):
            raise InputError(
                f"{data} is no image, but the bundle reads images: name a folder of images, or an "
                ".npz file with the array 'images'."
            )

    def estimate(self) -> int | None:
        """Return how many images a folder holds; None where only reading them would tell."""
        folder = self.files[0]
        if not folder.is_dir():
            return None
        return sum(1 for file in folder.glob("**/*") if file.suffix.lower() in SUFFIXES)

    def batches(self) -> Generator[Given, None, None]:
        """Yield the rows in their order, in memory that does not grow with their number.

        An npz file is read whole, as bytes.
        """
        with closing(scored_in_order(self._parts(), self._logits, deep=True)) as scored:
            for part, logits in scored:
                columns: dict[str, Any] = {"image": part.names}
                if part.labels is not None:
                    columns["label"] = part.labels
                if part.weights is not None:
                    columns["weight"] = part.weights
                yield Given(pa.table(columns), {"logits": logits})

    def _parts(self) -> Iterator[ImageSet]:
        from calibrant.models.scoring import images_at_a_time

        size = self._encoder.size_ if self._scorer.resize else None
        try:
            with warnings.catch_warnings():  # classes without an image are none of our business
                warnings.simplefilter("ignore", UserWarning)
                parts = scan_images(
                    self._data,
                    size=size,
                    batch=images_at_a_time(self._scorer.device, *self._encoder.size_),
                    channels=self._encoder.channels_,
                )
            yield from parts
        except InputError as error:
            if _MIXED not in str(error):
                raise
            # Its remedy is for training: where a bundle reads, the size is settled.
            raise self._wrong_size(str(error).partition(": resize")[0]) from None

    def _logits(self, part: ImageSet) -> FloatArray:
        if part.images.shape[1:3] != self._encoder.size_:
            height, width = part.images.shape[1:3]
            raise self._wrong_size(f"{part.names[0]} has {height} x {width} pixels")
        return self._scorer.predict_logits(part.images)

    def _wrong_size(self, what: str) -> InputError:
        height, width = self._encoder.size_
        square = f", or train it with --image-size {height}" if height == width else ""
        return InputError(
            f"{self._data}: {what}; the bundle reads {height} x {width}: resize them first{square}."
        )


def holds_images(data: str) -> bool:
    """Say whether a path is an image, an npz file, or a folder with images and no other files.

    Examples
    --------
    >>> holds_images("photos.npz"), holds_images("returns.csv")
    (True, False)
    """
    path = Path(data)
    if not path.is_dir():
        return path.suffix.lower() in (_ARCHIVE, *SUFFIXES)
    try:
        inside = [one for one in path.iterdir() if not one.name.startswith(".")]
        files = [one for one in inside if one.is_file()]
        if not files:
            files = [one for folder in inside for one in folder.iterdir()]
    except OSError:  # told where it is read
        return False
    return bool(files) and all(one.suffix.lower() in SUFFIXES for one in files)
