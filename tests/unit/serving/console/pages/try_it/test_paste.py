"""Whole rows in one text."""

import json

import pytest

from calibrant.serving.console.pages.try_it.paste import pasted

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
    assert pasted(text, NAMES) == ROW


def test_one_value_on_each_line():
    assert pasted("1\n-2\n3e5\n", NAMES) == ["1", "-2", "3e5"]
    assert pasted("7", ["price"]) == ["7"]


def test_commas_within_values():
    assert pasted("2,5;top;", NAMES) == ["2,5", "top", ""]
    assert pasted('2.5,"top, left",x', NAMES) == ["2.5", "top, left", "x"]


def test_a_column_may_be_called_row():
    assert pasted('{"row": 3}', ["row", "x"]) == ["3", ""]


def test_values_of_json_as_they_are_written():
    values = [True, 1e300, "x"]
    assert pasted(json.dumps(values), NAMES) == ["true", "1e+300", "x"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "begins like JSON but is none"),
        ("[" * 100_000, "begins like JSON but is none"),
        ('{"prize": 2}', "there is no 'prize': there are 'price', 'shelf', 'note'"),
        ("prize,shelf\n2,top", "there is no 'prize'"),
        ("1,2", "3 values are needed, for 'price', 'shelf', 'note', got 2"),
        ("[1]", "got 1"),
        ("1,2,3\n4,5,6", "several rows were pasted"),
        ('{"inputs": [{"row": {}}, {"row": {}}]}', "several rows were pasted"),
        ('{"row": 3}', "a JSON object with the names"),
    ],
)
def test_what_is_no_row(text, said):
    with pytest.raises(ValueError, match=r".") as refused:
        pasted(text, NAMES)
    assert said in str(refused.value)
