"""BoostingClassifier: scikit-learn's contract, tables with gaps and words, known truths."""

import gzip
import json
import pickle
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pacsv
import pytest
from sklearn.base import clone
from sklearn.metrics import log_loss
from sklearn.utils.estimator_checks import estimator_checks_generator
from tests.data_sets import data_file
from tests.sentences import refuses

import calibrant
from calibrant import BoostingClassifier
from calibrant.boosting import objectives
from calibrant.calibrators import TemperatureScaling
from calibrant.convert import probs_from_logits
from calibrant.cores import usable_cores
from calibrant.data import TargetCut
from calibrant.data.encoders.column_warning import ColumnWarning
from calibrant.errors import InputError, MissingExtra, NotFitted
from calibrant.fitting.epoch_record import EpochRecord
from calibrant.fitting.steer_figures import steer_figures

# This check runs only where SCIPY_ARRAY_API was set before scipy was imported.
NOT_HERE = "check_array_api_input"
CHECKS = [
    pytest.param(estimator, check, id=" ".join([check.func.__name__, *map(str, check.keywords)]))
    for estimator, check in estimator_checks_generator(BoostingClassifier(n_jobs=1))
    if check.func.__name__ != NOT_HERE
]
FEW = {"n_estimators": 60, "n_jobs": 1}


def shop(n=1500, seed=0):
    """A table with gaps and words, whether the item sells, and the log-odds of it."""
    rng = np.random.default_rng(seed)
    price = rng.gamma(4.0, 20.0, n)
    place = rng.choice(["City", "city ", "Village"], n)
    odds = price / 20.0 - 2.0 * (place == "Village") - 3.5
    sells = odds + rng.logistic(size=n) > 0
    price[rng.random(n) < 0.1] = np.nan
    table = pd.DataFrame({"price": price, "place": place, "open": rng.random(n) < 0.5})
    return table, np.where(sells, "sells", "stays"), odds


