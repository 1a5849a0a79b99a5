"""Card lines on model inputs, misreadings and stored data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from calibrant.bundle.card.wording import as_code, list_names
from calibrant.data.encoders.image_encoder import ImageEncoder
from calibrant.data.encoders.subword_encoder import SubwordEncoder
from calibrant.data.encoders.text_encoder import TextEncoder
from calibrant.formatting import format_count

if TYPE_CHECKING:
    from calibrant.models.scorer import Scorer

__all__ = ["input_lines", "misread_line", "stored_data_lines"]

_REDACTED_NOTE = (
    "E-mail addresses, phone numbers, order numbers and similar data are redacted from every text "
    "by patterns before it is read. Names and unusual numbers may remain."
)
_UNREDACTED_NOTE = "Texts are read without redaction."


def input_lines(scorer: Scorer) -> Iterator[str]:
    """Describe the required inputs."""
    encoder = scorer.encoder
    if scorer.text:
        yield f"Pass texts: a list, or a table with the column {as_code(scorer.column)}."
    elif not isinstance(encoder, ImageEncoder):
        yield f"Pass table rows with the columns {list_names(scorer.columns.names)}."
    else:
        height, width = encoder.size_
        colour = "in grey (1 channel)" if encoder.channels_ == 1 else "in colour (3 channels)"
        yield (
            f"Pass images of {height} x {width} pixels {colour}, with integer pixel values from "
            "0 to 255."
        )
        if scorer.resize:
            yield (
                "Image files of other sizes are scaled to cover that size and centre-cropped. "
                "Arrays of other sizes are rejected."
            )
        else:
            yield "Images of other sizes are rejected."


def misread_line(scorer: Scorer) -> str:
    """Describe known errors that follow from the encoding."""
    encoder = scorer.encoder
    if isinstance(encoder, TextEncoder):
        return (
            "Words that did not occur in the train texts, including misspelt words and other "
            "languages, are all read as one unknown word. Only the first "
            f"{encoder.max_length:,} words of a text are read."
        )
    if isinstance(encoder, SubwordEncoder):
        return (
            "Words are split into sub-word tokens, so none is unknown. But texts in a language or "
            "domain that is rare in the pretraining and train texts are scored with the same "
            f"confidence as any other. At most {encoder.max_length:,} tokens of a text are read, "
            "including the special tokens."
        )
    if isinstance(encoder, ImageEncoder):
        return (
            "Images that differ from the train images (another camera, light, distance or "
            "background, a drawing instead of a photo) are scored as if they were similar."
        )
    return (
        "Categories that did not occur in the train rows are read as one category, or as none "
        "of the known ones. Numbers far from those of the train rows are not clipped."
    )


def stored_data_lines(scorer: Scorer) -> Iterator[str]:
    """Describe how data are processed, and which train data are in the folder."""
    encoder = scorer.encoder
    if scorer.text:
        yield _REDACTED_NOTE if scorer.redact else _UNREDACTED_NOTE
    if isinstance(encoder, TextEncoder):
        yield _words(int(encoder.min_count))
    elif isinstance(encoder, SubwordEncoder):
        yield (
            "The bundle contains no texts. `tokenizer.json` is that of the pretrained network and "
            "contains nothing from the train texts."
        )
    elif isinstance(encoder, ImageEncoder):
        yield (
            "The bundle contains no images. The manifest contains the size of the train images, "
            "and the mean and standard deviation of each channel."
        )
    else:
        yield (
            "The bundle contains no rows. The manifest contains the names of the columns and "
            "categories of the train rows, and the mean and scale of each numeric column."
        )


def _words(min_count: int) -> str:
    often = "" if min_count == 1 else f" that occur at least {format_count(min_count, 'time')}"
    return (
        "The bundle contains no texts, but `tokenizer.json` contains words of the train "
        f"texts{often}, up to the size of the vocabulary, including rare words and names."
    )
