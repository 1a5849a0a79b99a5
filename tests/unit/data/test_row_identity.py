"""Equal rows of two tables and within one."""

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sentences import refuses

from calibrant.data.row_identity import content_groups, same_rows
from calibrant.errors import InputError


def test_rows_of_one_table_are_found_in_another():
    golden = pa.table({"text": ["late", "new", " it broke"], "n": [1, 2, 3]})
    logs = pa.table({"text": ["it broke", "late", "it broke\n", "late"], "n": [3, 9, 3, 1]})
    assert same_rows(golden, logs, ["text"]).tolist() == [[0, 1], [2, 0]]
    assert same_rows(golden, logs, ["text", "n"]).tolist() == [[0, 3], [2, 0]]
    assert same_rows(golden.slice(1, 1), logs, ["text"]).shape == (0, 2)


def test_numbers_are_equal_whatever_their_type():
    one = pa.table({"x": pa.array([5, 7], pa.int8())})
    assert same_rows(one, pa.table({"x": [7.0, 5.0]}), ["x"]).tolist() == [[0, 1], [1, 0]]
    assert same_rows(one, pa.table({"x": ["7", "5 "]}), ["x"]).tolist() == [[0, 1], [1, 0]]
    assert same_rows(one, pa.table({"x": [5.5, 6.9]}), ["x"]).tolist() == []


def test_missing_equals_missing_but_a_row_of_nothing_equals_none():
    one = pa.table({"a": ["x", None, ""], "b": [None, None, float("nan")]})
    assert same_rows(one, one, ["a", "b"]).tolist() == [[0, 0]]
    assert content_groups(one, ["a", "b"]).tolist() == [0, 1, 2]
    twice = pa.concat_tables([one, one])
    assert content_groups(twice, ["a", "b"]).tolist() == [0, 1, 2, 0, 3, 4]


def test_upper_and_lower_case_differ_and_the_border_between_cells_counts():
    one = pa.table({"a": ["ab", "A"], "b": ["c", "x"]})
    other = pa.table({"a": ["a", "a"], "b": ["bc", "x"]})
    assert same_rows(one, other, ["a", "b"]).tolist() == []


CELL = st.sampled_from(["", "a", "b", "c", " a", None])


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(CELL, CELL, CELL), min_size=1, max_size=15),
    st.lists(st.tuples(CELL, CELL, CELL), min_size=1, max_size=15),
)
def test_it_agrees_with_comparing_every_pair(mine, theirs):
    names = ["a", "b", "c"]
    tables = [
        pa.table({n: pa.array([r[i] for r in rows], pa.string()) for i, n in enumerate(names)})
        for rows in (mine, theirs)
    ]
    plain = [
        [tuple((cell or "").strip() or None for cell in row) for row in rows]
        for rows in (mine, theirs)
    ]
    expected = [
        [i, plain[1].index(row)] for i, row in enumerate(plain[0]) if any(row) and row in plain[1]
    ]
    assert same_rows(*tables, names).tolist() == expected
    groups = content_groups(tables[0], names)
    for i, row in enumerate(plain[0]):
        for j, other in enumerate(plain[0]):
            same = i == j or (any(row) and row == other)
            assert (groups[i] == groups[j]) == same
    assert sorted(set(groups.tolist())) == list(range(groups.max() + 1))


def test_a_million_rows_are_compared():
    rng = np.random.default_rng(0)
    numbers = rng.permutation(1_000_000)
    logs = pa.table({"text": pa.array(numbers).cast(pa.string()), "x": numbers / 2})
    golden = logs.slice(999_990)
    found = same_rows(golden, logs, ["text", "x"])
    assert found.tolist() == [[i, 999_990 + i] for i in range(10)]
    assert content_groups(logs, ["text", "x"])[-1] == 999_999


def test_columns_that_cannot_be_compared_are_refused():
    table = pa.table({"a": [1], "deep": [[1]]})
    with refuses(InputError, "no column 'b'", "'a', 'deep'"):
        same_rows(table, table, ["b"])
    with refuses(InputError, "columns must be a list of at least one column name"):
        content_groups(table, [])
    with refuses(InputError, "columns must be a list of at least one column name"):
        content_groups(table, "a")
    with refuses(InputError, "column 'deep' contains list"):
        content_groups(table, ["deep"])
