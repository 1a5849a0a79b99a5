"""TableEncoder: learned from train rows alone, columns found by name, saved as JSON."""

import copy
import datetime
import gzip
import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pacsv
import pytest
from tests.data_sets import data_file
from tests.sentences import refuses

from calibrant.data import TableEncoder
from calibrant.errors import InputError, NotFitted

TRAIN = {
    "weight": [1.0, None, 3.0, 2.0],
    "fat": ["Low Fat", "LF", "reg", "Regular"],
    "fresh": [True, False, True, True],
}
CLEAN = {"fat": {"LF": "Low Fat", "reg": "Regular"}}


def bigmart():
    with gzip.open(data_file("bigmart", "bigmart_train.csv.gz")) as file:
        return pacsv.read_csv(file)


def test_features_by_hand():
    encoder = TableEncoder(clean=CLEAN).fit(TRAIN)
    names = ["weight", "weight missing", "fat=Low Fat", "fat=Regular", "fresh"]
    assert encoder.get_feature_names_out().tolist() == names
    found = encoder.transform({"fresh": [True], "fat": ["low fat"], "weight": [None]})
    assert found.dtype == np.float32
    fresh = 0.25 / np.sqrt(0.75 * 0.25)
    assert found == pytest.approx(np.array([[0.0, 1.0, 1.0, 0.0, fresh]]))


@pytest.mark.parametrize(
    "make",
    [
        pd.DataFrame,
        pl.DataFrame,
        pa.table,
        lambda columns: pd.DataFrame(columns).convert_dtypes(),
        lambda columns: pa.table(columns).to_pylist(),
        lambda columns: pd.DataFrame(columns).astype({"fat": "category"}),
    ],
)
def test_every_kind_of_table_gives_the_same_encoder(make):
    plain, other = TableEncoder(clean=CLEAN).fit(TRAIN), TableEncoder(clean=CLEAN).fit(make(TRAIN))
    assert other.to_dict() == plain.to_dict()
    assert np.array_equal(other.transform(make(TRAIN)), plain.transform(TRAIN))


@pytest.mark.parametrize(
    "join",
    [
        lambda a, b: pd.concat([pd.DataFrame(a), pd.DataFrame(b)]),
        lambda a, b: pd.concat([pd.DataFrame(a), pd.DataFrame(b)]).astype({"fat": "category"}),
        lambda a, b: pl.concat([pl.DataFrame(a), pl.DataFrame(b)], rechunk=False),
        lambda a, b: pa.concat_tables([pa.table(a), pa.table(b)]),
    ],
)
def test_tables_put_together_from_parts_are_one_table(join):
    parts = [{name: column[at] for name, column in TRAIN.items()} for at in (np.s_[:2], np.s_[2:])]
    plain = TableEncoder(clean=CLEAN).fit(TRAIN)
    other = TableEncoder(clean=CLEAN).fit(join(*parts))
    assert other.to_dict() == plain.to_dict()
    assert np.array_equal(other.transform(join(*parts)), plain.transform(TRAIN))


def test_columns_are_found_by_name_and_strangers_left_out():
    encoder = TableEncoder(clean=CLEAN).fit(TRAIN)
    turned = {name: TRAIN[name] for name in reversed(TRAIN)}
    turned["sold on"] = [datetime.date(2024, 1, 1)] * 4  # could not even be read
    assert np.array_equal(encoder.transform(turned), encoder.transform(TRAIN))


def test_transform_learns_nothing():
    encoder = TableEncoder(clean=CLEAN).fit(TRAIN)
    before = json.dumps(encoder.to_dict())
    alone = encoder.transform({"weight": [9.0], "fat": ["new"], "fresh": [False]})
    together = encoder.transform({"weight": [9.0, 1e6], "fat": ["new", ""], "fresh": [False, None]})
    assert json.dumps(encoder.to_dict()) == before
    assert np.array_equal(alone, together[:1])  # the other row has no say


