"""What a card says about changes since the bundle was packed: what, when, by whom and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from calibrant.bundle.card.wording import safe
from calibrant.formatting import printable, sentence

if TYPE_CHECKING:
    from calibrant.bundle.bundle import Bundle

__all__ = ["changes"]


def changes(bundle: Bundle) -> Iterator[str]:
    """Tell every change, the newest first; nothing where there was none."""
    found = bundle.provenance.get("changes")
    told = [each for each in found if isinstance(each, Mapping)] if isinstance(found, list) else []
    for each in reversed(told):
        yield " ".join(_said(each))


def _said(each: Mapping[str, Any]) -> Iterator[str]:
    by = f", by {_words(each['by'])}" if each.get("by") else ""
    yield f"{_words(each.get('at') or 'At an unknown time')}{by}:"
    yield _sentence(each.get("what") or "the operating points were changed")
    yield f"Reason: {_sentence(each['reason'])}" if each.get("reason") else "No reason was given."
    if each.get("base"):
        yield f"Before that it was version {_words(str(each['base'])[:12])}."


def _words(value: Any) -> str:
    return safe(printable(" ".join(str(value).split())))


def _sentence(value: Any) -> str:
    return safe(sentence(printable(" ".join(str(value).split()))))
