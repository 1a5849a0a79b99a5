"""CalibratedModel with cross_fit: folds by hand, honesty, weights, seeds."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from tests.sentences import refuses
from tests.unit.calibrators.model_rows import rows

from calibrant.calibrators import TemperatureScaling
from calibrant.calibrators.choice.trial import random_folds
from calibrant.calibrators.model import CalibratedModel
from calibrant.errors import InputError
from calibrant.metrics import nll

NAMES = list("abcdefghijkl")


@pytest.mark.parametrize("weighted", [False, True])
def test_cross_fit_by_hand(weighted):
    X, y = rows(3, 300)
    names = np.array(["red", "green", "blue"])[y]
    weights = np.random.default_rng(1).uniform(0.5, 2, len(y)) if weighted else None
    given = LogisticRegression(class_weight={"red": 1, "green": 2, "blue": 1})
    model = CalibratedModel(given, TemperatureScaling(), cross_fit=4, seed=7)
    model.fit(X, names, sample_weight=weights)

    _, codes = np.unique(names, return_inverse=True)
    fold = random_folds(codes, 4, np.random.default_rng(7))
    logits = np.empty((300, 3))
    for f in range(4):
        seen, held = fold != f, fold == f
        part = None if weights is None else weights[seen]
        logits[held] = clone(given).fit(X[seen], names[seen], part).decision_function(X[held])
    final = clone(given).fit(X, names, weights)
    by_hand = TemperatureScaling().fit(logits, codes, weights)
    assert model.calibrator_.temperature_ == pytest.approx(by_hand.temperature_, rel=1e-9)
    expected = by_hand.predict_proba(final.decision_function(X))
    assert model.predict_proba(X) == pytest.approx(expected, abs=1e-9)
    assert model.classes_.tolist() == ["blue", "green", "red"]
    assert not hasattr(given, "coef_")


def test_cross_fit_is_honest_where_training_rows_are_not():
    X, y = rows(n=900)
    forest = RandomForestClassifier(30, random_state=0)
    honest = CalibratedModel(forest, TemperatureScaling(), cross_fit=5).fit(X[:400], y[:400])
    seen = CalibratedModel(clone(forest).fit(X[:400], y[:400]), TemperatureScaling())
    seen.fit(X[:400], y[:400])
    fresh, labels = X[400:], y[400:]
    assert nll(labels, honest.predict_proba(fresh)) < nll(labels, seen.predict_proba(fresh))


@pytest.mark.parametrize(
    "table",
    [
        lambda X: pa.table(dict(zip(NAMES, X.T, strict=True))),
        lambda X: pa.record_batch(dict(zip(NAMES, X.T, strict=True))),
        lambda X: pl.DataFrame(X, schema=NAMES),
        lambda X: pd.DataFrame(X, columns=NAMES),
        lambda X: X.tolist(),
        csr_array,
    ],
    ids=["pyarrow", "pyarrow batch", "polars", "pandas", "list", "sparse"],
)
def test_tables_of_every_kind_are_divided_as_arrays_are(table):
    X, y = rows(n=200)
    weights = np.r_[np.ones(180), np.zeros(20)]
    model = CalibratedModel(LogisticRegression(), TemperatureScaling(), cross_fit=3)
    expected = clone(model).fit(X, y, weights).predict_proba(X)
    found = clone(model).fit(table(X), y, weights).predict_proba(table(X))
    assert found == pytest.approx(expected, abs=1e-6)


def test_weights_reach_only_estimators_that_take_them():
    X, y = rows(n=200)
    weights = np.linspace(0.1, 3, 200)
    neighbours = CalibratedModel(KNeighborsClassifier(), TemperatureScaling(), cross_fit=3)
    assert neighbours.fit(X, y, weights).predict_proba(X).shape == (200, 2)


def test_row_of_weight_zero_is_not_there():
    X, y = rows(n=200)
    weights = np.r_[np.ones(150), np.zeros(50)]
    model = CalibratedModel(LogisticRegression(), TemperatureScaling(), cross_fit=3)
    weighed = clone(model).fit(X, y, weights).predict_proba(X)
    assert np.array_equal(
        weighed, clone(model).fit(X[:150], y[:150], np.ones(150)).predict_proba(X)
    )


def test_seed_decides_the_folds():
    X, y = rows(n=120)

    def temperature(seed):
        model = CalibratedModel(LogisticRegression(), TemperatureScaling(), cross_fit=3, seed=seed)
        return model.fit(X, y).calibrator_.temperature_

    assert temperature(1) == temperature(1)
    assert temperature(1) != temperature(2)


def test_bad_rows_get_one_sentence():
    X, y = rows(n=60)
    model = CalibratedModel(LogisticRegression(), cross_fit=3)
    with pytest.raises(InputError, match="one class only, 0"):
        model.fit(X, np.zeros(60, int))
    with refuses(InputError, "at least 2 rows", "class, but 7", "7 has 1"):
        model.fit(X, np.where(np.arange(60) == 4, 7, y))
    with pytest.raises(InputError, match="y is empty"):
        model.fit(X[:0], y[:0])
    with pytest.raises(InputError, match="target y is None"):
        model.fit(X, None)
    with refuses(InputError, "sample_weight", "shape"):
        model.fit(X, y, np.ones(3))
    with refuses(ValueError, "inconsistent numbers", "samples"):
        model.fit(X[:-1], y)


def test_a_failed_fit_leaves_the_last_one():
    X, y = rows(n=120)
    model = CalibratedModel(LogisticRegression(), TemperatureScaling(), cross_fit=3).fit(X, y)
    before = model.predict_proba(X)
    with pytest.raises(InputError, match="objective"):
        model.set_params(calibrator__objective="none").fit(X[:60], y[:60])
    assert np.array_equal(model.predict_proba(X), before)
