"""Model cards rendered from untrusted Markdown to safe HTML."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from markupsafe import Markup

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

__all__ = ["card_html"]

_DISABLED_RULES = ("link", "image", "autolink", "reference", "html_inline", "html_block")
"""Markdown that could leave the page, load something or be HTML; it is shown as written."""

_HIGHEST, _LOWEST = 3, 6
"""Heading levels of a card, below the heading of its section."""


def card_html(text: str) -> Markup:
    r"""Return a Markdown card as an HTML fragment.

    HTML in it is shown as text, links and images stay as written, and headings are lowered. The
    title is dropped, because the page has one.

    Examples
    --------
    >>> print(card_html("# Model card\n\n## Use\n\n- <b>All</b> [x](https://example.com)"))
    <h3>Use</h3>
    <ul>
    <li>&lt;b&gt;All&lt;/b&gt; [x](https://example.com)</li>
    </ul>
    """
    parser = _parser()
    tokens = _lower_headings(_drop_title(parser.parse(text)))
    rendered: str = parser.renderer.render(tokens, parser.options, {})
    return Markup(rendered.strip())  # safe: the parser escaped everything else


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": False}).disable(_DISABLED_RULES)


def _drop_title(tokens: list[Token]) -> list[Token]:
    has_title = bool(tokens) and tokens[0].type == "heading_open" and tokens[0].tag == "h1"
    return tokens[3:] if has_title else tokens  # opening, text and closing token


def _lower_headings(tokens: list[Token]) -> list[Token]:
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            level = min(max(int(token.tag[1:]) + 1, _HIGHEST), _LOWEST)
            token.tag = f"h{level}"
    return tokens
