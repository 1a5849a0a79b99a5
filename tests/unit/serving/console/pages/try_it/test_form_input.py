"""Input of the Try it page: each fault at its field."""

import pytest
from tests.sentences import assert_mentions
from tests.unit.bundle.model_parts import CLASSES
from tests.unit.serving.bundles import served

from calibrant.bundle import pack
from calibrant.data.encoders.table_encoder import TableEncoder
from calibrant.models import MLP
from calibrant.models.scorer import Scorer
from calibrant.serving.console.pages.try_it.fields import MAX_FIELDS, list_fields
from calibrant.serving.console.pages.try_it.form_input import PASTE, read_input
from calibrant.serving.console.shell.forms import Form


def typed(folder, max_text=100, **fields):
    form_fields = {name.replace("_", "-"): value for name, value in fields.items()}
    return read_input(Form(form_fields), served(folder), max_text=max_text)


def test_a_message_is_kept_unchanged(text_folder):
    entered = typed(text_folder, text="  it came\r\n\tbroken ")
    assert entered.faults == {}
    assert entered.row == entered.input.text == "  it came\n\tbroken "


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "Enter a message: this one is empty."),
        (" \n\t", "Enter a message: this one is empty."),
        ("a" * 101, "The text has 101 characters, at most 100 are allowed."),
        ("a\x00b", "Control characters other than tabs and line ends are not allowed."),
    ],
)
def test_invalid_messages_are_refused(text_folder, text, message):
    entered = typed(text_folder, text=text)
    assert entered.faults == {"text": message}
    assert entered.input is None
    assert entered.values["text"] == text


def test_a_row_has_a_field_for_each_column(table_folder):
    price, shelf = list_fields(served(table_folder))
    assert (price.name, price.kind, price.hint) == ("price", "number", "a number; mean 3.75")
    assert (shelf.name, shelf.kind, shelf.known) == ("shelf", "category", ("Low", "Top"))
    assert shelf.hint == "Low, Top"
    entered = typed(table_folder, value_0=" 2.5 ", value_1="TOP")
    assert entered.input.row == {"price": 2.5, "shelf": "TOP"}
    assert entered.row == [2.5, "TOP"]


@pytest.mark.parametrize("empty", ["", "  "])
def test_fields_may_be_empty_but_not_all_of_them(table_folder, empty):
    assert typed(table_folder, value_0=empty, value_1="low").row == [None, "low"]
    assert typed(table_folder, value_0="1", value_1=empty).row == [1.0, None]
    entered = typed(table_folder, value_0=empty, value_1=empty)
    assert entered.faults == {"value-0": "Fill in at least one field."}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("abc", "“abc” is not a number."),
        ("2,5", "“2,5” is not a number: use a decimal point, as in 2.5."),
        ("inf", "“inf” is not a number."),
        ("1_000", "“1_000” is not a number."),
        ("٣", "“٣” is not a number."),
        ("0x10", "“0x10” is not a number."),
        ("1e400", "“1e400” is too large."),
        ("-2e30", "The number is too large."),
        ("x\x00" + "y" * 99, "“x␀" + "y" * 38 + "…” is not a number."),
    ],
)
def test_texts_that_are_not_numbers_are_refused(table_folder, text, message):
    entered = typed(table_folder, value_0=text, value_1="low")
    assert entered.faults == {"value-0": message}
    assert entered.values["value-0"] == text


def test_all_faults_are_reported_at_once(table_folder):
    entered = typed(table_folder, value_0="many", value_1="Middle")
    assert set(entered.faults) == {"value-0", "value-1"}
    assert entered.faults["value-1"].startswith(
        "“Middle” is not a known category. Known: “Low”, “Top”."
    )


def test_a_category_with_control_characters_is_refused_beside_its_field(tmp_path):
    folder = pooled(tmp_path)
    entered = typed(folder, value_0="a\x00")
    assert list(entered.faults) == ["value-0"]
    assert "control characters" in entered.faults["value-0"]


def pooled(tmp_path):
    """Pack a bundle whose one column has more categories than features."""
    words = ["a"] * 9 + ["b"] * 6 + ["c", "d"]
    encoder = TableEncoder(max_categories=2).fit({"kind": words})
    scorer = Scorer(encoder, MLP(3, 3, hidden=[2], dropout=[0.0]), classes=CLASSES)
    return pack(tmp_path / "pooled", scorer=scorer).path


def test_rare_categories_are_accepted_and_noted(tmp_path):
    folder = pooled(tmp_path)
    (field,) = list_fields(served(folder))
    assert (field.pools, field.hint) == (True, "a, b, …")
    entered = typed(folder, value_0="c")
    assert entered.row == ["c"]
    assert entered.notes == ("“c” in “kind” counts as a rare category; the model pools those.",)
    assert typed(folder, value_0="A").notes == ()


def test_a_category_that_is_too_long(tmp_path):
    entered = typed(pooled(tmp_path), value_0="c" * 101)
    assert entered.faults == {"value-0": "The text has 101 characters, at most 100 are allowed."}


def test_logits_are_needed_for_each_class(logits_folder):
    entered = typed(logits_folder, value_0="1", value_1="-2.5e1", value_2="0")
    assert entered.row == [1.0, -25.0, 0.0]
    lacking = typed(logits_folder, value_0="1", value_1="")
    assert set(lacking.faults) == {"value-1", "value-2"}
    assert_mentions(lacking.faults["value-1"], "Enter a number", "logit of this class")
    large = typed(logits_folder, value_0="1e31", value_1="1", value_2="1")
    assert large.faults == {"value-0": "A logit is too large."}


def test_a_pasted_row_replaces_the_fields(table_folder):
    entered = typed(table_folder, value_0="9", value_1="low", paste="shelf,price\ntop,2")
    assert entered.row == [2.0, "top"]
    assert (entered.values["value-0"], entered.values["value-1"]) == ("2", "top")
    wrong = typed(table_folder, value_0="9", paste="top;low;3")
    assert list(wrong.faults) == [PASTE]
    assert wrong.values["value-0"] == "9"
    assert wrong.values[PASTE] == "top;low;3"
    again = typed(table_folder, paste='{"price": "x"}')
    assert again.faults == {"value-0": "“x” is not a number."}


def test_faults_of_many_columns_are_reported_at_the_pasted_row(tmp_path):
    names = [f"x{i}" for i in range(MAX_FIELDS + 1)]
    encoder = TableEncoder().fit({name: [0.0, 1.0] for name in names})
    scorer = Scorer(encoder, MLP(len(names), 3, hidden=[2], dropout=[0.0]), classes=CLASSES)
    folder = pack(tmp_path / "wide", scorer=scorer).path
    values = ["1"] * len(names)
    assert typed(folder, paste="\t".join(values)).row == [1.0] * len(names)
    values[3:5] = ["a", "b"]
    entered = typed(folder, paste="\t".join(values))
    assert entered.faults == {PASTE: "x3: “a” is not a number. 1 more value is invalid."}
