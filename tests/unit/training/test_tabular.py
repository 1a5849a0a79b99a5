"""TabularClassifier: scikit-learn's contract, tables with gaps and words, real data, no leaks."""

import gzip
import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pacsv
import pytest
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.utils.estimator_checks import estimator_checks_generator
from tests.data_sets import data_file
from tests.sentences import refuses

from calibrant import TabularClassifier
from calibrant.data import TargetCut
from calibrant.errors import InputError

# This check runs only where SCIPY_ARRAY_API was set before scipy was imported.
NOT_HERE = "check_array_api_input"
CHECKS = [
    pytest.param(estimator, check, id=" ".join([check.func.__name__, *map(str, check.keywords)]))
    for estimator, check in estimator_checks_generator(TabularClassifier(epochs=30, device="cpu"))
    if check.func.__name__ != NOT_HERE
]

SMALL = {"hidden": (16,), "dropout": (0.1,), "learning_rate": 0.02, "epochs": 10, "device": "cpu"}
CLEAN = {"Item_Fat_Content": {"LF": "Low Fat", "reg": "Regular"}}
TARGET = "Item_Outlet_Sales"


def shop(n=400, seed=0):
    """A table with gaps and words, and whether the item sells."""
    rng = np.random.default_rng(seed)
    price = rng.gamma(4.0, 20.0, n)
    place = rng.choice(["City", "city ", "Village"], n)
    sells = price / 20.0 - 2.0 * (place == "Village") + rng.logistic(size=n) > 3.5
    price[rng.random(n) < 0.1] = np.nan
    table = pd.DataFrame({"price": price, "place": place, "open": rng.random(n) < 0.5})
    return table, np.where(sells, "sells", "stays")


def bigmart(rows=3000, seed=0):
    """Train and test rows of BigMart with the target cut at the train median."""
    with gzip.open(data_file("bigmart", "bigmart_train.csv.gz")) as file:
        table = pacsv.read_csv(file)
    order = np.random.default_rng(seed).permutation(table.num_rows)
    train, test = table.take(order[:rows]), table.take(order[rows:])
    cut = TargetCut().fit(train[TARGET])
    return train, cut.transform(train[TARGET]), test, cut.transform(test[TARGET])


@pytest.mark.parametrize(("estimator", "check"), CHECKS)
@pytest.mark.filterwarnings("ignore:the steer split has no row")
@pytest.mark.filterwarnings("ignore:the column 'x")
def test_scikit_learns_checks_pass(estimator, check):
    check(estimator)


def test_words_gaps_and_flags_are_learned_from():
    table, sells = shop(800)
    fitted = TabularClassifier(**SMALL).fit(table[:600], sells[:600])
    assert fitted.score(table[600:], sells[600:]) > (sells == "sells").mean() + 0.1
    assert fitted.classes_.tolist() == ["sells", "stays"]
    assert fitted.feature_names_in_.tolist() == ["price", "place", "open"]
    assert fitted.n_features_in_ == 3
    assert fitted.encoder_.get_feature_names_out().tolist() == [
        "price", "price missing", "place=City", "place=Village", "open",
    ]  # fmt: skip


def test_every_kind_of_table_gives_the_same_probabilities():
    table, sells = shop()
    expected = TabularClassifier(**SMALL).fit(table, sells).predict_proba(table)
    arrow = pa.Table.from_pandas(table, preserve_index=False)
    for other in (pl.from_arrow(arrow), arrow, arrow.to_pylist(), arrow.to_pydict()):
        fitted = TabularClassifier(**SMALL).fit(other, sells.tolist())
        assert np.array_equal(fitted.predict_proba(other), expected)


def test_tables_put_together_from_parts_are_learned_from():
    table, sells = shop()
    expected = TabularClassifier(**SMALL).fit(table, sells).predict_proba(table)
    whole = pd.concat([table[:150], table[150:]])
    for other in (whole, whole.astype({"place": "category"}), pl.from_pandas(whole)):
        fitted = TabularClassifier(**SMALL).fit(other, sells)
        assert np.array_equal(fitted.predict_proba(other), expected)


@pytest.mark.parametrize("hidden", [(8,), (33,), (16, 9)])
def test_a_row_alone_has_the_logits_that_it_has_in_company_but_for_rounding(hidden):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 30))
    chosen = {**SMALL, "hidden": hidden, "dropout": (0.0,) * len(hidden), "epochs": 1}
    fitted = TabularClassifier(**chosen).fit(X, X[:, 0] + rng.normal(size=600) > 0)
    together = fitted.predict_logits(X)
    alone = np.concatenate([fitted.predict_logits(row[None]) for row in X[::50]])
    assert alone == pytest.approx(together[::50], abs=2e-6)


def test_rows_are_scored_in_batches_of_one_size():
    table, sells = shop()
    fitted = TabularClassifier(**SMALL).fit(table, sells)
    seen = []
    fitted.model_.register_forward_pre_hook(lambda _, inputs: seen.append(len(inputs[0])))
    for rows in (1, 255, 256, 257, 400):
        assert len(fitted.predict_logits(table[:rows])) == rows
    assert set(seen) == {256}
    assert len(seen) == 7


def test_a_row_is_scored_the_same_alone_and_in_company():
    table, sells = shop(200)
    fitted = TabularClassifier(epochs=2, device="cpu").fit(table, sells)
    together = fitted.predict_logits(table)
    for start, stop in ((0, 1), (7, 9), (50, 115)):
        assert np.array_equal(fitted.predict_logits(table[start:stop]), together[start:stop])


