"""Images of a folder or npz file as input rows of a bundle."""

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
from calibrant.workflows.scored_rows import ScoredBatch, score_in_order

if TYPE_CHECKING:
    from calibrant.data.row_scorer import RowScorer

_ARCHIVE = ".npz"
_MIXED_SIZES = "images must all have the same size"


class ImageFileRows:
    """Image rows with name, label and weight, resized and converted as the model expects."""

    notes: tuple[str, ...] = ()

    def __init__(self, scorer: RowScorer, data: str) -> None:
        assert isinstance(scorer.encoder, ImageEncoder)  # it reads images
        self._scorer, self._encoder, self._data = scorer, scorer.encoder, data
        self.files = [Path(data)]
        if self.files[0].is_file() and self.files[0].suffix.lower() not in (_ARCHIVE, *SUFFIXES):
            raise InputError(
                f"{data} is not an image, but the bundle reads images: name a folder of images, or "
                "an .npz file with the array 'images'."
            )

    def estimate(self) -> int | None:
        """Count the images of a folder; None for an npz file."""
        folder = self.files[0]
        if not folder.is_dir():
            return None
        return sum(1 for file in folder.glob("**/*") if file.suffix.lower() in SUFFIXES)

    def batches(self) -> Generator[ScoredBatch, None, None]:
        """Yield the rows in order; an npz file is read into memory."""
        with closing(score_in_order(self._parts(), self._logits, deep=True)) as scored:
            for part, logits in scored:
                columns: dict[str, Any] = {"image": part.names}
                if part.labels is not None:
                    columns["label"] = part.labels
                if part.weights is not None:
                    columns["weight"] = part.weights
                yield ScoredBatch(pa.table(columns), {"logits": logits})

    def _parts(self) -> Iterator[ImageSet]:
        from calibrant.models.scoring import images_at_a_time

        size = self._encoder.size_ if self._scorer.resize else None
        try:
            with warnings.catch_warnings():  # empty classes do not matter here
                warnings.simplefilter("ignore", UserWarning)
                parts = scan_images(
                    self._data,
                    size=size,
                    batch=images_at_a_time(self._scorer.device_type, *self._encoder.size_),
                    channels=self._encoder.channels_,
                )
            yield from parts
        except InputError as error:
            if _MIXED_SIZES not in str(error):
                raise
            # Its remedy is for training; here the size is fixed.
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
    """Whether a path is an image, an npz file, or a folder of images only."""
    path = Path(data)
    if not path.is_dir():
        return path.suffix.lower() in (_ARCHIVE, *SUFFIXES)
    try:
        entries = [entry for entry in path.iterdir() if not entry.name.startswith(".")]
        files = [entry for entry in entries if entry.is_file()]
        if not files:
            files = [entry for folder in entries for entry in folder.iterdir()]
    except OSError:  # reported on reading
        return False
    return bool(files) and all(entry.suffix.lower() in SUFFIXES for entry in files)
