"""Model cards as HTML: Markdown that somebody else wrote, of which nothing can act on the page."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from markupsafe import Markup

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

__all__ = ["card_html"]

_NOT_READ = ("link", "image", "autolink", "reference", "html_inline", "html_block")
"""What could lead away from the page, load something or be HTML: it stays as it was written."""

_HIGHEST, _LOWEST = 3, 6
"""Headings of a card stand below the heading of their section on the page."""


def card_html(text: str) -> Markup:
    r"""Return a card in Markdown as HTML for the middle of a page.

    HTML in it is shown as text, links and pictures stay as they were written, and its headings
    become smaller ones. Its title is left out, as the page has one.

    Examples
    --------
    >>> print(card_html("# Model card\n\n## Use\n\n- <b>All</b> [x](https://example.com)"))
    <h3>Use</h3>
    <ul>
    <li>&lt;b&gt;All&lt;/b&gt; [x](https://example.com)</li>
    </ul>
    """
    parser = _parser()
    tokens = _lowered(_without_title(parser.parse(text)))
    made: str = parser.renderer.render(tokens, parser.options, {})
    return Markup(made.strip())  # the parser escaped what was not its own


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": False}).disable(_NOT_READ)


def _without_title(tokens: list[Token]) -> list[Token]:
    titled = bool(tokens) and tokens[0].type == "heading_open" and tokens[0].tag == "h1"
    return tokens[3:] if titled else tokens  # its opening, its words and its end


def _lowered(tokens: list[Token]) -> list[Token]:
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            level = min(max(int(token.tag[1:]) + 1, _HIGHEST), _LOWEST)
            token.tag = f"h{level}"
    return tokens
