"""NumberColumn: filled with the train mean, standardised by the train rows."""

import json

import numpy as np
import pytest
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.sentences import refuses

from calibrant.data.encoders.number_column import NumberColumn
from calibrant.errors import InputError


def test_mean_and_scale_by_hand():
    column = NumberColumn.learn("x", np.array([2.0, 4.0, np.nan, 6.0]))
    assert column.mean == 4.0
    assert column.scale == pytest.approx(np.sqrt(8 / 3))
    encoded = column.encode(np.array([4.0, np.nan, 6.0]))
    assert encoded.dtype == np.float32
    assert encoded == pytest.approx(np.array([[0, 0], [0, 1], [2 / np.sqrt(8 / 3), 0]]))


def test_features_are_those_of_scikit_learn_standardised_before_the_mean_is_filled_in():
    rng = np.random.default_rng(0)
    train, other = rng.gamma(2.0, 50.0, 500), rng.gamma(2.0, 60.0, 200)
    train[rng.random(500) < 0.2] = np.nan
    other[rng.random(200) < 0.2] = np.nan
    column = NumberColumn.learn("x", train)
    peer = make_pipeline(StandardScaler(), SimpleImputer(add_indicator=True))
    peer.fit(train[:, None])
    assert column.encode(other) == pytest.approx(peer.transform(other[:, None]), abs=1e-5)


def test_a_shift_and_a_stretch_of_the_column_change_nothing():
    values = np.random.default_rng(1).normal(size=100)
    plain = NumberColumn.learn("x", values).encode(values)
    moved = NumberColumn.learn("x", 1e6 + 1e3 * values).encode(1e6 + 1e3 * values)
    assert moved == pytest.approx(plain, abs=1e-6)


def test_nothing_missing_in_train_makes_no_indicator_and_a_later_gap_is_the_mean():
    column = NumberColumn.learn("x", np.array([1.0, 3.0]))
    assert column.features == ("x",)
    assert column.encode(np.array([np.nan])).tolist() == [[0.0]]


def test_a_constant_column_becomes_zero_for_any_value():
    column = NumberColumn.learn("x", np.full(7, 0.1))
    assert column.mean == 0.1
    assert column.encode(np.array([0.1, 5.0, np.nan])).tolist() == [[0.0]] * 3


def test_huge_and_tiny_values_do_not_overflow():
    for size in (1e300, 1e-300):
        column = NumberColumn.learn("x", size * np.array([1.0, 2.0, 3.0]))
        assert column.encode(size * np.array([1.0, 3.0])) == pytest.approx(
            np.array([[-np.sqrt(1.5)], [np.sqrt(1.5)]])
        )


def test_a_column_without_any_value_is_refused():
    with refuses(InputError, "'x' has no value in any of the 2 train rows", "drop"):
        NumberColumn.learn("x", np.array([np.nan, np.nan]))


def test_a_value_absurdly_far_from_the_train_rows_is_refused_with_its_row():
    column = NumberColumn.learn("x", np.array([1.0, 2.0]))
    with refuses(InputError, "column 'x' row 1 is 1e+40"):
        column.encode(np.array([1.0, 1e40]))


def test_what_was_learned_survives_json_to_the_bit():
    column = NumberColumn.learn("x", np.random.default_rng(2).normal(size=33))
    assert NumberColumn.from_dict(json.loads(json.dumps(column.to_dict()))) == column


@pytest.mark.parametrize("far", [1e300, -1e12])
@pytest.mark.parametrize("many", [1, 5])
def test_a_value_that_would_erase_all_others_is_refused(far, many):
    values = np.random.default_rng(0).normal(size=3000)
    values[:many] = far
    with refuses(InputError, "column 'x'", f"{far:g},", "correct that value"):
        NumberColumn.learn("x", values)


def test_heavy_tails_and_rare_values_are_no_error():
    rng = np.random.default_rng(0)
    for values in (
        np.exp(3 * rng.normal(size=3000)),
        np.r_[np.zeros(2999), 1e12],
        rng.pareto(1, 3000),
    ):
        assert NumberColumn.learn("x", values).scale > 0


def test_limits_by_hand():
    # 18 to 90 lie 72 apart: -54 and 162, which have two digits of 72 already.
    column = NumberColumn.learn("age", np.arange(18.0, 91.0))
    assert (column.least, column.most) == (-54.0, 162.0)
    far = column.is_far(np.array([-54.1, -54.0, 40.0, 162.0, 162.1, np.nan]))
    assert far.tolist() == [True, False, False, False, True, False]


def test_limits_are_rounded_outwards_and_name_no_value():
    rng = np.random.default_rng(0)
    for scale in (1e-9, 1.0, 1e9):
        values = scale * rng.normal(size=50)
        column = NumberColumn.learn("x", values)
        low, high = values.min(), values.max()
        span = high - low
        assert low - 1.1 * span <= column.least <= low - span
        assert high + span <= column.most <= high + 1.1 * span
        digit = 10.0 ** (np.floor(np.log10(span)) - 1)
        assert column.least / digit == pytest.approx(round(column.least / digit), abs=1e-6)


@pytest.mark.parametrize("draw", ["normal", "standard_cauchy", "uniform", "lognormal"])
def test_new_values_of_the_same_kind_are_hardly_ever_far(draw):
    rng, n, found = np.random.default_rng(0), 100, []
    for _ in range(400):
        column = NumberColumn.learn("x", getattr(rng, draw)(size=n))
        found.append(column.is_far(getattr(rng, draw)(size=2000)).mean())
    assert np.mean(found) < 1 / n


@pytest.mark.parametrize(
    "values",
    [
        np.arange(19.0),
        np.full(50, 3.0),
        1e308 * np.linspace(-1, 1, 50),
        np.linspace(0, 8.987e307, 50),
    ],
)
def test_without_limits_nothing_is_far(values):
    column = NumberColumn.learn("x", values)
    assert (column.least, column.most) == (None, None)
    assert not column.is_far(np.array([-1e300, 1e300])).any()


def test_columns_saved_before_there_were_limits_have_none():
    saved = NumberColumn.learn("x", np.arange(30.0)).to_dict()
    assert NumberColumn.from_dict(saved).most == 58.0
    del saved["least"], saved["most"]
    assert not NumberColumn.from_dict(saved).is_far(np.array([1e9])).any()
