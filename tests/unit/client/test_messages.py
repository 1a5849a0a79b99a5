"""Bodies: known fields, plain types, no NaN, no control characters."""

import pytest
from pydantic import ValidationError

from calibrant.client.messages import Input, OutcomesBody, PredictBody

GOOD = '{"inputs": [{"text": "it broke"}]}'


def fault(message, body):
    with pytest.raises(ValidationError) as caught:
        message.model_validate_json(body)
    return str(caught.value)


def test_a_request_is_read_as_it_is_written():
    body = (
        '{"inputs": [{"text": "a\\tb\\nc"}, {"row": {"n": 1, "x": null}}, {"logits": [1, 2.5]}], '
        '"unit": "kunde-ü/17", "use_case": "returns", "branch": "control", "point": 0}'
    )
    asked = PredictBody.model_validate_json(body)
    assert asked.inputs[0].text == "a\tb\nc"
    assert asked.inputs[1].row == {"n": 1, "x": None}
    assert asked.inputs[2].logits == [1.0, 2.5]
    assert (asked.unit, asked.use_case, asked.branch, asked.point) == (
        "kunde-ü/17", "returns", "control", 0,
    )  # fmt: skip
    least = PredictBody.model_validate_json(GOOD)
    assert (least.unit, least.use_case, least.branch, least.point) == (None,) * 4


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("{}", "give exactly one of text, row and logits"),
        ('{"text": "a", "logits": [1]}', "give exactly one of text, row and logits"),
        ('{"text": "a\\u0000b"}', "control characters other than tabs and line ends"),
        ('{"text": "\\u001b[2J"}', "control characters other than tabs and line ends"),
        ('{"text": "\\ud800"}', "Invalid JSON"),
        ('{"text": 5}', "valid string"),
        ('{"text": ["a"]}', "valid string"),
        ('{"row": [1]}', "row"),
        ('{"row": {"x": {"y": 1}}}', "a finite number, true, false or null"),
        ('{"row": {"x": "a\\u0007"}}', "control characters"),
        ('{"row": {"x": NaN}}', "finite"),
        ('{"row": {"x": 1e999}}', "finite"),
        ('{"logits": [NaN, 1]}', "finite"),
        ('{"logits": [1, -Infinity]}', "finite"),
        ('{"logits": [1e999, 1]}', "finite"),
        ('{"logits": ["1", 2]}', "must be finite numbers"),
        ('{"logits": [true, 2]}', "must be finite numbers"),
        ('{"logits": {"a": null}}', "must be finite numbers"),
        ('{"image": "x"}', "Extra inputs are not permitted"),
    ],
)
def test_inputs_that_are_none(given, says):
    assert says in fault(Input, given)


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("[]", "object"),
        ("{}", "inputs"),
        ('{"inputs": []}', "at least 1"),
        ('{"inputs": {"text": "a"}}', "valid array"),
        ('{"inputs": [{"text": "a"}], "colour": 1}', "Extra inputs are not permitted"),
        ('{"inputs": [{"text": "a"}], "unit": ""}', "at least 1"),
        ('{"inputs": [{"text": "a"}], "unit": "%s"}' % ("u" * 201), "at most 200"),
        ('{"inputs": [{"text": "a"}], "unit": "a\\nb"}', "pattern"),
        ('{"inputs": [{"text": "a"}], "unit": "a\\n"}', "pattern"),
        ('{"inputs": [{"text": "a"}], "unit": 17}', "valid string"),
        ('{"inputs": [{"text": "a"}], "use_case": "\\u0000"}', "pattern"),
        ('{"inputs": [{"text": "a"}], "branch": "\\u007f"}', "pattern"),
        ('{"inputs": [{"text": "a"}], "point": -1}', "greater than or equal to 0"),
        ('{"inputs": [{"text": "a"}], "point": 1.0}', "valid integer"),
        ('{"inputs": [{"text": "a"}], "point": true}', "valid integer"),
        ('{"inputs": [{"text": "a"}], "point": "0"}', "valid integer"),
    ],
)
def test_requests_that_are_none(body, says):
    assert says in fault(PredictBody, body)


def test_the_first_of_a_hundred_thousand_bad_inputs_ends_the_reading():
    with pytest.raises(ValidationError) as caught:
        PredictBody.model_validate({"inputs": [{}] * 100_000})
    assert caught.value.error_count() == 1


@pytest.mark.parametrize(
    ("each", "says"),
    [
        ('{"prediction": "p"}', "label, outcome or both are required"),
        ('{"prediction": "p", "label": "a", "value": 1}', "value and text require an outcome"),
        ('{"prediction": "p", "label": "a", "text": "x"}', "value and text require an outcome"),
        ('{"prediction": "p", "outcome": "a", "source": "x"}', "require a label"),
        ('{"prediction": "p", "outcome": "a", "other": true}', "require a label"),
        ('{"prediction": "p", "label": "a", "other": "yes"}', "boolean"),
        ('{"prediction": "p", "label": 3}', "string"),
        ('{"label": "a"}', "prediction"),
        ('{"prediction": "p", "outcome": "o", "value": Infinity}', "finite"),
        ('{"prediction": "p", "outcome": "o", "text": "\\u0000"}', "control characters"),
        ('{"prediction": "p", "outcome": "o", "text": "%s"}' % ("x" * 20_001), "at most 20000"),
    ],
)
def test_outcomes_that_say_nothing_or_too_much(each, says):
    assert says in fault(OutcomesBody, f'{{"outcomes": [{each}]}}')


def test_labels_and_outcomes_are_read():
    body = (
        '{"outcomes": [{"prediction": "p", "label": "a", "source": "agent"}, {"prediction": "q", '
        '"outcome": "refund", "value": 12, "text": "two lines\\nof it"}]}'
    )
    one, two = OutcomesBody.model_validate_json(body).outcomes
    assert (one.label, one.source, one.outcome) == ("a", "agent", None)
    assert (two.outcome, two.value, two.text) == ("refund", 12.0, "two lines\nof it")
    assert "at least 1" in fault(OutcomesBody, '{"outcomes": []}')


def test_the_examples_of_the_documentation_are_good_bodies():
    for message in (PredictBody, OutcomesBody):
        message.model_validate(message.model_json_schema()["example"])
