"""What is typed on the Try it page: each fault beside its field."""

import pytest
from tests.unit.bundle.model_parts import CLASSES
from tests.unit.serving.bundles import served

from calibrant.bundle import pack
from calibrant.data.encoders.table_encoder import TableEncoder
from calibrant.models import MLP
from calibrant.models.scorer import Scorer
from calibrant.serving.console.pages.try_it.fields import MOST_FIELDS, fields_of
from calibrant.serving.console.pages.try_it.form_input import PASTE, read_typed
from calibrant.serving.console.shell.forms import Form


def typed(folder, max_text=100, **fields):
    given = {name.replace("_", "-"): value for name, value in fields.items()}
    return read_typed(Form(given), served(folder), max_text=max_text)


def test_a_message_stays_as_it_was_typed(text_folder):
    found = typed(text_folder, text="  it came\r\n\tbroken ")
    assert found.faults == {}
    assert found.row == found.input.text == "  it came\n\tbroken "


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "Write or paste a message: this one is empty."),
        (" \n\t", "Write or paste a message: this one is empty."),
        ("a" * 101, "The text has 101 characters, at most 100 are allowed."),
        ("a\x00b", "Control characters other than tabs and line ends are not allowed."),
    ],
)
def test_messages_that_are_refused(text_folder, text, said):
    found = typed(text_folder, text=text)
    assert found.faults == {"text": said}
    assert found.input is None
    assert found.values["text"] == text


def test_a_row_has_a_field_for_each_column(table_folder):
    price, shelf = fields_of(served(table_folder))
    assert (price.name, price.kind, price.hint) == ("price", "number", "a number; 3.75 on average")
    assert (shelf.name, shelf.kind, shelf.known) == ("shelf", "category", ("Low", "Top"))
    assert shelf.hint == "Low, Top"
    found = typed(table_folder, value_0=" 2.5 ", value_1="TOP")
    assert found.input.row == {"price": 2.5, "shelf": "TOP"}
    assert found.row == [2.5, "TOP"]


@pytest.mark.parametrize("empty", ["", "  "])
def test_what_is_not_known_may_stay_empty_but_not_all_of_it(table_folder, empty):
    assert typed(table_folder, value_0=empty, value_1="low").row == [None, "low"]
    assert typed(table_folder, value_0="1", value_1=empty).row == [1.0, None]
    found = typed(table_folder, value_0=empty, value_1=empty)
    assert found.faults == {"value-0": "Fill in at least one field."}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("abc", "“abc” is not a number."),
        ("2,5", "“2,5” is not a number: write it with a point, like 2.5."),
        ("nan", "“nan” is not a number."),
        ("inf", "“inf” is not a number."),
        ("1_000", "“1_000” is not a number."),
        ("٣", "“٣” is not a number."),
        ("0x10", "“0x10” is not a number."),
        ("1e400", "“1e400” is too large a number."),
        ("-2e30", "The number is too large."),
        ("x\x00" + "y" * 99, "“x␀" + "y" * 38 + "…” is not a number."),
    ],
)
def test_what_is_no_number(table_folder, text, said):
    found = typed(table_folder, value_0=text, value_1="low")
    assert found.faults == {"value-0": said}
    assert found.values["value-0"] == text


def test_all_faults_are_told_at_once(table_folder):
    found = typed(table_folder, value_0="many", value_1="Middle")
    assert set(found.faults) == {"value-0", "value-1"}
    assert found.faults["value-1"].startswith(
        "“Middle” is not among the categories that the model knows: “Low”, “Top”."
    )


def test_a_category_with_control_characters_is_refused_beside_its_field(tmp_path):
    folder = pooled(tmp_path)
    found = typed(folder, value_0="a\x00")
    assert list(found.faults) == ["value-0"]
    assert "control characters" in found.faults["value-0"]


def pooled(tmp_path):
    """Pack a bundle whose one column has more categories than features."""
    words = ["a"] * 9 + ["b"] * 6 + ["c", "d"]
    encoder = TableEncoder(max_categories=2).fit({"kind": words})
    scorer = Scorer(encoder, MLP(3, 3, hidden=[2], dropout=[0.0]), classes=CLASSES)
    return pack(tmp_path / "pooled", scorer=scorer).path


def test_rare_categories_are_taken_and_told(tmp_path):
    folder = pooled(tmp_path)
    (field,) = fields_of(served(folder))
    assert (field.pools, field.hint) == (True, "a, b, …")
    found = typed(folder, value_0="c")
    assert found.row == ["c"]
    assert found.notes == (
        "“c” of “kind” is read as one of the rare categories, which the model takes together.",
    )
    assert typed(folder, value_0="A").notes == ()


def test_a_category_that_is_too_long(tmp_path):
    found = typed(pooled(tmp_path), value_0="c" * 101)
    assert found.faults == {"value-0": "The text has 101 characters, at most 100 are allowed."}


def test_logits_are_needed_for_each_class(logits_folder):
    found = typed(logits_folder, value_0="1", value_1="-2.5e1", value_2="0")
    assert found.row == [1.0, -25.0, 0.0]
    lacking = typed(logits_folder, value_0="1", value_1="")
    assert set(lacking.faults) == {"value-1", "value-2"}
    assert lacking.faults["value-1"] == "A number is needed: the logit of this class."
    large = typed(logits_folder, value_0="1e31", value_1="1", value_2="1")
    assert large.faults == {"value-0": "A logit is too large."}


def test_a_pasted_row_counts_instead_of_the_fields(table_folder):
    found = typed(table_folder, value_0="9", value_1="low", paste="shelf,price\ntop,2")
    assert found.row == [2.0, "top"]
    assert (found.values["value-0"], found.values["value-1"]) == ("2", "top")
    wrong = typed(table_folder, value_0="9", paste="top;low;3")
    assert list(wrong.faults) == [PASTE]
    assert wrong.values["value-0"] == "9"
    assert wrong.values[PASTE] == "top;low;3"
    again = typed(table_folder, paste='{"price": "x"}')
    assert again.faults == {"value-0": "“x” is not a number."}


def test_faults_of_very_many_columns_are_told_beside_the_pasted_row(tmp_path):
    names = [f"x{i}" for i in range(MOST_FIELDS + 1)]
    encoder = TableEncoder().fit({name: [0.0, 1.0] for name in names})
    scorer = Scorer(encoder, MLP(len(names), 3, hidden=[2], dropout=[0.0]), classes=CLASSES)
    folder = pack(tmp_path / "wide", scorer=scorer).path
    values = ["1"] * len(names)
    assert typed(folder, paste="\t".join(values)).row == [1.0] * len(names)
    values[3:5] = ["a", "b"]
    found = typed(folder, paste="\t".join(values))
    assert found.faults == {PASTE: "x3: “a” is not a number. 1 more value is wrong."}
