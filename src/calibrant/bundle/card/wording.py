"""Words of a card that names of classes and files cannot break."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

from calibrant.formatting import printable

__all__ = ["code", "names", "safe"]

_MANY = 12


def safe(text: str) -> str:
    """Keep names of classes and files from being read as HTML.

    Examples
    --------
    >>> safe("<b>")
    '&lt;b&gt;'
    """
    return html.escape(text, quote=False)


def code(value: Any) -> str:
    """Return a name in the letters of code.

    Examples
    --------
    >>> code("text"), code("a`b")
    ('`text`', "`a'b`")
    """
    return f"`{safe(printable(str(value))).replace('`', chr(39))}`"


def names(values: Sequence[Any]) -> str:
    """Return the first twelve names, and how many more there are.

    Examples
    --------
    >>> names(["weight", "fat"])
    '`weight`, `fat`'
    """
    more = f" and {len(values) - _MANY} more" if len(values) > _MANY else ""
    return ", ".join(code(value) for value in values[:_MANY]) + more
