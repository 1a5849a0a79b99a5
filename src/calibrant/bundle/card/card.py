"""The model card of a bundle, for people: what it is for, what it promises, and how it fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from calibrant.bundle.card.changes import changes
from calibrant.bundle.card.model import (
    data_handling,
    failure_modes,
    figures,
    hand_over,
    intended_use,
    origin,
)
from calibrant.bundle.card.points import decides, not_promised, promises
from calibrant.bundle.card.wording import safe
from calibrant.errors import InputError
from calibrant.formatting import format_count, printable, quote_name

if TYPE_CHECKING:
    from calibrant.bundle.bundle import Bundle

__all__ = ["SECTIONS", "card_of"]

SECTIONS: Mapping[str, Callable[[Bundle], Iterator[str]]] = {
    "Intended use": intended_use,
    "What it decides": decides,
    "What it promises": promises,
    "Figures": figures,
    "What it does not promise": not_promised,
    "Failure modes": failure_modes,
    "Hand-over to a person": hand_over,
    "Data handling": data_handling,
    "Where it comes from": origin,
    "Changes": changes,
}
"""The sections of a card in their order, and what writes them; one without a line is left out."""

_READ = {"text": "texts", "table": "rows of a table", "image": "images"}


def card_of(bundle: Bundle, more: Mapping[str, str] | None = None) -> str:
    """Write the card of a bundle as Markdown."""
    given = _checked(more or {})
    parts = [_head(bundle)]
    for title, lines in SECTIONS.items():
        said = [safe(printable(" ".join(given[title].split())))] if title in given else []
        rows = "\n".join(f"- {line}" for line in (*said, *lines(bundle)))
        parts += [f"## {title}\n\n{rows}"] if rows else []
    return "\n\n".join(parts) + "\n"


def _head(bundle: Bundle) -> str:
    classes = ", ".join(safe(quote_name(name)) for name in bundle.classes)
    what = (
        "This bundle turns the scores of a classifier into decisions. The classifier itself is not "
        "in it: give it the classifier's logits."
        if bundle.scorer is None
        else f"This bundle is a classifier that turns {_READ[bundle.scorer.kind]} into "
        "probabilities and decisions."
    )
    size = format_count(len(bundle.classes), "class")
    return f"# Model card\n\n{what}\n\nIt knows {size}: {classes}."


def _checked(more: Mapping[str, str]) -> Mapping[str, str]:
    for title, text in more.items():
        if title not in SECTIONS:
            raise InputError(
                f"card has the section {title!r}, which there is not: choose among "
                f"{', '.join(SECTIONS)}."
            )
        if not isinstance(text, str) or not text.strip():
            raise InputError(f"the words of the card's section {title!r} must be text.")
    return more
