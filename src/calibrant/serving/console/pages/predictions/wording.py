"""Text helpers of the prediction pages: decisions, scores and input previews."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

DECISION_WORDS: Mapping[str, str] = {
    "act": "acted on",
    "clear": "cleared",
    "abstain": "left to a person",
    "out_of_scope": "out of scope",
}
"""Decisions in words."""

_CONTROL_PICTURES = {
    **{code: 0x2400 + code for code in range(0x20) if code not in (0x09, 0x0A, 0x0D)},
    0x7F: 0x2421,
    **dict.fromkeys(range(0x80, 0xA0), 0xFFFD),
}
"""Control characters, which browsers do not show, and the symbols that replace them."""

_DIRECTION_MARKS = frozenset(
    "\u200e\u200f\u061c\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
)
_EMPTY = "(empty)"


def make_visible(text: str) -> str:
    r"""Return a text with visible control characters; tabs and line ends stay."""
    return text.translate(_CONTROL_PICTURES)


def direction_marks(text: str) -> list[str]:
    r"""Return the code points in a text that change the reading direction."""
    return [f"U+{ord(sign):04X}" for sign in sorted(_DIRECTION_MARKS & set(text))]


def isolate_direction(text: str) -> str:
    r"""Isolate the direction of a text, where no HTML element can."""
    return f"\u2068{text}\u2069" if direction_marks(text) else text


def decision_words(decision: str | None, acted_as: str | None = None) -> str:
    """Describe a decision."""
    if decision is None:
        return "no decision"
    if decision == "act" and acted_as is not None:
        return f"acted as {make_visible(acted_as)}"
    return DECISION_WORDS[decision]


def score_words(score: float) -> str:
    """Format a probability so that only a certain one reads 1."""
    if 0.9995 <= score < 1:
        return "> 0.999"
    return "< 0.001" if 0 < score < 0.0005 else f"{score:.3f}"


def format_cell(value: Any) -> str:
    """Format a value of a table row."""
    if value is None or value == "":
        return _EMPTY
    if isinstance(value, str):
        return make_visible(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return f"{value:.15g}"
    return make_visible(json.dumps(value, ensure_ascii=False))


def preview_input(input: Mapping[str, Any] | None, max_length: int = 120) -> str | None:
    r"""Return the beginning of an input on one line, or None if only its hash was stored."""
    if input is None:
        return None
    if isinstance(input.get("text"), str):
        # A prefix is enough, because it is cut below; this bounds the cost of long texts.
        line = " ".join(input["text"][: 10 * max_length].split())
    else:
        content = next(iter(input.values()), {}) if len(input) == 1 else input
        line = ", ".join(_content_parts(content))
    return truncate(line, max_length)


def truncate(text: str, max_length: int) -> str:
    """Return a text, cut and marked with an ellipsis if it is too long."""
    return make_visible(text if len(text) <= max_length else f"{text[: max_length - 1].rstrip()}…")


def _content_parts(content: Any) -> list[str]:
    if isinstance(content, Mapping):
        return [f"{name}: {format_cell(value)}" for name, value in content.items()]
    return (
        [format_cell(value) for value in content]
        if isinstance(content, list)
        else [format_cell(content)]
    )
