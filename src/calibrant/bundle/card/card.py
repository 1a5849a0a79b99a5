"""Model card of a bundle, in Markdown."""

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
from calibrant.bundle.card.points import decision_rules, non_promises, promises
from calibrant.bundle.card.wording import escape_html
from calibrant.errors import InputError
from calibrant.formatting import format_count, printable, quote_name

if TYPE_CHECKING:
    from calibrant.bundle.bundle import Bundle

__all__ = ["SECTIONS", "card_of"]

SECTIONS: Mapping[str, Callable[[Bundle], Iterator[str]]] = {
    "Intended use": intended_use,
    "What it decides": decision_rules,
    "What it promises": promises,
    "Figures": figures,
    "What it does not promise": non_promises,
    "Failure modes": failure_modes,
    "Hand-over to a person": hand_over,
    "Data handling": data_handling,
    "Where it comes from": origin,
    "Changes": changes,
}
"""Sections of a card in order, with their writers; empty sections are omitted."""

_INPUT_NOUN = {"text": "texts", "table": "rows of a table", "image": "images"}


def card_of(bundle: Bundle, more: Mapping[str, str] | None = None) -> str:
    """Write the card of a bundle as Markdown."""
    custom = _check_sections(more or {})
    parts = [_head(bundle)]
    for title, lines in SECTIONS.items():
        own_lines = (
            [escape_html(printable(" ".join(custom[title].split())))] if title in custom else []
        )
        rows = "\n".join(f"- {line}" for line in (*own_lines, *lines(bundle)))
        parts += [f"## {title}\n\n{rows}"] if rows else []
    return "\n\n".join(parts) + "\n"


def _head(bundle: Bundle) -> str:
    classes = ", ".join(escape_html(quote_name(name)) for name in bundle.classes)
    what = (
        "This bundle turns the scores of a classifier into decisions. It does not contain the "
        "classifier: pass the logits of the classifier."
        if bundle.scorer is None
        else f"This bundle is a classifier that turns {_INPUT_NOUN[bundle.scorer.kind]} into "
        "probabilities and decisions."
    )
    return (
        f"# Model card\n\n{what}\n\nIt has {format_count(len(bundle.classes), 'class')}: {classes}."
    )


def _check_sections(more: Mapping[str, str]) -> Mapping[str, str]:
    for title, text in more.items():
        if title not in SECTIONS:
            raise InputError(
                f"card has the unknown section {title!r}: choose one of {', '.join(SECTIONS)}."
            )
        if not isinstance(text, str) or not text.strip():
            raise InputError(f"the card section {title!r} must be non-empty text.")
    return more
