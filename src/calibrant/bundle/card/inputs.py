"""What a card says about the inputs of a model: what goes in, what it misreads, what it keeps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from calibrant.bundle.card.wording import code, names
from calibrant.data.encoders.image_encoder import ImageEncoder
from calibrant.data.encoders.subword_encoder import SubwordEncoder
from calibrant.data.encoders.text_encoder import TextEncoder
from calibrant.formatting import format_count

if TYPE_CHECKING:
    from calibrant.models.scorer import Scorer

__all__ = ["given", "kept", "misread"]

_REDACTED = (
    "E-mail addresses, phone numbers, order numbers and the like are taken out of every text before"
    " it is read, by patterns: names and unusual numbers can stay."
)
_AS_THEY_ARE = "Texts are read as they are: nothing is taken out of them."


def given(scorer: Scorer) -> Iterator[str]:
    """Say what to give it."""
    encoder = scorer.encoder
    if scorer.text:
        yield f"Give it texts: a list, or a table with the column {code(scorer.column)}."
    elif not isinstance(encoder, ImageEncoder):
        yield f"Give it rows of a table with the columns {names(scorer.columns.names)}."
    else:
        height, width = encoder.size_
        colour = "in grey (1 channel)" if encoder.channels_ == 1 else "in colour (3 channels)"
        yield (
            f"Give it images of {height} x {width} pixels {colour}, each pixel a whole number of "
            "0 to 255."
        )
        if scorer.resize:
            yield (
                "Files with images of other sizes are scaled until they just cover that, and their "
                "middle is cut out. Arrays of other sizes are refused."
            )
        else:
            yield "Images of other sizes are refused."


def misread(scorer: Scorer) -> str:
    """Say what it is known to get wrong, by how it reads."""
    encoder = scorer.encoder
    if isinstance(encoder, TextEncoder):
        return (
            "Words that the train texts did not hold are all read as one unknown word: misspelt "
            f"ones and other languages too. Of a text the first {encoder.max_length:,} words are "
            "read."
        )
    if isinstance(encoder, SubwordEncoder):
        return (
            "Words are read in pieces, so none is unknown. But a language or a field of which the "
            "pretrained network and the train texts held little is judged as surely as any other. "
            f"Of a text {encoder.max_length:,} pieces are read at most, the marks at its ends "
            "included."
        )
    if isinstance(encoder, ImageEncoder):
        return (
            "Images that were taken in another way than the train images (another camera, light, "
            "distance or background, a drawing in place of a photo) are judged as if they were "
            "like those."
        )
    return (
        "Categories that the train rows did not hold are read as one, or as none of the known "
        "ones. Numbers far from those of the train rows are taken as they are."
    )


def kept(scorer: Scorer) -> Iterator[str]:
    """Say what is done to the data, and what of the train rows is in the folder."""
    encoder = scorer.encoder
    if scorer.text:
        yield _REDACTED if scorer.redact else _AS_THEY_ARE
    if isinstance(encoder, TextEncoder):
        yield _words(int(encoder.min_count))
    elif isinstance(encoder, SubwordEncoder):
        yield (
            "No texts are in the bundle. `tokenizer.json` is that of the pretrained network, and "
            "holds nothing of the train texts."
        )
    elif isinstance(encoder, ImageEncoder):
        yield (
            "No images are in the bundle. Of the train images the manifest holds the size, and the "
            "mean and spread of each channel."
        )
    else:
        yield (
            "No rows are in the bundle. Of the train rows the manifest holds the names of the "
            "columns and categories, and the mean and scale of each number."
        )


def _words(min_count: int) -> str:
    often = "" if min_count == 1 else f" that they hold at least {format_count(min_count, 'time')}"
    return (
        f"No texts are in the bundle, but `tokenizer.json` holds words of the train texts{often}"
        ", up to the size of the vocabulary: rare words and names among them."
    )
