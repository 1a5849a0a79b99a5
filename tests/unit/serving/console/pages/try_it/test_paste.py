"""Whole rows in one text."""

import json

import pytest

from calibrant.serving.console.pages.try_it.form_input import parse_row

NAMES = ["price", "shelf", "note"]
ROW = ["2.5", "top", ""]


@pytest.mark.parametrize(
    "text",
    [
        '{"price": 2.5, "shelf": "top", "note": null}',
        ' {"shelf": "top", "price": 2.5}',
        '{"row": {"price": 2.5, "shelf": "top"}}',
        '{"inputs": [{"row": {"price": 2.5, "shelf": "top"}}]}',
        '[2.5, "top", null]',
        "2.5,top,",
        "2.5\ttop\t",
        "2.5;top;",
        ' 2.5 , "top" ,\n',
        "note,shelf,price\n,top,2.5\n",
        "price\tshelf\r\n2.5\ttop\r\n",
    ],
)
def test_the_same_row_in_many_forms(text):
    assert parse_row(text, NAMES) == ROW


def test_one_value_on_each_line():
    assert parse_row("1\n-2\n3e5\n", NAMES) == ["1", "-2", "3e5"]
    assert parse_row("7", ["price"]) == ["7"]


def test_commas_within_values():
    assert parse_row("2,5;top;", NAMES) == ["2,5", "top", ""]
    assert parse_row('2.5,"top, left",x', NAMES) == ["2.5", "top, left", "x"]


def test_a_column_may_be_called_row():
    assert parse_row('{"row": 3}', ["row", "x"]) == ["3", ""]


def test_json_values_keep_their_notation():
    values = [True, 1e300, "x"]
    assert parse_row(json.dumps(values), NAMES) == ["true", "1e+300", "x"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not valid"),
        ("[" * 100_000, "not valid"),
        ('{"prize": 2}', "'prize': expected 'price', 'shelf', 'note'"),
        ("prize,shelf\n2,top", "'prize'"),
        ("1,2", "expected 3 values, for 'price', 'shelf', 'note', got 2"),
        ("[1]", "got 1"),
        ("1,2,3\n4,5,6", "several rows were pasted"),
        ('{"inputs": [{"row": {}}, {"row": {}}]}', "several rows were pasted"),
        ('{"row": 3}', "expected a JSON object"),
    ],
)
def test_texts_that_are_not_rows_are_refused(text, message):
    with pytest.raises(ValueError, match=r".") as refused:
        parse_row(text, NAMES)
    assert message in str(refused.value)
