"""as_table: tables of every kind read the same, and what is no feature is refused."""

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.sparse import csr_array
from tests.sentences import refuses

from calibrant.data.encoders.table_columns import as_column, as_table, is_missing, is_number
from calibrant.errors import InputError

ROWS = [{"size": 1.5, "kind": "a"}, {"size": None, "kind": None}, {"size": 3.0, "kind": "b"}]
COLUMNS = {"size": [1.5, None, 3.0], "kind": ["a", None, "b"]}
OBJECTS = np.array([[1.5, "a"], [None, None], [3.0, "b"]], dtype=object)

CATEGORIES = pl.DataFrame(COLUMNS).with_columns(pl.col("kind").cast(pl.Categorical))

NAMED = {
    "dict of columns": COLUMNS,
    "list of dicts": ROWS,
    "pandas": pd.DataFrame(COLUMNS, index=[7, 3, 9]),
    "pandas, nullable": pd.DataFrame(COLUMNS).convert_dtypes(),
    "pandas, category": pd.DataFrame(COLUMNS).astype({"kind": "category"}),
    "pandas, objects": pd.DataFrame(COLUMNS, dtype=object),
    "polars": pl.DataFrame(COLUMNS),
    "polars, category": CATEGORIES,
    "arrow": pa.table(COLUMNS),
    "arrow, chunks": pa.concat_tables([pa.table(COLUMNS).slice(0, 1), pa.table(COLUMNS).slice(1)]),
    "pandas, chunks": pd.concat([pd.DataFrame(COLUMNS)[:1], pd.DataFrame(COLUMNS)[1:]]),
    "pandas, chunks of categories": pd.concat(
        [pd.DataFrame(COLUMNS).astype({"kind": "category"})[at] for at in (np.s_[:1], np.s_[1:])]
    ),
    "polars, chunks": pl.concat(
        [pl.DataFrame(COLUMNS)[:1], pl.DataFrame(COLUMNS)[1:]], rechunk=False
    ),
    "polars, chunks of categories": pl.concat([CATEGORIES[:1], CATEGORIES[1:]], rechunk=False),
    "arrow, chunks of categories": pa.table(
        {
            "size": pa.chunked_array([[1.5], [None, 3.0]]),
            "kind": pa.chunked_array(
                [pa.array(["a"]).dictionary_encode(), pa.array([None, "b"]).dictionary_encode()]
            ),
        }
    ),
    "arrow, batch": pa.RecordBatch.from_pydict(COLUMNS),
    "dict of series": {"size": pl.Series([1.5, None, 3.0]), "kind": pd.Series(["a", None, "b"])},
}
NAMELESS = {
    "list of rows": OBJECTS.tolist(),
    "objects": OBJECTS,
    "pandas, numbered": pd.DataFrame(OBJECTS),
}


def read(table):
    """Return the columns as lists, with -1 for a missing number."""
    return [
        np.nan_to_num(column, nan=-1.0).tolist() if is_number(column) else column.to_pylist()
        for column in table.columns
    ]


@pytest.mark.parametrize("kind", NAMED)
def test_named_tables_of_every_kind_read_the_same(kind):
    table = as_table(NAMED[kind])
    assert table.names == ("size", "kind")
    assert table.named
    assert len(table) == 3
    assert read(table) == [[1.5, -1.0, 3.0], ["a", None, "b"]]


@pytest.mark.parametrize("kind", NAMELESS)
def test_tables_without_names_go_by_position(kind):
    table = as_table(NAMELESS[kind])
    assert table.names == ("x0", "x1")
    assert not table.named
    assert read(table) == [[1.5, -1.0, 3.0], ["a", None, "b"]]


def test_structured_arrays_have_names():
    array = np.array([(1, "a"), (2, "b")], dtype=[("size", int), ("kind", "U3")])
    table = as_table(array)
    assert (table.names, table.named) == (("size", "kind"), True)
    assert read(table) == [[1.0, 2.0], ["a", "b"]]


def test_a_text_that_looks_like_a_number_stays_a_text():
    assert not is_number(as_table([["1", 2], ["3", 4]]).columns[0])
    assert not is_number(as_table(np.array([["1"], ["3"]])).columns[0])
    assert is_number(as_table([[1, "2"]]).columns[0])


