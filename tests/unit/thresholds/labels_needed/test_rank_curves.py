"""Curves that fit the rows."""

import numpy as np
import pytest

from calibrant.thresholds import RATES, Cost
from calibrant.thresholds.labels_needed.rank_curves import RankCurves, meets, sample_curves
from calibrant.thresholds.measures import Measures
from calibrant.thresholds.proof.ranked import RankedRows, rank_rows


def some_rows(n=2000, seed=0, digits=None, weights=None):
    rng = np.random.default_rng(seed)
    event = rng.random(n) < 0.3
    score = rng.normal(event * 2.0, 1.0)
    return rank_rows(score if digits is None else np.round(score, digits), event, weights)


def test_the_curve_of_a_world_is_found_again():
    rng = np.random.default_rng(1)
    place = np.sort(rng.random(50_000))
    logit = 1.0 - 1.2 * np.log(place / (1 - place))
    rows = RankedRows(-place, rng.random(50_000) < 1 / (1 + np.exp(-logit)))
    curves = sample_curves(rows, 200, rng)
    middle = (curves.edges[1:] + curves.edges[:-1]) / 2
    true = 1 / (1 + np.exp(-(1.0 - 1.2 * np.log(middle / (1 - middle)))))
    inner = (middle > 0.001) & (middle < 0.999)
    found = curves.rates[:, inner, 0]
    assert np.abs(found.mean(axis=0) - true[inner]).max() < 0.03
    low, high = np.quantile(found, [0.005, 0.995], axis=0)
    assert np.mean((low <= true[inner]) & (true[inner] <= high)) > 0.75


def test_few_rows_leave_much_open():
    spread = []
    for n in (60, 600, 6000):
        curves = sample_curves(some_rows(n), 200, np.random.default_rng(0))
        spread.append(curves.rates[:, np.searchsorted(curves.edges, 0.2) - 1].std())
    assert spread[0] > 2 * spread[1] > 4 * spread[2]


@pytest.mark.parametrize("digits", [None, 1])
@pytest.mark.parametrize("weighted", [False, True])
def test_cells_are_whole_ties_and_hold_every_row(digits, weighted):
    weights = np.random.default_rng(2).choice([1.0, 3.0], 2000) if weighted else None
    rows = some_rows(digits=digits, weights=weights)
    curves = sample_curves(rows, 3, np.random.default_rng(0))
    ends = np.round(curves.edges[1:] * rows.n).astype(int)
    assert np.isin(ends, rows.ends).all()
    assert curves.mass.sum() == pytest.approx(1)
    assert curves.mass.shape[1] == (2 if weighted else 1)
    middle = (curves.edges[1:] > 0.05) & (curves.edges[1:] < 0.95)
    assert (curves.tied[middle] == (digits is not None)).all()
    share = (curves.mass * curves.rates).sum(axis=(1, 2)).mean()
    assert share == pytest.approx(rows.positives / rows.n, abs=0.02)


def test_many_weights_become_a_few_kinds():
    rng = np.random.default_rng(3)
    weights = 1 + rng.random(2000)
    curves = sample_curves(some_rows(weights=weights), 2, rng)
    assert curves.weights.shape == (3,)
    assert curves.mass.sum(axis=0) @ curves.weights == pytest.approx(weights.mean())
    assert curves.largest_weight == weights.max()


def test_rates_of_a_curve_are_those_that_were_measured():
    """A version that repeats the rows' own shares meets a target where the estimates do."""
    rows = some_rows(400, weights=np.random.default_rng(4).choice([1.0, 2.0], 400))
    mass = np.zeros((400, 2))
    mass[np.arange(400), (rows.weight == 2.0).astype(int)] = 1 / 400
    rates = rows.event[None, :, None].astype(float).repeat(2, axis=2)
    own = RankCurves(
        np.arange(401) / 400, mass, rates, np.array([1.0, 2.0]), 2.0, np.zeros(400, dtype=bool)
    )
    measured = Measures(rows, np.arange(1, 401))
    for rate in (*RATES.values(), Cost(1, 3, 0.2, 0.1)):
        value = measured.estimate(rate)
        target = rate <= float(np.nanmedian(value)) + 1e-6
        where = np.nan_to_num(value, nan=9.0) <= target.value
        found = meets(own, target)[0]
        assert np.array_equal(found[:-1], where[:-1])  # at the last end a rate may have no rows
        assert found.any()
        assert not found.all()
