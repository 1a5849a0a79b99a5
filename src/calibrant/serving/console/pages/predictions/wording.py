"""Predictions in words: what was decided, how sure it was, and how an input begins."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

__all__ = [
    "DECISION_WORDS",
    "beginning",
    "cell",
    "cut",
    "decision_words",
    "isolated",
    "score_words",
    "turns",
    "visible",
]

DECISION_WORDS: Mapping[str, str] = {
    "act": "acted on",
    "clear": "cleared",
    "abstain": "left to a person",
    "out_of_scope": "out of scope",
}
"""What each decision is called."""

_PICTURES = {
    **{code: 0x2400 + code for code in range(0x20) if code not in (0x09, 0x0A, 0x0D)},
    0x7F: 0x2421,
    **dict.fromkeys(range(0x80, 0xA0), 0xFFFD),
}
"""Control characters, which no browser shows, and the signs that stand for them."""

_TURNING = frozenset("\u200e\u200f\u061c\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_EMPTY = "(empty)"


def visible(text: str) -> str:
    r"""Return a text in which control characters can be seen; tabs and line ends stay.

    Examples
    --------
    >>> visible("a\x00b\x7f\n")
    'a␀b␡\n'
    """
    return text.translate(_PICTURES)


def turns(text: str) -> list[str]:
    r"""Name the characters of a text that turn the direction of reading.

    Examples
    --------
    >>> turns("price \u202e001")
    ['U+202E']
    """
    return [f"U+{ord(sign):04X}" for sign in sorted(_TURNING & set(text))]


def isolated(text: str) -> str:
    r"""Keep the direction that a text turns to itself, where no element can do that.

    Examples
    --------
    >>> isolated("parts"), isolated("a\u202eb")
    ('parts', '\u2068a\u202eb\u2069')
    """
    return f"\u2068{text}\u2069" if turns(text) else text


def decision_words(decision: str | None, acted_as: str | None = None) -> str:
    """Say what was decided.

    Examples
    --------
    >>> decision_words("act", "defective"), decision_words("abstain"), decision_words(None)
    ('acted as defective', 'left to a person', 'no decision')
    """
    if decision is None:
        return "no decision"
    if decision == "act" and acted_as is not None:
        return f"acted as {visible(acted_as)}"
    return DECISION_WORDS[decision]


def score_words(score: float) -> str:
    """Write a probability so that only a certain one is 1.

    Examples
    --------
    >>> score_words(0.85312), score_words(0.99996), score_words(1.0), score_words(0.00001)
    ('0.853', '> 0.999', '1.000', '< 0.001')
    """
    if 0.9995 <= score < 1:
        return "> 0.999"
    return "< 0.001" if 0 < score < 0.0005 else f"{score:.3f}"


def cell(value: Any) -> str:
    """Write a value of a table row as text.

    Examples
    --------
    >>> cell("red"), cell(2.0), cell(True), cell(None)
    ('red', '2', 'true', '(empty)')
    """
    if value is None or value == "":
        return _EMPTY
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return f"{value:.15g}"
    return visible(json.dumps(value, ensure_ascii=False))


def beginning(input: Mapping[str, Any] | None, most: int = 120) -> str | None:
    r"""Return how an input begins, on one line; None where only its hash was kept.

    Examples
    --------
    >>> beginning({"text": "the zip\nbroke on the first day"}, most=20)
    'the zip broke on th…'
    >>> beginning({"row": {"weight": 2.5, "fat": None}})
    'weight: 2.5, fat: (empty)'
    """
    if input is None:
        return None
    if isinstance(input.get("text"), str):
        # Only so much is looked at: a long text has its spaces at the front as well.
        line = " ".join(input["text"][: 10 * most].split())
    else:
        content = next(iter(input.values()), {}) if len(input) == 1 else input
        line = ", ".join(_parts(content))
    return cut(line, most)


def cut(text: str, most: int) -> str:
    """Return a text, or its beginning where it is longer.

    Examples
    --------
    >>> cut("returns", 10), cut("returns of last year", 10)
    ('returns', 'returns o…')
    """
    return visible(text if len(text) <= most else f"{text[: most - 1].rstrip()}…")


def _parts(content: Any) -> list[str]:
    if isinstance(content, Mapping):
        return [f"{name}: {cell(value)}" for name, value in content.items()]
    return [cell(value) for value in content] if isinstance(content, list) else [cell(content)]
