"""Features of a row do not depend on the rows around it, nor on how the row was given."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sentences import refuses

from calibrant.data import TableEncoder
from calibrant.data.encoders.category_column import CategoryColumn
from calibrant.data.encoders.category_rules import CategoryRules
from calibrant.data.encoders.number_column import NumberColumn
from calibrant.data.encoders.table_columns import as_column, is_number
from calibrant.data.encoders.table_features import TableFeatures
from calibrant.errors import InputError

NUMBERS = st.none() | st.floats(-1e6, 1e6) | st.integers(-(10**9), 10**9) | st.just(float("nan"))
WORDS = st.none() | st.sampled_from(["low", " LOW ", "Low", "hi", "?", "", "ｌｏｗ", "new"])
ROWS = st.lists(st.fixed_dictionaries({"x": NUMBERS, "y": NUMBERS, "w": WORDS}), min_size=1)

TRAIN = {
    "x": np.append(np.arange(30.0), np.nan),
    "y": np.ones(31),
    "w": ["low", "hi", "low", "mid", None, "LOW"] * 5 + ["lo"],
}
CLEAN = {"w": {"lo": "low", "?": None}}


def slow_features(encoder, row):
    """Features of a row by the formulas of the columns, one value at a time."""
    out = []
    for column in encoder.columns_:
        value = row[column.name]
        if isinstance(column, NumberColumn):
            absent = value is None or value != value
            constant = column.scale == 0
            out.append(0.0 if absent or constant else (float(value) - column.mean) / column.scale)
            out += [float(absent)] if column.missing else []
        else:
            words = pa.array([value], pa.large_string())
            out += column.encode(words)[0].tolist()
    return np.array(out, dtype=np.float32)


@settings(max_examples=60, deadline=None)
@given(rows=ROWS)
def test_a_row_alone_in_any_table_and_among_thousands_has_the_same_features(rows):
    encoder = TableEncoder(clean=CLEAN, max_categories=2).fit(TRAIN)
    columns = {name: [row[name] for row in rows] for name in TRAIN}
    arrow = pa.table({"x": pa.array(columns["x"], pa.float64()),
                      "y": pa.array(columns["y"], pa.float64()),
                      "w": pa.array(columns["w"], pa.string())})  # fmt: skip
    by_rule = np.stack([slow_features(encoder, row) for row in rows])
    together = encoder.transform(rows)
    assert together.tobytes() == by_rule.tobytes()
    for table in (columns, arrow, pa.concat_tables([arrow] * 9000).slice(0, len(rows))):
        assert encoder.transform(table).tobytes() == by_rule.tobytes()
    many = pa.concat_tables([arrow] * (9000 // len(rows) + 1)).combine_chunks()  # over one block
    assert encoder.transform(many)[-len(rows) :].tobytes() == by_rule.tobytes()
    far = encoder.is_far(many)[: len(rows)].tolist()
    assert far == [bool(encoder.is_far([row])[0]) for row in rows]


@given(values=st.lists(st.none() | st.integers() | st.floats(allow_infinity=False), min_size=1))
def test_a_few_numbers_are_read_as_many_are(values):
    try:
        short = as_column(values, name="x")
    except InputError:
        with pytest.raises(InputError):
            as_column(values * 65, name="x")
        return
    long = as_column(values * 65, name="x")[: len(values)]
    if not is_number(long):  # Arrow gives a column without any value the type null
        assert long.null_count == len(values)
        long = np.full(len(values), np.nan)
    shown = short if is_number(short) else np.full(short.null_count, np.nan)
    assert np.array_equal(shown, long, equal_nan=True)


def test_features_by_hand():
    words = pa.array(["b", "a", None], pa.large_string())
    columns = (
        NumberColumn("n", mean=1.0, scale=2.0, missing=True),
        CategoryColumn.learn("c", words),
        NumberColumn("m", mean=5.0, scale=0.0, missing=False),
    )
    features = TableFeatures(columns)
    assert features.names == ["n", "n missing", "c=a", "c=b", "c=(missing)", "m"]
    found = features.encode([np.array([3.0, np.nan]), words[1:], np.array([9.0, np.nan])], 2)
    assert found.tolist() == [[1.0, 0.0, 1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0, 1.0, 0.0]]


def test_codes_are_the_positions_of_the_features():
    rules = CategoryRules.from_renames({"?": None}, column="w")
    words = pa.array(["a", "b", "b", "c", None], pa.large_string())
    column = CategoryColumn.learn("w", words, rules=rules, max_categories=2)
    asked = pa.array([" B", "a", "zzz", None, "?", ""], pa.large_string())
    assert column.codes(asked).tolist() == [1, 0, 3, 2, 2, 2]
    assert column.codes(pa.concat_arrays([asked] * 20)).tolist() == [1, 0, 3, 2, 2, 2] * 20
    without = CategoryColumn.learn("w", words[:4])
    assert without.codes(asked).tolist() == [1, 0, -1, -1, -1, -1]


def test_a_number_out_of_reach_is_named_with_its_column():
    encoder = TableEncoder().fit({"x": [0.0, 1.0], "y": [0.0, 1.0]})
    with refuses(InputError, "column 'y'", "row 1", "1e+300", "standard deviations"):
        encoder.transform({"x": [0.0, 1.0], "y": [0.0, 1e300]})


def test_threads_share_an_encoder():
    saved = TableEncoder(clean=CLEAN).fit(TRAIN).to_dict()
    rows = [{"x": float(i), "y": 1.0, "w": ["low", "?", "hi", "MID "][i % 4]} for i in range(200)]
    wanted = TableEncoder.from_dict(saved).transform(rows)
    fresh = TableEncoder.from_dict(saved)  # nothing looked up yet
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda row: fresh.transform([row])[0], rows))
    assert np.stack(found).tobytes() == wanted.tobytes()