def test_columns_are_found_by_name():
    table, sells = shop()
    fitted = TabularClassifier(**SMALL).fit(table, sells)
    turned = table[["open", "price", "place"]].assign(note="new")
    assert np.array_equal(fitted.predict_proba(turned), fitted.predict_proba(table))
    with refuses(InputError, "X lacks", "column 'place'"):
        fitted.predict(table[["open", "price"]])


def test_scikit_learns_search_and_cross_validation_run():
    table, sells = shop(300)
    assert cross_val_score(TabularClassifier(**SMALL), table, sells, cv=3).mean() > 0.6
    search = GridSearchCV(TabularClassifier(**SMALL), {"hidden": [(4,), (16,)]}, cv=2)
    assert search.fit(table, sells).best_params_["hidden"] in ((4,), (16,))


def test_a_search_over_numbers_of_numpy_runs():
    table, sells = shop(300)
    grid = {
        "hidden": [(np.int64(8),), (np.int64(4),)],
        "dropout": [(np.float32(0.25),)],
        "steer_share": np.array([0.25], dtype=np.float32),
        "batch_size": np.array([32]),
        "max_categories": np.array([2]),
        "epochs": np.array([2]),
        "learning_rate": np.array([0.02], dtype=np.float32),
        "seed": np.array([3]),
    }
    search = GridSearchCV(TabularClassifier(device="cpu"), grid, cv=2, error_score="raise")
    best = search.fit(table, sells).best_estimator_
    json.dumps(best.encoder_.to_dict())
    assert json.loads(json.dumps(best.model_.config)) == best.model_.config
    assert best.model_.config["dropout"] == [0.25]


def test_the_column_that_the_labels_are_called_after_is_refused():
    table, sells = shop()
    table["sells"] = sells
    with refuses(InputError, "X", "column 'sells'", "name of y"):
        TabularClassifier(**SMALL).fit(table, table["sells"])
    assert (
        TabularClassifier(**SMALL)
        .fit(table[["price"]], table["sells"])
        .score(table[["price"]], sells)
    )


def test_a_column_that_gives_the_labels_away_is_warned_of():
    table, sells = shop()
    table["sold"] = np.where(sells == "sells", 10.0, 1.0) + np.random.default_rng(0).random(400)
    with pytest.warns(UserWarning, match=r"'sold' alone separates the classes.*drop=\['sold'\]"):
        TabularClassifier(**SMALL).fit(table, sells)
    fitted = TabularClassifier(**SMALL, drop=["sold"]).fit(table, sells)
    assert "sold" not in fitted.encoder_.get_feature_names_out()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"price": np.inf}, ("X column 'price'", "row 0", "inf")),
        ({"day": pd.Timedelta("1D")}, ("X column 'day'", "duration", "numbers or dates")),
        ({"id": [f"item {i}" for i in range(400)]}, ("'id'", "nearly every row")),
    ],
)
def test_columns_that_are_no_features_are_refused(change, sentence):
    table, sells = shop()
    with refuses(InputError, *sentence):
        TabularClassifier(**SMALL).fit(table.assign(**change), sells)


@pytest.mark.data
def test_bigmart_is_learned_and_the_target_is_not_told():
    train, labels, test, truth = bigmart()
    with pytest.warns(UserWarning, match=f"the column '{TARGET}' alone separates"):
        TabularClassifier(**{**SMALL, "epochs": 1}, drop=["Item_Identifier"]).fit(train, labels)
    model = TabularClassifier(clean=CLEAN, drop=["Item_Identifier", TARGET], device="cpu")
    model.set_params(epochs=12).fit(train, labels)
    majority = max(np.mean(truth == name) for name in ("low", "high"))
    assert majority < 0.52
    assert model.score(test, truth) > majority + 0.25  # near 0.82
    assert "Item_Fat_Content=Low Fat" in model.encoder_.get_feature_names_out()


@pytest.mark.data
def test_changed_steer_and_test_rows_leave_the_encoder_as_it_is():
    train, labels, test, truth = bigmart(1500)
    options = {**SMALL, "epochs": 1, "clean": CLEAN, "drop": ["Item_Identifier", TARGET]}
    first = TabularClassifier(**options).fit(train, labels)
    frame = train.to_pandas()
    apart = first.steer_places_
    frame.loc[apart, "Item_Weight"] = 1e6
    frame.loc[apart, "Item_MRP"] = np.nan
    frame.loc[apart, "Outlet_Size"] = "Gigantic"
    second = TabularClassifier(**options).fit(frame, labels)
    assert second.encoder_.to_dict() == first.encoder_.to_dict()
    weights = np.delete(train["Item_Weight"].to_numpy(), apart)
    learned = {column.name: column for column in first.encoder_.columns_}
    assert learned["Item_Weight"].mean == pytest.approx(np.nanmean(weights), rel=1e-12)
    assert learned["Item_Weight"].scale == pytest.approx(np.nanstd(weights), rel=1e-12)
    given = TabularClassifier(**options).fit(train, labels, steer=(test, truth))
    fewer = TabularClassifier(**options).fit(train, labels, steer=(test.slice(100), truth[100:]))
    assert fewer.encoder_.to_dict() == given.encoder_.to_dict()
    before = given.encoder_.to_dict()
    given.predict(test)
    assert given.encoder_.to_dict() == before
