"""Predictions in words."""

import pytest

from calibrant.serving.console.pages.predictions.wording import (
    decision_words,
    direction_marks,
    format_cell,
    isolate_direction,
    make_visible,
    preview_input,
    score_words,
    truncate,
)
from calibrant.store.records import DECISIONS


def test_every_decision_has_words():
    assert {decision_words(each) for each in DECISIONS} == {
        "acted on", "cleared", "left to a person", "out of scope"
    }  # fmt: skip


def test_control_characters_can_be_seen(subtests):
    for code in (*range(32), 127, *range(128, 160)):
        with subtests.test(msg=f"U+{code:04X}"):
            shown = make_visible(chr(code))
            assert shown.isprintable() or shown in "\t\n\r"
            assert len(shown) == 1


def test_other_characters_stay():
    text = "naïve 👩‍👧 שלום \u202e abc\ttab\nline"
    assert make_visible(text) == text
    assert direction_marks(text) == ["U+202E"]
    assert direction_marks("plain") == []


@pytest.mark.parametrize(
    ("input", "begin"),
    [
        ({"text": ""}, ""),
        ({"text": " a \n\n b\t c "}, "a b c"),
        ({"text": "x" * 120}, "x" * 120),
        ({"text": "x" * 121}, "x" * 119 + "…"),
        ({"text": " " * 1200 + "late"}, ""),
        ({"row": {}}, ""),
        ({"row": {"a": True, "b": "x", "c": None}}, "a: true, b: x, c: (empty)"),
        ({"logits": [1.0, -2.5]}, "1, -2.5"),
        ({"logits": {"no": 1e30}}, "no: 1e+30"),
        ({"odd": "one", "two": {"deep": [1]}}, 'odd: one, two: {"deep": [1]}'),
        ({}, ""),
        (None, None),
    ],
)
def test_the_beginning_of_an_input(input, begin):
    assert preview_input(input) == begin


def test_a_cell_and_a_score():
    assert [format_cell(value) for value in (0, 0.1 + 0.2, -3, "")] == ["0", "0.3", "-3", "(empty)"]
    assert [score_words(score) for score in (0.0, 0.5, 0.9994, 0.9995)] == [
        "0.000", "0.500", "0.999", "> 0.999"
    ]  # fmt: skip


def test_example_of_isolate_direction():
    assert (isolate_direction("parts"), isolate_direction("a\u202eb")) == (
        "parts",
        "\u2068a\u202eb\u2069",
    )


def test_example_of_truncate():
    assert (truncate("returns", 10), truncate("returns of last year", 10)) == (
        "returns",
        "returns o…",
    )