def test_tables_without_names_go_by_position():
    encoder = TableEncoder(drop=["x1"], categories=["x2"]).fit([[1.0, "id", 7], [2.0, "di", 8]])
    assert encoder.get_feature_names_out().tolist() == ["x0", "x2=7", "x2=8"]
    assert encoder.transform(np.array([[3.0, 0.0, 8.0]])).tolist() == [[3.0, 0.0, 1.0]]
    named = pd.DataFrame([[3.0, "?", 8]], columns=["a", "b", "c"])
    assert encoder.transform(named).tolist() == [[3.0, 0.0, 1.0]]


def test_numbers_can_be_categories():
    encoder = TableEncoder(categories=["year"]).fit({"year": [1999, 2004, None]})
    assert encoder.get_feature_names_out().tolist() == ["year=1999", "year=2004", "year=(missing)"]
    for year in (1999, 1999.0, "1999"):
        assert encoder.transform({"year": [year]}).tolist() == [[1.0, 0.0, 0.0]]


def test_a_dropped_column_is_never_read():
    table = {**TRAIN, "sold on": [datetime.date(2024, 1, 1)] * 4}
    encoder = TableEncoder(clean=CLEAN, drop=["sold on"]).fit(table)
    assert np.array_equal(encoder.transform(TRAIN), encoder.transform(table))


def test_a_column_may_be_all_missing_later():
    encoder = TableEncoder().fit(TRAIN)
    nothing = {name: [None] for name in TRAIN}
    assert encoder.transform(nothing)[0, :2].tolist() == [0.0, 1.0]
    assert encoder.transform(pd.DataFrame(nothing, dtype=float))[0, 1] == 1.0


def test_fitting_again_forgets_the_first_table():
    encoder = TableEncoder(clean=CLEAN).fit(TRAIN)
    other = {"fat": ["LF", "x"], "height": [1.0, 2.0]}
    assert encoder.fit(other).to_dict() == TableEncoder(clean=CLEAN).fit(other).to_dict()


def test_the_encoder_survives_json_to_the_bit():
    encoder = TableEncoder(clean=CLEAN, max_categories=1, drop=["fresh"]).fit(TRAIN)
    again = TableEncoder.from_dict(json.loads(json.dumps(encoder.to_dict())))
    assert again.to_dict() == encoder.to_dict()
    assert np.array_equal(again.transform(TRAIN), encoder.transform(TRAIN))
    assert copy.deepcopy(encoder).to_dict() == encoder.to_dict()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"drop": ["mass"]}, ("drop", "'mass',", "'weight'")),
        ({"categories": "fat"}, ("categories", "list", "columns", "got 'fat'")),
        ({"clean": {"Fat": {}}}, ("clean", "'Fat'", "not a column")),
        (
            {"clean": {"weight": {"1": "one"}}},
            ("clean", "'weight'", "numbers: add it to categories"),
        ),
        ({"drop": 3}, ("drop", "list", "columns", "got 3")),
        ({"categories": None}, ("categories", "list", "columns", "got None")),
        ({"clean": ["fat"]}, ("clean", "dict", "columns", "spellings", "got ['fat']")),
        ({"max_categories": 0}, ("max_categories", "whole number", "at least 1", "got 0")),
        ({"max_categories": "ten"}, ("max_categories", "whole number", "got 'ten'")),
        ({"max_categories": True}, ("max_categories", "whole number", "got True")),
        ({"drop": ["weight", "fat", "fresh"]}, ("drop", "all columns", "columns of X")),
    ],
)
def test_options_that_do_not_fit_the_table_are_refused(options, sentence):
    with refuses(InputError, *sentence):
        TableEncoder(**options).fit(TRAIN)


def test_numbers_of_numpy_are_options():
    options = {"max_categories": np.int64(1), "fold_case": np.True_}
    encoder = TableEncoder(clean=CLEAN, **options).fit(TRAIN)
    again = TableEncoder.from_dict(json.loads(json.dumps(encoder.to_dict())))
    assert (again.max_categories, again.fold_case) == (1, True)


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ({"weight": [1.0], "fat": ["LF"]}, ("X lacks", "column 'fresh'")),
        ({"weight": [1.0]}, ("X lacks", "column 'fat'", "1 more")),
        ({"other": [1.0]}, ("X lacks", "column 'weight'", "2 more")),
        (np.zeros((1, 3)), ("X", "no column names", "encoder")),
        (np.zeros((1, 2)), ("X", "2 features", "TableEncoder", "expecting 3 features", "input")),
        (
            {"weight": ["heavy"], "fat": ["LF"], "fresh": [True]},
            ("'weight'", "numeric", "fit", "'heavy'"),
        ),
    ],
)
def test_tables_unlike_the_fitted_one_are_refused(table, sentence):
    with refuses(InputError, *sentence):
        TableEncoder().fit(TRAIN).transform(table)


