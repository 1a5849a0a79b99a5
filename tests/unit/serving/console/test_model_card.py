"""Model cards become harmless HTML."""

import re

import pytest

from calibrant.serving.console.pages.model.view import card_html

HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "[x](javascript:alert(1))",
    "[x](https://example.com/steal)",
    "![x](https://example.com/pixel.png)",
    "<https://example.com/>",
    "[x]: https://example.com\n\n[x]",
    "`<b>`",
    "    <script>alert(1)</script>",
    "```\n</code></pre><script>alert(1)</script>\n```",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    '<a href="javascript:alert(1)">x</a>',
    "<!-- --><svg/onload=alert(1)>",
]
PLAIN = {
    "p", "ul", "ol", "li", "h3", "h4", "h5", "h6", "code", "pre", "em", "strong", "blockquote",
    "hr", "br",
}  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE)
def test_only_plain_elements_without_attributes_come_out(text):
    rendered = str(card_html(f"## Use\n\n- {text}\n\n{text}\n"))
    tags = re.findall(r"<[^>]*>", rendered)
    assert {re.fullmatch(r"</?(\w+)( /)?>", tag)[1] for tag in tags} <= PLAIN
    assert "Use" in rendered


def test_a_link_is_shown_as_text():
    assert "[x](https://example.com/steal)" in card_html(HOSTILE[3])


def test_headings_are_lowered_and_the_title_is_left_out():
    rendered = card_html(
        "# Model card\n\nA bundle.\n\n## Use\n\n### More\n\n# Loud\n\n###### Quiet"
    )
    assert re.findall(r"<h(\d)>([^<]*)", rendered) == [
        ("3", "Use"), ("4", "More"), ("3", "Loud"), ("6", "Quiet"),
    ]  # fmt: skip
    assert rendered.startswith("<p>A bundle.</p>")


@pytest.mark.parametrize("text", ["", "\n\n", "# Model card"])
def test_an_empty_card(text):
    assert card_html(text) == ""
