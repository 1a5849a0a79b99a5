"""find_leaking_columns: a column that gives every label away is named, honest ones are not."""

import numpy as np
import pytest

from calibrant.data.encoders.table_columns import as_table
from calibrant.fitting.target_leakage import find_leaking_columns

N = 300
LABELS = np.arange(N) % 3


def found(values, labels=LABELS):
    return find_leaking_columns(as_table({"x": values}), labels) == ["x"]


def test_classes_with_ranges_of_their_own_are_told_apart():
    spread = np.random.default_rng(0).random(N)
    assert found(-10 * LABELS + 9 * spread)
    assert not found(-10 * LABELS + 11 * spread)


def test_one_row_out_of_place_clears_a_column():
    values = LABELS.astype(float)
    assert found(values)
    values[0] = 1.0
    assert not found(values)


def test_a_gap_clears_a_column_of_numbers():
    values = LABELS.astype(float)
    values[5] = np.nan
    assert not found(values)


def test_words_that_never_share_a_class_tell_them_apart():
    assert found([f"w{label}{i % 2}" for i, label in enumerate(LABELS)])
    assert found([None if label == 0 else "some" for label in LABELS], (LABELS > 0).astype(int))
    assert not found([f"w{i % 5}" for i in range(N)])


def test_many_words_prove_nothing():
    assert not found([f"w{i}" for i in range(N)])


def test_few_rows_prove_nothing():
    assert find_leaking_columns(as_table({"x": LABELS[:99]}), LABELS[:99]) == []


@pytest.mark.parametrize("wanted", [True, False])
def test_a_column_that_is_not_read_is_not_judged(wanted):
    table = as_table({"x": LABELS, "y": np.zeros(N)}, wanted=lambda _, name: wanted or name == "y")
    assert find_leaking_columns(table, LABELS) == (["x"] if wanted else [])
