"""Examples of inputs.arrays."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import calibrant
from calibrant.errors import InputError
from calibrant.inputs import as_scored_rows
from calibrant.inputs.arrays import (
    as_array,
    column_names,
    format_position,
    name_of,
    order_columns,
    spellings,
)


def test_example_of_as_array():
    assert repr(as_array([1, 2], "labels")) == "array([1, 2])"


def test_example_of_format_position():
    assert (format_position((3,)), format_position((3, 1))) == ("row 3", "row 3, column 1")


def test_example_of_spellings():
    assert (spellings(" cat "), spellings(3.0), spellings(True)) == (
        ("cat",),
        ("3", "3.0"),
        ("True", "true", "1"),
    )


def test_example_of_name_of():
    assert (name_of("shop"), name_of(2.0), name_of(None)) == ("shop", "2", "(missing)")


PROBS = np.array([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.3, 0.2, 0.5], [0.5, 0.1, 0.4]])
CODES = np.array([0, 1, 2, 2])
NAMES = np.array(["a", "b", "c"])[CODES]
REORDERED = [2, 0, 1]


def pandas_of(names, probs):
    return pd.DataFrame(probs, columns=names)


def polars_of(names, probs):
    return pl.DataFrame(dict(zip(names, probs.T, strict=True)))


def arrow_of(names, probs):
    return pa.table(dict(zip(names, probs.T, strict=True)))


KINDS = pytest.mark.parametrize("table_of", [pandas_of, polars_of, arrow_of])


def reordered(names, table_of=pandas_of):
    """Return the table with its columns in another order."""
    return table_of([names[k] for k in REORDERED], PROBS[:, REORDERED])


@KINDS
@pytest.mark.parametrize("prefix", ["", "prob_"])
def test_columns_are_put_into_class_order(table_of, prefix):
    table = reordered([prefix + name for name in "abc"], table_of)
    scored = as_scored_rows(NAMES, table, classes=["a", "b", "c"])
    assert scored.classes == ("a", "b", "c")
    assert scored.labels.tolist() == CODES.tolist()
    assert scored.probs.tolist() == PROBS.tolist()


@KINDS
@pytest.mark.parametrize("prefix", ["", "prob_"])
def test_string_labels_need_no_classes_if_the_columns_name_them(table_of, prefix):
    table = reordered([prefix + name for name in "abc"], table_of)
    scored = as_scored_rows(NAMES, table)
    assert scored.classes == ("c", "a", "b")
    assert scored.probs.tolist() == PROBS[:, REORDERED].tolist()
    assert [scored.classes[code] for code in scored.labels] == NAMES.tolist()


@KINDS
@pytest.mark.parametrize("names", [["0", "1", "2"], ["prob_0", "prob_1", "prob_2"]])
def test_numbers_out_of_order_are_names(table_of, names):
    scored = as_scored_rows(CODES, reordered(names, table_of))
    assert scored.classes == (0, 1, 2)
    assert scored.probs.tolist() == PROBS.tolist()


@pytest.mark.parametrize("names", [[0, 1, 2], [0.0, 1.0, 2.0]])
def test_numbers_of_a_data_frame_out_of_order_are_names(names):
    assert as_scored_rows(CODES, reordered(names)).probs.tolist() == PROBS.tolist()


@pytest.mark.parametrize("names", [[1, 2, 3], ["1", "2", "3"]])
def test_other_numbers_are_the_classes_if_labels_are_among_them(names):
    scored = as_scored_rows(CODES + 1, reordered(names))
    assert scored.classes == (3, 1, 2)
    assert [scored.classes[code] for code in scored.labels] == (CODES + 1).tolist()


@pytest.mark.parametrize(
    "columns", [[True, False], ["true", "false"], ["1", "0"], ["prob_1", "prob_0"]]
)
@pytest.mark.parametrize("labels", [[True, False], [1, 0], [1.0, 0.0]])
def test_true_and_false_are_one_and_zero(columns, labels):
    table = pd.DataFrame([[0.9, 0.1], [0.2, 0.8]], columns=columns)
    assert as_scored_rows(labels, table).positive.tolist() == [0.9, 0.2]
    assert as_scored_rows(labels, table, classes=[False, True]).positive.tolist() == [0.9, 0.2]


@pytest.mark.parametrize(
    ("labels", "columns", "classes"),
    [
        (CODES, ["p0", "p1", "p2"], None),
        (CODES, ["a", "b", "c"], None),
        (CODES, ["prob_a", "prob_b", "prob_c"], None),
        (CODES, [5, 6, 7], None),
        (NAMES, ["p0", "p1", "p2"], ["a", "b", "c"]),
        (NAMES, [0, 1, 2], ["a", "b", "c"]),
        (NAMES, ["prob_0", "prob_1", "prob_2"], ["a", "b", "c"]),
        (CODES + 1, [0, 1, 2], [1, 2, 3]),
    ],
)
def test_unrelated_column_names_leave_the_column_order_unchanged(labels, columns, classes):
    scored = as_scored_rows(labels, pd.DataFrame(PROBS, columns=columns), classes=classes)
    assert scored.probs.tolist() == PROBS.tolist()
    assert scored.labels.tolist() == CODES.tolist()


@pytest.mark.parametrize(
    ("labels", "columns", "classes", "message"),
    [
        (
            NAMES,
            ["a", "b", "x"],
            ["a", "b", "c"],
            "columns 'a', 'b', 'x', but the classes are a, b",
        ),
        (NAMES, ["a", "a", "b"], ["a", "b", "c"], "columns 'a', 'a', 'b', but the classes are"),
        (
            NAMES,
            ["prob_x", "prob_y", "prob_z"],
            ["a", "b", "c"],
            "'prob_x', 'prob_y', 'prob_z', but",
        ),
        (CODES, [1, 2, 3], None, "columns 1, 2, 3, but the classes are 0, 1, 2: name each column"),
        (CODES, [0, 1, "rest"], None, "columns 0, 1, 'rest', but the classes are 0, 1, 2"),
        # The default names 0..K-1 of a table are ambiguous here.
        (CODES, [0, 1, 2], [2, 1, 0], "columns 0, 1, 2, but the classes are 2, 1, 0"),
        (NAMES, ["a", "b", "x"], None, "labels row 2 is 'c', which is not among the classes 'a'"),
        (NAMES, ["x", "y", "z"], None, "labels are names .*: pass classes"),
        (
            NAMES,
            ["prob_x", "prob_y", "prob_z"],
            None,
            "row 0 is 'a', which is not among the classes",
        ),
        (NAMES, ["a", "b", "c"], ["a", "b"], "each of the 3 columns, got 2"),
    ],
)
def test_contradicting_column_names_are_refused(labels, columns, classes, message):
    with pytest.raises(InputError, match=message) as caught:
        as_scored_rows(labels, pd.DataFrame(PROBS, columns=columns), classes=classes)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["no", "prob_no"])
def test_a_single_column_of_the_first_class_is_refused(name):
    labels, classes = ["no", "yes"], ["no", "yes"]
    for column in (pd.Series([0.8, 0.1], name=name), pl.Series(name, [0.8, 0.1])):
        with pytest.raises(InputError, match=f"probs is named '{name}', but a single column"):
            as_scored_rows(labels, column, classes=classes)
        assert as_scored_rows(labels, column, classes=classes[::-1]).labels.tolist() == [1, 0]


def test_a_single_column_is_accepted_unless_its_name_contradicts():
    labels = [0, 1]
    with pytest.raises(InputError, match=r"'prob_0', but a single column .* second class, 1"):
        as_scored_rows(labels, pd.Series([0.1, 0.8], name="prob_0"))
    for name in ("prob_1", "prob", "p", None, 0):  # 0 is the default name of a column
        assert as_scored_rows(labels, pd.Series([0.1, 0.8], name=name)).positive.tolist() == [
            0.1,
            0.8,
        ]


def test_logit_columns_are_recognised_by_their_prefix():
    logits = np.log(PROBS)
    table = pd.DataFrame(logits[:, REORDERED], columns=["logit_c", "logit_a", "logit_b"])
    ordered, classes = order_columns(
        logits[:, REORDERED], table, classes=["a", "b", "c"], kind="logit", name="logits"
    )
    assert ordered.tolist() == logits.tolist()
    assert classes == ["a", "b", "c"]


def test_the_order_of_columns_does_not_change_an_evaluation():
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(3), 300)
    labels = np.array([rng.choice(3, p=row) for row in probs])
    table = pd.DataFrame(probs, columns=list("abc"))
    names = np.array(list("abc"))[labels]
    plain = calibrant.evaluate(labels, probs)
    for result in (
        calibrant.evaluate(names, table[["c", "a", "b"]], classes=["a", "b", "c"]),
        calibrant.evaluate(labels, pd.DataFrame(probs)[[2, 0, 1]]),
    ):
        assert result["ece_ew"].value == plain["ece_ew"].value
        assert result["auroc"].value == plain["auroc"].value


def test_example_of_column_names():
    import pyarrow as pa

    assert (column_names(pa.table({"cat": [0.2], "dog": [0.8]})), column_names([[0.2, 0.8]])) == (
        ("cat", "dog"),
        None,
    )