def test_nothing_works_before_fit():
    for use in (TableEncoder().get_feature_names_out, TableEncoder().to_dict):
        with refuses(NotFitted, "call fit with the train rows"):
            use()
    with pytest.raises(NotFitted):
        TableEncoder().transform(TRAIN)


def test_another_file_is_not_taken_for_an_encoder():
    with refuses(InputError, "not a table encoder of format 1 to 2: got format 3"):
        TableEncoder.from_dict({"format": 3, "kind": "table"})


def test_a_column_that_counts_the_rows_is_warned_of():
    draw = np.random.default_rng(0)
    ids = 5_000 + draw.permutation(400)[:150]  # the train rows of 400
    with pytest.warns(UserWarning, match=r"'id' looks like a row number \(150 .*drop=\['id'\]"):
        TableEncoder().fit({"id": ids, "x": draw.normal(size=150)})


@pytest.mark.parametrize(
    "values",
    [
        np.arange(150) + 0.5,
        np.arange(150) // 2,
        np.arange(150) * 10,
        np.where(np.arange(150) == 3, np.nan, np.arange(150)),
        np.arange(50),
    ],
    ids=["not whole", "twice", "far apart", "one is missing", "few"],
)
def test_other_numbers_are_not(values, recwarn):
    TableEncoder().fit({"x": values})
    assert not recwarn.list


@pytest.mark.data
def test_means_scales_and_categories_of_bigmart_are_those_of_the_train_rows_alone():
    table = bigmart()
    order = np.random.default_rng(0).permutation(table.num_rows)
    train, test = table.take(order[:6000]), table.take(order[6000:])
    clean = {"Item_Fat_Content": {"LF": "Low Fat", "reg": "Regular"}}
    encoder = TableEncoder(clean=clean, drop=["Item_Identifier", "Item_Outlet_Sales"]).fit(train)
    learned = {column.name: column for column in encoder.columns_}
    weights = np.asarray(train["Item_Weight"].to_pandas(), dtype=float)
    everyone = np.asarray(table["Item_Weight"].to_pandas(), dtype=float)
    assert learned["Item_Weight"].mean == pytest.approx(np.nanmean(weights), rel=1e-12)
    assert learned["Item_Weight"].mean != pytest.approx(np.nanmean(everyone), rel=1e-6)
    assert learned["Item_Weight"].scale == pytest.approx(np.nanstd(weights), rel=1e-12)
    assert learned["Item_Weight"].missing
    assert learned["Item_Fat_Content"].categories == ("Low Fat", "Regular")
    features = encoder.transform(train)
    place = encoder.get_feature_names_out().tolist().index("Item_MRP")
    assert features[:, place].mean() == pytest.approx(0.0, abs=1e-5)
    assert features[:, place].std() == pytest.approx(1.0, abs=1e-5)
    assert abs(encoder.transform(test)[:, place].mean()) > 1e-4  # not centred on itself


def test_rows_with_a_number_far_from_all_train_rows_are_known():
    ages = np.arange(18.0, 91.0)
    encoder = TableEncoder().fit({"age": ages, "shop": ["a", "b"] * 36 + ["a"], "fee": 2 * ages})
    asked = {
        "fee": [50.0, 60.0, None, 1e6],
        "shop": ["b", "new", "a", None],
        "age": [20, 5000, 9, 9],
    }
    assert encoder.is_far(asked).tolist() == [False, True, False, True]
    again = TableEncoder.from_dict(json.loads(json.dumps(encoder.to_dict())))
    assert again.is_far(asked).tolist() == [False, True, False, True]
