"""Escaping of names in a card."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

from calibrant.formatting import printable

_MANY = 12


def escape_html(text: str) -> str:
    """Escape a text for Markdown with inline HTML."""
    return html.escape(text, quote=False)


def as_code(value: Any) -> str:
    """Format a name as inline code."""
    return f"`{escape_html(printable(str(value))).replace('`', chr(39))}`"


def list_names(values: Sequence[Any]) -> str:
    """Format the first twelve names, and the number of others."""
    more = f" and {len(values) - _MANY} more" if len(values) > _MANY else ""
    return ", ".join(as_code(value) for value in values[:_MANY]) + more
