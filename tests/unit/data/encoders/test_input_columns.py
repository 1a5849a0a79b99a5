"""The columns a model reads of a table."""

import pyarrow as pa
from tests.sentences import refuses

from calibrant.data.encoders.input_columns import InputColumns, format_names, require_columns
from calibrant.errors import InputError


def test_columns_are_picked_by_name_in_the_models_order():
    table = pa.table({"z": [1], "b": ["x"], "a": [2.0]})
    columns = InputColumns(numbers=("a",), texts=("b",))
    assert columns.select_from(table).column_names == ["a", "b"]
    assert columns.names == ("a", "b")
    assert columns.to_dict() == {"numbers": ["a"], "texts": ["b"]}


def test_a_table_that_lacks_columns_is_told_which_and_what_it_has():
    with refuses(InputError, "the column 'a' and 1 more", "'b', 'd'"):
        require_columns(["a", "b", "c"], ["b", "d"])


def test_long_lists_are_cut():
    assert format_names([]) == "no columns"
    assert format_names([str(i) for i in range(10)]).endswith("'7' and 2 more")