def three(n=1500, seed=0):
    """Two numbers, and one of three classes."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    logits = np.column_stack([x[:, 0], x[:, 1], -x.sum(axis=1)]) * 2
    noisy = logits + rng.gumbel(size=logits.shape)
    return {"a": x[:, 0], "b": x[:, 1]}, np.array(["one", "two", "three"])[noisy.argmax(axis=1)]


@pytest.mark.parametrize(("estimator", "check"), CHECKS)
@pytest.mark.filterwarnings("ignore:the steer split has no row")
@pytest.mark.filterwarnings("ignore:the column 'x")
def test_scikit_learns_checks_pass(estimator, check):
    check(estimator)


def test_it_learns_numbers_gaps_and_words():
    table, sells, _ = shop()
    fresh, outcome, truth = shop(seed=1)
    model = BoostingClassifier(n_jobs=1).fit(table, sells)
    assert model.classes_.tolist() == ["sells", "stays"]
    probs = model.predict_proba(fresh)
    prior = log_loss(outcome, np.full(len(fresh), (outcome == "stays").mean()))
    best = log_loss(outcome == "sells", 1 / (1 + np.exp(-truth)))
    assert log_loss(outcome, probs) < prior - 0.6 * (prior - best)
    logits = model.predict_logits(fresh)
    assert logits.sum(axis=1) == pytest.approx(0.0, abs=1e-12)
    assert model.decision_function(fresh) == pytest.approx(
        np.diff(model.predict_logits(fresh))[:, 0]
    )
    assert (model.predict(fresh) == model.classes_[probs.argmax(axis=1)]).all()


def test_three_classes():
    table, labels = three()
    fresh, outcome = three(seed=1)
    model = BoostingClassifier(n_jobs=1).fit(table, labels)
    assert model.predict_logits(fresh).shape == (len(outcome), 3)
    assert log_loss(outcome, model.predict_proba(fresh)) < 0.62  # the true model has 0.54
    assert (model.predict(fresh) == outcome).mean() > 0.73


@pytest.mark.parametrize("rows", [shop, three])
@pytest.mark.parametrize("loss", objectives())
def test_every_objective_learns(loss, rows):
    table, labels = rows()[:2]
    fresh, outcome = rows(seed=1)[:2]
    model = BoostingClassifier(loss=loss, **FEW).fit(table, labels)
    codes = np.searchsorted(model.classes_, outcome)
    plain = BoostingClassifier(**FEW).fit(table, labels)
    expected = steer_figures(plain.predict_logits(fresh), codes).refinement
    assert steer_figures(model.predict_logits(fresh), codes).refinement < expected * 1.05
    history = model.loss_.history
    assert (history is not None) == (loss == "adafocal")
    if history is not None:
        assert len(history) == len(model.records_) - 1
        shown = json.loads(json.dumps(history.to_dict()))
        assert model.records_[-1].gammas == (min(shown["gamma"][-2]), max(shown["gamma"][-2]))


@pytest.mark.parametrize("loss", ["focal:gamma=3", "focal:gamma=5", "flsd", "adafocal"])
def test_focal_losses_learn_a_rare_class(loss):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4000, 3))
    odds = 3.0 * x[:, 0] - 7.0  # 3 % of the rows
    rare = (odds + rng.logistic(size=4000) > 0).astype(int)
    model = BoostingClassifier(loss=loss, **FEW).fit(x[:3000], rare[:3000])
    found = [record.refinement for record in model.records_]
    assert min(found) < 0.75 * found[0]
    truth = log_loss(rare[3000:], probs_from_logits(odds[3000:]))
    scaling = TemperatureScaling().fit(model.predict_logits(x[3000:]), rare[3000:])
    ours = log_loss(rare[3000:], scaling.predict_proba(model.predict_logits(x[3000:])))
    assert ours < 1.35 * truth


def test_a_constant_weight_changes_no_tree():
    table, labels, _ = shop()
    plain = BoostingClassifier(**FEW).fit(table, labels)
    heavy = BoostingClassifier(loss="ce:weight=[50,50]", **FEW).fit(table, labels)
    np.testing.assert_allclose(heavy.predict_proba(table), plain.predict_proba(table), atol=1e-9)


def test_the_same_table_in_every_form_gives_the_same_logits():
    table, sells, _ = shop(400)
    model = BoostingClassifier(**FEW).fit(table, sells)
    expected = model.predict_logits(table).tolist()
    columns = {name: table[name].tolist() for name in table}
    forms = [
        pl.from_pandas(table),
        pa.Table.from_pandas(table),
        columns,
        [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)],
        table[["open", "place", "price"]],
        table.astype({"place": "category"}),
    ]
    for form in forms:
        assert model.predict_logits(form).tolist() == expected
    again = BoostingClassifier(**FEW).fit(pl.from_pandas(table), sells)
    assert again.predict_logits(table).tolist() == expected


@pytest.mark.parametrize("loss", ["ce", "balanced_softmax"])
def test_a_new_category_counts_as_missing_and_is_left_unscored_by_a_bundle(loss):
    table, sells, _ = shop()
    table.loc[table.index[::7], "place"] = None
    model = BoostingClassifier(loss=loss, **FEW).fit(table, sells)
    places = [None, "Moon", "CITY", "CITY"]
    rows = {"price": [50.0, 50.0, 1e9, 50.0], "place": places, "open": [True] * 4}
    logits = model.predict_logits(rows)
    assert logits[0].tolist() == logits[1].tolist() != logits[3].tolist()
    scored = model.to_scorer().predict_logits(rows)
    assert scored[[0, 3]].tolist() == logits[[0, 3]].tolist()
    assert scored[1:3].tolist() == [[0.0, 0.0], [0.0, 0.0]]


@pytest.mark.parametrize("n_categories", [60, 600])
def test_categories_with_few_rows_are_learned(n_categories):
    """As well as their smoothed frequencies, the best there is without other columns."""
    rng = np.random.default_rng(0)
    effects = rng.normal(size=n_categories) * 2
    code = rng.integers(0, n_categories, 16 * n_categories + 4000)
    labels = (effects[code] + rng.logistic(size=len(code)) > 0).astype(int)
    train, test = slice(0, -4000), slice(-4000, None)
    table = {"code": [f"k{i}" for i in code], "noise": rng.normal(size=len(code))}
    head, tail = ({name: table[name][part] for name in table} for part in (train, test))
    model = BoostingClassifier(n_jobs=1, categories=["code"], max_categories=1000)
    logits = model.fit(head, labels[train]).predict_logits(tail)
    found = steer_figures(logits, labels[test]).refinement
    hits = np.bincount(code[train], labels[train], n_categories)
    share = (hits + 1) / (np.bincount(code[train], minlength=n_categories) + 2)
    assert found < 1.06 * log_loss(labels[test], share[code[test]])


def test_large_categories_are_set_apart_one_by_one():
    options = BoostingClassifier()._options()

    def found(n):
        parameters = options.parameters(n, 2)
        return parameters["max_cat_to_onehot"], parameters["min_data_per_group"]

    assert [found(n) for n in (20, 640, 1280, 10**6)] == [(8, 1), (10, 15), (20, 15), (64, 15)]


def test_the_best_evaluation_is_kept():
    table, sells, _ = shop(600)
    steer = shop(500, seed=2)
    model = BoostingClassifier(learning_rate=0.3, patience=50, n_jobs=1)
    model.fit(table, sells, steer=steer[:2])
    refinements = [record.refinement for record in model.records_]
    assert model.best_epoch_ == int(np.argmin(refinements)) < len(refinements) - 1
    assert model.model_.n_rounds == model.best_epoch_ * 10
    assert model.why_ == "patience"
    codes = np.searchsorted(model.classes_, steer[1])
    found = steer_figures(model.predict_logits(steer[0]), codes)
    assert found.refinement == pytest.approx(refinements[model.best_epoch_], rel=1e-9)
    best = model.records_[model.best_epoch_]
    assert found.f1 == pytest.approx(best.f1)
    assert list(best.to_dict()) == list(EpochRecord(*range(10)).to_dict())
    assert [record.epoch for record in model.records_] == list(range(len(refinements)))


def test_the_last_round_is_kept_whatever_the_least_gain():
    table, sells, _ = shop(400)
    model = BoostingClassifier(choose_by="last", min_delta=3.0, **FEW).fit(table, sells)
    assert (model.model_.n_rounds, model.best_epoch_) == (60, len(model.records_) - 1)


@pytest.mark.parametrize(("every", "updates"), [("", 6), ("30", 2), ("7", 8), ("60", 1)])
def test_adafocal_is_updated_every_so_many_rounds(every, updates):
    table, sells, _ = shop()
    loss = f"adafocal:update_every={every}" if every else "adafocal"
    model = BoostingClassifier(loss=loss, patience=None, **FEW).fit(table, sells)
    assert len(model.loss_.history) == updates
    same = BoostingClassifier(loss="adafocal:update_every=10", patience=None, **FEW)
    at_evaluations = same.fit(table, sells).model_.text == model.model_.text
    assert at_evaluations == (every == "")


def test_all_cores_may_be_asked_for_as_in_scikit_learn():
    table, sells, _ = shop(2000)
    options = {"n_estimators": 20, "n_jobs": -1}
    model = BoostingClassifier(**options).fit(table, sells)
    assert model.options_.n_jobs == usable_cores()
    one = BoostingClassifier(**{**options, "n_jobs": 1}).fit(table, sells)
    assert model.predict_logits(table).tolist() == one.predict_logits(table).tolist()


def test_training_loss_falls_and_is_the_loss_itself():
    table, sells, _ = shop(600)
    model = BoostingClassifier(loss="focal:gamma=2", choose_by="last", **FEW).fit(table, sells)
    losses = [record.loss for record in model.records_]
    assert losses == sorted(losses, reverse=True)
    counts = np.bincount(np.searchsorted(model.classes_, sells)[~_split_off(model, sells)])
    p = counts / counts.sum()
    constants = np.linspace(0.001, 0.999, 9999)[:, None] * [1, -1] + [0, 1]
    best = (-p * (1 - constants) ** 2 * np.log(constants)).sum(axis=1).min()
    assert losses[0] == pytest.approx(best, rel=1e-6)
    assert model.best_epoch_ == len(losses) - 1
    assert model.model_.n_rounds == 60


def _split_off(model, labels):
    marked = np.zeros(len(labels), dtype=bool)
    marked[model.steer_places_] = True
    return marked


def test_without_signal_the_prior_remains():
    rng = np.random.default_rng(0)
    table, labels = rng.normal(size=(2000, 4)), rng.random(2000) < 0.1
    model = BoostingClassifier(n_jobs=1).fit(table, labels)
    probs = model.predict_proba(rng.normal(size=(500, 4)))
    assert np.abs(probs[:, 1] - 0.1).mean() < 0.03
    constant = BoostingClassifier(n_jobs=1).fit(np.ones((100, 2)), [0, 1] * 50)
    assert constant.predict_logits(np.ones((1, 2))).tolist() == [[0.0, 0.0]]
    assert (constant.why_, constant.n_weights_) == ("no split", 0)


@pytest.mark.parametrize("loss", ["ce", "adafocal"])
def test_the_same_seed_gives_the_same_bits_with_any_number_of_threads(loss):
    table, sells, _ = shop()
    options = {"loss": loss, "n_estimators": 40, "subsample": 0.7, "colsample_bytree": 0.7}
    models = [BoostingClassifier(n_jobs=jobs, **options).fit(table, sells) for jobs in (1, 2, 2)]
    logits = [model.predict_logits(table).tolist() for model in models]
    assert logits[0] == logits[1] == logits[2]
    other = BoostingClassifier(n_jobs=1, seed=1, **options).fit(table, sells)
    assert other.predict_logits(table).tolist() != logits[0]


@pytest.mark.parametrize("loss", ["ce:weight=balanced", "balanced_softmax", "logit_adjustment"])
def test_the_shift_of_the_loss_is_removed(loss):
    table, labels = imbalanced()
    model = BoostingClassifier(loss=loss, **FEW).fit(table, labels)
    assert model.log_shift_ is not None
    assert model.predict_proba(table)[:, 1].mean() == pytest.approx(labels.mean(), abs=0.03)
    shifted = BoostingClassifier(loss=loss, correct_prior=False, **FEW).fit(table, labels)
    assert shifted.log_shift_ is None
    assert shifted.predict_proba(table)[:, 1].mean() > 2 * labels.mean()


def imbalanced(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    return {"a": x[:, 0], "b": x[:, 1]}, x[:, 0] + rng.logistic(size=n) > 3.5


@pytest.mark.parametrize("how", ["over", "under"])
def test_resampling_is_undone(how):
    table, labels = imbalanced()
    model = BoostingClassifier(resample=how, **FEW).fit(table, labels)
    assert model.log_shift_[1] > model.log_shift_[0]
    assert model.predict_proba(table)[:, 1].mean() == pytest.approx(labels.mean(), abs=0.03)


def test_weights_of_a_focal_loss_are_warned_of():
    table, labels = imbalanced(500)
    with pytest.warns(UserWarning, match="class weights"):
        BoostingClassifier(loss="focal:weight=balanced", **FEW).fit(table, labels)


def test_contributions_add_up_to_the_logits():
    for rows, loss in ((shop, "balanced_softmax"), (three, "ce")):
        table, labels = rows(400)[:2]
        model = BoostingClassifier(loss=loss, **FEW).fit(table, labels)
        found = model.explain(table)
        assert found.rows[0].parts == tuple(table)
        assert np.abs(found.logits - model.predict_logits(table)).max() < 1e-6
        assert model.to_scorer().explain(table).to_dict() == found.to_dict()


def test_contributions_of_an_additive_model_are_its_terms():
    rng = np.random.default_rng(0)
    a, b = rng.choice([0.0, 1.0], 4000), rng.choice([0.0, 1.0], 4000)
    labels = 2 * a - 1 + 0 * b + rng.logistic(size=4000) > 0
    plain = {"colsample_bytree": 1.0, "subsample": 1.0, "reg_lambda": 0.0}
    model = BoostingClassifier(choose_by="last", n_estimators=300, n_jobs=1, **plain)
    model.fit({"a": a, "b": b}, labels)
    row = model.explain({"a": [0.0, 1.0], "b": [1.0, 1.0]})
    effect = np.diff([each.values[1] - each.values[0] for each in row.rows], axis=0)[0]
    assert effect == pytest.approx([2.0, 0.0], abs=0.25)


def test_a_model_survives_pickle_and_clone():
    table, sells, _ = shop(400)
    model = BoostingClassifier(**FEW).fit(table, sells)
    again = pickle.loads(pickle.dumps(model))
    assert again.predict_logits(table).tolist() == model.predict_logits(table).tolist()
    with pytest.raises(NotFitted):
        clone(model).predict(table)


def test_nothing_is_printed(capfd):
    table, sells, _ = shop(400)
    BoostingClassifier(**FEW).fit(table, sells).predict(table)
    BoostingClassifier(**FEW).fit(np.ones((30, 2)), [0, 1, 1] * 10)
    assert capfd.readouterr() == ("", "")


def test_a_column_that_gives_the_answer_away_is_warned_of():
    table, sells, _ = shop(400)
    with pytest.warns(ColumnWarning, match="leakage.*sold"):
        BoostingClassifier(**FEW).fit({**table, "sold": sells}, sells)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("n_estimators", 0),
        ("learning_rate", 0.0),
        ("learning_rate", "fast"),
        ("num_leaves", 1),
        ("min_child_samples", 0),
        ("reg_lambda", -1.0),
        ("colsample_bytree", 0.0),
        ("subsample", 1.5),
        ("cat_smooth", float("nan")),
        ("max_bin", 1),
        ("evaluate_every", True),
        ("patience", 0),
        ("min_delta", -0.1),
        ("choose_by", "luck"),
        ("seed", -1),
        ("n_jobs", 0),
        ("n_jobs", -2),
        ("resample", "smote"),
        ("steer_share", 1.0),
        ("loss", "brier"),
        ("max_categories", 0),
    ],
)
def test_options_are_checked(option, value):
    table, sells, _ = shop(100)
    with refuses(InputError, option, str(value)):
        BoostingClassifier(**{option: value}).fit(table, sells)


def test_hostile_rows_are_refused():
    table, sells, _ = shop(100)
    model = BoostingClassifier(**FEW).fit(table, sells)
    with refuses(InputError, "price"):
        model.predict(table.drop(columns="price"))
    with refuses(InputError, "price", "infinity"):
        model.predict(table.assign(price=np.inf))
    with refuses(InputError, "price", "text"):
        model.predict(table.assign(price="dear"))
    with refuses(InputError, "no rows"):
        model.predict(table[:0])
    with refuses(InputError, "class"):
        model.fit(table, ["same"] * 100)


def test_extreme_numbers_are_scored_like_the_farthest_of_the_train_rows():
    table, sells, _ = shop()
    model = BoostingClassifier(**FEW).fit(table, sells)
    rows = {"price": [1e300, 1e5, -1e300], "place": ["City"] * 3, "open": [True] * 3}
    logits = model.predict_logits(rows)
    assert logits[0].tolist() == logits[1].tolist()
    assert np.isfinite(logits).all()


def test_without_lightgbm_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    with refuses(MissingExtra, "calibrant[boosting]"):
        BoostingClassifier().fit({"a": [1.0, 2.0]}, [0, 1])


@pytest.mark.data
def test_it_beats_the_prior_by_far_on_real_sales():
    with gzip.open(data_file("bigmart", "bigmart_train.csv.gz")) as file:
        table = pacsv.read_csv(file)
    order = np.random.default_rng(0).permutation(table.num_rows)
    train, test = table.take(order[:3000]), table.take(order[3000:])
    cut = TargetCut().fit(train["Item_Outlet_Sales"])
    model = BoostingClassifier(drop=["Item_Outlet_Sales"], n_jobs=1)
    model.fit(train, cut.transform(train["Item_Outlet_Sales"]))
    codes = np.searchsorted(model.classes_, cut.transform(test["Item_Outlet_Sales"]))
    probs = probs_from_logits(model.predict_logits(test))
    assert log_loss(codes, probs) < 0.5


def test_the_name_is_exported():
    assert calibrant.BoostingClassifier is BoostingClassifier
    assert "BoostingClassifier" in dir(calibrant)
