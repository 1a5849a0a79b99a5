"""The BigMart table: split first, cut by the train rows, nothing of the answer in the features."""

import numpy as np
import pyarrow as pa
import pytest
import reproductions.bigmart as loader
from reproductions.bigmart_rows import ITEM, SALES
from reproductions.experiment import experiment_named
from tests.data_sets import data_file

from calibrant import TabularClassifier
from calibrant.data.row_files import read_rows
from reproductions import bigmart_rows

MADE = {"made": True, "rows": 400}


def parts_of(reading=MADE):
    return loader.bigmart(reading)


def test_made_rows_need_no_file(monkeypatch):
    def refuse(*_):
        raise AssertionError("a file was asked for")

    monkeypatch.setattr(bigmart_rows, "find", refuse)
    parts = parts_of()
    assert parts.sizes() == {"train": 256, "steer": 32, "calib": 32, "test": 80}
    assert parts.train.inputs.equals(parts_of().train.inputs)


def test_neither_sales_nor_product_are_features():
    names = set(parts_of().train.inputs.column_names)
    assert names.isdisjoint({SALES, ITEM})
    assert "Outlet_Identifier" in names


def test_parts_share_no_row_and_lose_none():
    table = bigmart_rows.bigmart_rows(MADE)
    parts = parts_of()
    prices = np.concatenate(
        [getattr(parts, name).inputs["Item_MRP"].to_numpy() for name in parts.sizes()]
    )
    assert np.array_equal(np.sort(prices), np.sort(table["Item_MRP"].to_numpy()))


def test_the_cut_is_the_median_of_the_train_rows_alone(monkeypatch):
    whole = bigmart_rows.bigmart_rows(MADE)
    before = parts_of()
    in_train = np.isin(whole["Item_MRP"].to_numpy(), before.train.inputs["Item_MRP"].to_numpy())
    sales = whole[SALES].to_numpy()
    assert f"{np.median(sales[in_train]):,.2f}" in before.note
    raised = np.where(in_train, sales, 1e6 * sales)
    place = whole.column_names.index(SALES)
    monkeypatch.setattr(
        loader, "bigmart_rows", lambda _: whole.set_column(place, SALES, pa.array(raised))
    )
    after = parts_of()
    assert after.note == before.note
    assert np.array_equal(after.train.labels, before.train.labels)
    assert after.test.labels.all()  # and the others are judged by that cut


def test_half_of_the_train_rows_are_high():
    labels = parts_of().train.labels
    assert labels.sum() * 2 == len(labels)


def test_the_classifier_takes_the_table_and_merges_spellings():
    experiment = experiment_named("bigmart").at("toy")
    parts = parts_of(experiment.reading)
    model = TabularClassifier(**{**experiment.training, "epochs": 1})
    model.fit(
        parts.train.inputs, parts.train.labels, steer=(parts.steer.inputs, parts.steer.labels)
    )
    features = model.encoder_.get_feature_names_out().tolist()
    fat = [name for name in features if name.startswith("Item_Fat_Content=")]
    assert fat == ["Item_Fat_Content=Low Fat", "Item_Fat_Content=Regular"]
    assert model.predict_logits(parts.test.inputs).shape == (80, 2)


@pytest.mark.data
@pytest.mark.parametrize("rows", [500, 100_000])
def test_real_rows(rows):
    table = read_rows(data_file("bigmart", "bigmart_train.csv.gz"))
    parts = parts_of({"rows": rows})
    n = min(rows, table.num_rows)
    sizes = parts.sizes()
    assert sum(sizes.values()) == n
    assert [round(100 * size / n) for size in sizes.values()] == [64, 8, 8, 20]
    assert 0.4 < parts.test.labels.mean() < 0.6
