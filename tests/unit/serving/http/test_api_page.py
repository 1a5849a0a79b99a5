"""The page for people: all that the description has, and nothing that it loads."""

import re

import pytest

from calibrant.serving.http.api_page import _describe_type, render_api_page

DESCRIBED = {
    "info": {"title": "<b>Shop</b>", "version": "1.2", "description": "One.\n\nTwo, `of` all."},
    "paths": {
        "/v1/ask": {
            "post": {
                "operationId": "ask",
                "summary": "Ask",
                "description": "Ask for <i>it</i>.",
                "requestBody": {
                    "content": {"application/json": {"schema": {"$ref": "#/c/schemas/Question"}}}
                },
                "responses": {
                    "503": {"description": "Busy.", "content": {"text/plain": {}}},
                    "200": {"description": "Successful Response"},
                },
            }
        }
    },
    "components": {
        "schemas": {
            "Question": {
                "description": "What is asked.",
                "example": {"text": "</pre><script>"},
                "required": ["text"],
                "properties": {
                    "text": {"type": "string", "description": "The <u>words</u>."},
                    "n": {"type": "integer"},
                },
            }
        }
    },
}


@pytest.fixture
def page():
    return render_api_page(DESCRIBED)


def test_it_tells_every_route_and_every_message(page):
    assert "<code>POST /v1/ask</code>" in page
    assert '<h3>Body: <a href="#Question">Question</a></h3>' in page
    assert page.index("<b>200</b> Done.") < page.index("<b>503</b> Busy.")
    row = '<th scope="row"><code>text</code></th><td>text</td><td>yes</td>'
    assert row in page
    assert '<th scope="row"><code>n</code></th><td>whole number</td><td></td>' in page
    assert "<p>One.</p><p>Two, of all.</p>" in page


def test_what_is_told_is_text(page):
    for tag in ("<b>Shop", "<i>", "<u>", "<script"):
        assert tag not in page
    assert "&lt;b&gt;Shop&lt;/b&gt;" in page
    assert "font: 1rem/1.5 system-ui" in page  # the style is no text


def test_it_loads_nothing(page):
    assert re.findall(r'(?:src|href)="(?!#)([^"]*)"', page) == ["data:,", "/openapi.json"]
    assert "default-src 'none'" in page


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ({"$ref": "#/components/schemas/Input"}, "Input"),
        ({"type": "string"}, "text"),
        ({"type": "number"}, "number"),
        ({"type": "boolean"}, "true or false"),
        ({"enum": ["act", None]}, '"act" or null'),
        ({"type": "array", "items": {"type": "string"}}, "list of text"),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, "object of whole number"),
        ({"type": "object", "additionalProperties": True}, "object"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "text, or null"),
        ({}, "any value"),
    ],
)
def test_kinds_in_words(rule, words):
    assert _describe_type(rule) == words