@pytest.mark.parametrize(
    "values",
    [
        [True, False, None],
        np.array([1, 0, np.nan], dtype=np.float16),
        [Decimal("1"), Decimal("0"), None],
        [Decimal("1"), 0.0, None],
        [np.int8(1), np.float32(0), None],
        pd.array([1, 0, None], dtype="Int8"),
        np.array([1.0, 0.0, np.nan], dtype=">f8"),
        pd.Series([True, False, None], dtype="boolean"),
    ],
    ids=lambda values: f"{type(values).__name__} of {type(values[0]).__name__}",
)
def test_numbers_and_booleans_of_any_type_become_float64(values):
    column = as_column(values, name="x")
    assert column.dtype == np.float64
    assert column[:2].tolist() == [1.0, 0.0]
    assert np.isnan(column[2])


def test_integers_beyond_64_bits_are_numbers():
    assert as_column([2**70, 1], name="x").tolist() == [2.0**70, 1.0]


def test_categories_of_numbers_are_words_without_a_point():
    column = as_column(pd.Series([1999.0, None, 2.5], dtype="category"), name="x")
    assert column.to_pylist() == ["1999", None, "2.5"]


def test_taking_rows_takes_them_from_every_column():
    table = as_table(COLUMNS, wanted=lambda place, name: place == 1)
    taken = table.take(np.array([2, 0]))
    assert taken.columns[0] is None
    assert taken.columns[1].to_pylist() == ["b", "a"]
    assert as_table(COLUMNS).take(np.array([2])).columns[0].tolist() == [3.0]


def test_a_column_that_is_not_wanted_may_hold_anything():
    odd = {"day": [datetime.date(2024, 1, 1)], "size": [1.0]}
    assert as_table(odd, wanted=lambda _, name: name != "day").columns[0] is None


def test_missing_values_of_every_library_are_known():
    assert all(map(is_missing, [None, float("nan"), np.float32("nan"), pd.NA, pd.NaT]))
    assert not any(map(is_missing, ["", "nan", 0, False, 0.0]))


NO_TABLES = [
    (None, ("table", "got NoneType")),
    ("text", ("table", "got str")),
    (3, ("table", "got int")),
    (pl.LazyFrame({"a": [1]}), ("collect a lazy one first",)),
    ([1, 2, 3], ("Expected 2D array", "got 1D", "Reshape", "data")),
    (np.zeros((2, 2, 2)), ("got 3D array",)),
    (pd.Series([1, 2]), ("got one column",)),
    (pl.Series([1, 2]), ("got one column",)),
    (pa.chunked_array([[1, 2]]), ("got one column",)),
    ([], ("X has no rows",)),
    (pd.DataFrame({"a": []}), ("X has no rows",)),
    (np.empty((3, 0)), ("0 feature(s) (shape=(3, 0))", "while", "minimum of 1", "required")),
    ([[1, 2], [3]], ("same number", "values")),
    ({"a": [1], "b": [1, 2]}, ("got 1", "rows", "'a' and 2", "'b'")),
    ({"a": {1, 2}}, ("column 'a'", "set", "no order")),
    ({"a": 1}, ("row write {'a': [1]}",)),
    ([{"a": 1}, {"b": 1}], ("row 1", "same keys", "row 0", "differ", "'a'")),
    ([{"a": 1}, 2], ("row 1", "same keys")),
    (pd.DataFrame([[1, 2]], columns=["a", "a"]), ("two columns 'a'",)),
    (csr_array(np.eye(2)), ("sparse matrix", "toarray")),
    (np.array([[1j]]), ("Complex data not", "supported")),
    ({"a": [1j]}, ("contains complex",)),
    ({"a": [1.0, "x"]}, ("contains float", "str", "numbers")),
    ({"a": [True, 2.5]}, ("contains bool", "float")),
    ({"a": [10**400, 1]}, ("below 1e308",)),
    ({"a": [1.0, -np.inf]}, ("column 'a' row 1", "-inf")),
    ({"a": [[1], [2]]}, ("numbers", "booleans", "text", "got list")),
    ({"a": [b"x"]}, ("got binary",)),
    ({"a": ["ok", "a\ud800"]}, ("row 1", "not valid Unicode")),
    (pd.DataFrame({"a": pd.to_timedelta([1, 2])}), ("duration", "convert", "numbers or dates")),
    ({"a": [datetime.date(2024, 1, 1), "x"]}, ("contains date", "str")),
]


def test_what_is_no_table_of_features_is_refused_in_a_sentence(subtests):
    for values, sentence in NO_TABLES:
        with subtests.test(f"{values!r:.60}"), refuses(InputError, *sentence):
            as_table(values)


def test_a_table_without_any_wanted_column_still_has_rows():
    assert len(as_table({"a": [1, 2]}, wanted=lambda place, name: False)) == 2
