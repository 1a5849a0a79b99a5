"""Fields that visitors filled in."""

import pytest
from tests.sentences import refuses

from calibrant.serving.console.shell.forms import Form
from calibrant.serving.http.problems import Problem


def test_a_body_is_read_as_a_browser_sends_it():
    form = Form.from_body(b"text=caf%C3%A9+%26+cr%C3%A8me&empty=&lines=a%0D%0Ab")
    assert form.fields == {"text": "café & crème", "empty": "", "lines": "a\r\nb"}
    assert (form.text("text"), form.text("empty"), form.text("none")) == (
        "café & crème",
        None,
        None,
    )
    assert form.raw("lines") == "a\nb"


@pytest.mark.parametrize("body", ["é".encode(), b"a=%FF", b"&".join([b"a=1"] * 201)])
def test_a_body_that_cannot_be_read(body):
    with pytest.raises(Problem) as caught:
        Form.from_body(body)
    assert caught.value.status == 400


def test_a_repeated_field_is_refused():
    with pytest.raises(Problem, match="'role' occurs twice") as caught:
        Form.from_body(b"role=admin&role=label")
    assert caught.value.status == 400


@pytest.mark.parametrize(
    ("typed", "value"), [("0.5", 0.5), (" 1e-3 ", 0.001), ("", None), ("0", 0.0), ("1", 1.0)]
)
def test_numbers(typed, value):
    assert Form({"score": typed}).number("score", low=0, high=1) == value


@pytest.mark.parametrize("typed", ["x", "nan", "inf", "-0.1", "1.1", "0,5", "1e400", "٣x"])
def test_texts_that_are_not_numbers_in_range_are_refused(typed):
    with pytest.raises(Problem) as caught:
        Form({"score": typed}).number("score", low=0, high=1)
    assert caught.value.status == 422
    assert caught.value.errors[0]["where"] == "score"


def test_a_choice():
    options = ["act", "clear"]
    assert Form({"decision": "act"}).choice("decision", options) == "act"
    assert Form({"decision": ""}).choice("decision", options) is None
    with refuses(Problem, "'<b>'", "not among 'act'", "'clear'"):
        Form({"decision": "<b>"}).choice("decision", options)


def test_texts_have_a_length_and_no_control_characters():
    assert Form({"reason": "two\nlines\tand a tab"}).text("reason") == "two\nlines\tand a tab"
    with pytest.raises(Problem, match="the limit is 200"):
        Form({"reason": "x" * 201}).text("reason")
    with pytest.raises(Problem, match="control characters"):
        Form({"reason": "a\0b"}).text("reason")
