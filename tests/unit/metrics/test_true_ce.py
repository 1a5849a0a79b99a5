"""True calibration error: by hand, of constant models, and in worlds with known truth."""

import numpy as np
import pyarrow as pa
import pytest

from calibrant import testing
from calibrant.errors import InputError
from calibrant.metrics.true_ce import true_ce


def test_by_hand_with_two_bins():
    posterior = [[0.5, 0.5, 0.0], [0.2, 0.6, 0.2], [0.9, 0.0, 0.1], [0.1, 0.1, 0.8]]
    probs = [[0.5, 0.3, 0.2], [0.1, 0.6, 0.3], [0.8, 0.1, 0.1], [0.0, 0.1, 0.9]]
    # confidences 0.5, 0.6 | 0.8, 0.9 with posteriors 0.5, 0.6 | 0.9, 0.8
    assert true_ce(posterior, probs, n_bins=2) == pytest.approx(0.0)
    assert true_ce(posterior, probs, n_bins=4) == pytest.approx((0.1 + 0.1) / 4)


def test_tables_with_the_same_columns_may_have_them_in_any_order():
    rng = np.random.default_rng(0)
    posterior, probs = rng.dirichlet(np.ones(3), 300), rng.dirichlet(np.ones(3), 300)
    truth, predicted = (pa.table(dict(zip("abc", p.T, strict=True))) for p in (posterior, probs))
    assert true_ce(truth, predicted.select(["c", "a", "b"])) == true_ce(posterior, probs)


def test_a_calibrated_constant_model_has_no_error():
    posterior = np.random.default_rng(0).dirichlet(np.ones(4), 5000)
    constant = np.tile(posterior.mean(axis=0), (5000, 1))
    assert true_ce(posterior, constant) == pytest.approx(0.0, abs=1e-12)
    assert true_ce(posterior, posterior) == 0.0


def test_a_constant_model_that_is_off_has_that_error():
    posterior = np.random.default_rng(0).beta(2, 2, 3000)
    off = np.full(3000, posterior.mean() + 0.2)
    assert true_ce(posterior, off) == pytest.approx(0.2, abs=1e-9)


@pytest.mark.parametrize("gap", [0.01, 0.05])
def test_a_world_with_a_stated_gap(gap):
    draw = testing.shifted_world(gap).draw(200_000, 1)
    assert true_ce(draw.posterior, draw.probs) == pytest.approx(gap, rel=0.02)


@pytest.mark.parametrize("name", sorted(testing.WORLDS))
def test_the_worlds_of_testing_agree(name):
    draw = testing.WORLDS[name].draw(300_000, 2)
    theirs = testing.true_ce(draw, target="top-label")
    assert true_ce(draw.posterior, draw.probs, n_bins=300) == pytest.approx(theirs, abs=3e-4)


def test_two_columns_say_the_same_as_one():
    draw = testing.WORLDS["binary"].draw(20_000, 3)
    two = [np.column_stack([1 - v, v]) for v in (draw.posterior, draw.probs)]
    assert true_ce(*two, n_bins=20) == pytest.approx(
        true_ce(draw.posterior, draw.probs, n_bins=20), abs=1e-12
    )


def test_the_order_of_rows_and_of_classes_does_not_matter():
    draw = testing.WORLDS["multiclass"].draw(20_000, 4)
    order = np.random.default_rng(0).permutation(20_000)
    value = true_ce(draw.posterior, draw.probs)
    assert true_ce(draw.posterior[order], draw.probs[order]) == pytest.approx(value, abs=1e-12)
    turned = [v[:, ::-1] for v in (draw.posterior, draw.probs)]
    assert true_ce(*turned) == pytest.approx(value, abs=1e-12)


def test_bad_arguments():
    with pytest.raises(InputError, match="same shape"):
        true_ce([0.5, 0.5], [[0.5, 0.5], [0.5, 0.5]])
    with pytest.raises(InputError, match="n_bins"):
        true_ce([0.5], [0.5], n_bins=0)
    with pytest.raises(InputError, match="posterior row 0 sums"):
        true_ce([[0.5, 0.6]], [[0.5, 0.5]])
    with pytest.raises(InputError, match="empty"):
        true_ce([], [])
