"""Inputs are validated against the bundle, collated, and stored as the policy says."""

import json

import numpy as np
import pytest
from tests.unit.serving.bundles import TABLE, rows_of, served

from calibrant.client.messages import Input
from calibrant.serving.request_inputs import InvalidInput, apply_input_policy, check_inputs, collate


@pytest.fixture(scope="module")
def logits(logits_folder):
    return served(logits_folder)


@pytest.fixture(scope="module")
def texts(text_folder):
    return served(text_folder)


@pytest.fixture(scope="module")
def tables(table_folder):
    return served(table_folder)


def checked(*given, of, max_text=50):
    inputs = [Input.model_validate_json(json.dumps(each)) for each in given]
    return check_inputs(inputs, of, max_text=max_text)


def faulty(*given, of):
    with pytest.raises(InvalidInput) as caught:
        checked(*given, of=of)
    assert str(caught.value) == f"{caught.value.where}: {caught.value.message}."
    return str(caught.value)


def test_texts_stay_texts(texts):
    found = checked({"text": "it came broken"}, {"text": ""}, {"text": "ä" * 50}, of=texts)
    assert collate(found, texts) == ["it came broken", "", "ä" * 50]


def test_rows_come_in_the_order_of_the_columns(tables):
    rows = rows_of(TABLE)
    turned = [dict(reversed(row.items())) for row in rows]
    for given in (rows, turned):
        made = collate(checked(*({"row": row} for row in given), of=tables), tables)
        assert made.to_pydict() == TABLE
        assert tables.bundle.predict_logits(made) == pytest.approx(
            tables.bundle.predict_logits(TABLE), abs=0
        )


def test_empty_cells_whole_numbers_and_numbers_for_words(tables):
    rows = [{"price": None, "shelf": None}, {"price": 3, "shelf": 7}, {"price": True, "shelf": ""}]
    made = collate(checked(*({"row": row} for row in rows), of=tables), tables)
    assert made.to_pydict() == {"price": [None, 3.0, 1.0], "shelf": [None, "7", ""]}


def test_logits_come_in_order_or_by_name(logits):
    named = {"other": 3.0, "defect": 1.0, "parts": 2}
    made = collate(checked({"logits": [1, 2.0, 3.0]}, {"logits": named}, of=logits), logits)
    assert made.dtype == np.float64
    assert made.tolist() == [[1.0, 2.0, 3.0]] * 2


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"row": {"a": 1}}, 'inputs[0]: the bundle takes texts: send {"text": "…"}.'),
        ({"logits": [1.0]}, 'inputs[0]: the bundle takes texts: send {"text": "…"}.'),
        (
            {"text": "x" * 51},
            "inputs[0].text: the text has 51 characters, at most 50 are allowed.",
        ),
    ],
)
def test_what_is_no_text(texts, given, says):
    assert faulty(given, of=texts) == says


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"text": "x"}, "inputs[0]: the bundle takes table rows"),
        ({"row": {}}, "inputs[0].row: column 'price' is missing"),
        ({"row": {"price": 1}}, "inputs[0].row: column 'shelf' is missing"),
        ({"row": {"price": 1, "shelf": "a", "x": 1}}, "inputs[0].row: unknown column"),
        ({"row": {"price": "1", "shelf": "a"}}, "inputs[0].row.price: must be a number or null"),
        ({"row": {"price": 10**400, "shelf": "a"}}, "inputs[0].row.price: the number is too large"),
        ({"row": {"price": 1, "shelf": 1.5}}, "inputs[0].row.shelf: must be a text or null"),
        ({"row": {"price": 1, "shelf": True}}, "must be a text or null, got true"),
        ({"row": {"price": 1, "shelf": "x" * 51}}, "inputs[0].row.shelf: the text has 51 char"),
        ({"row": {"price": 1, "shelf": 10**60}}, "inputs[0].row.shelf: the text has 61 char"),
    ],
)
def test_what_is_no_row(tables, given, says):
    assert says in faulty(given, of=tables)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"text": "x"}, "inputs[0]: the bundle has no model: send"),
        ({"logits": []}, "inputs[0].logits: 3 logits are required"),
        ({"logits": [1.0] * 4}, "one for each of 'defect', 'parts', 'other', got 4"),
        ({"logits": {"defect": 1, "parts": 1}}, "inputs[0].logits: class 'other' is missing"),
        (
            {"logits": {"defect": 1, "parts": 1, "other": 1, "more": 1}},
            "'more' is not a class: the classes are 'defect', 'parts', 'other'",
        ),
    ],
)
def test_what_are_no_logits(logits, given, says):
    assert says in faulty(given, of=logits)


def test_the_first_fault_is_told_with_its_place(texts):
    said = faulty({"text": "a"}, {"text": "b"}, {"row": {}}, {"row": {}}, of=texts)
    assert said.startswith("inputs[2]: ")


def test_values_as_long_as_a_body_are_not_sent_back(tables):
    long = "secret" * 1000
    for row in ({"price": long, "shelf": "a"}, {"price": 1, "shelf": "a", long: 1}):
        assert len(faulty({"row": row}, of=tables)) < 300


TEXT = Input(text="mail jane@example.org, order #12345")
ROW = Input(row={"note": "jane@example.org", "n": 12345, "none": None})
LOGITS = Input(logits=[1.0, 2.0])


def test_what_is_kept_of_an_input():
    assert apply_input_policy(TEXT, "keep") == {"text": "mail jane@example.org, order #12345"}
    assert apply_input_policy(ROW, "keep") == {
        "row": {"note": "jane@example.org", "n": 12345, "none": None}
    }
    assert apply_input_policy(LOGITS, "keep") == {"logits": [1.0, 2.0]}
    assert apply_input_policy(TEXT, "redacted") == {"text": "mail _email_, order #_order_"}
    assert apply_input_policy(ROW, "redacted") == {
        "row": {"note": "_email_", "n": 12345, "none": None}
    }
    assert apply_input_policy(LOGITS, "redacted") == {"logits": [1.0, 2.0]}
    card = Input(row={"note": 4111111111111111, "n": 7, "yes": True})
    assert apply_input_policy(card, "redacted") == {"row": {"note": "_card_", "n": 7, "yes": True}}
    assert [apply_input_policy(each, "hash") for each in (TEXT, ROW, LOGITS)] == [None] * 3
