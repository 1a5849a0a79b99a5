"""Card section on changes since the bundle was packed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from calibrant.bundle.card.wording import escape_html
from calibrant.formatting import printable, sentence

if TYPE_CHECKING:
    from calibrant.bundle.bundle import Bundle

__all__ = ["changes"]


def changes(bundle: Bundle) -> Iterator[str]:
    """List the changes, newest first."""
    saved = bundle.provenance.get("changes")
    entries = (
        [each for each in saved if isinstance(each, Mapping)] if isinstance(saved, list) else []
    )
    for each in reversed(entries):
        yield " ".join(_change_sentences(each))


def _change_sentences(each: Mapping[str, Any]) -> Iterator[str]:
    by = f", by {_words(each['by'])}" if each.get("by") else ""
    yield f"{_words(each.get('at') or 'At an unknown time')}{by}:"
    yield _sentence(each.get("what") or "the operating points were changed")
    yield f"Reason: {_sentence(each['reason'])}" if each.get("reason") else "No reason was given."
    if each.get("base"):
        yield f"Before that it was version {_words(str(each['base'])[:12])}."


def _words(value: Any) -> str:
    return escape_html(printable(" ".join(str(value).split())))


def _sentence(value: Any) -> str:
    return escape_html(sentence(printable(" ".join(str(value).split()))))
