"""Synthetic worlds: labels, scores and the true calibration error."""

import time

import numpy as np
import pytest
from tests.sentences import refuses

from calibrant.errors import InputError
from calibrant.testing.worlds import WORLDS, Draw, World, posterior_error, shifted_world, true_ce

ALL = [*WORLDS.values(), shifted_world(0.03)]
NAMES = [world.name for world in ALL]
BINARY = [world for world in WORLDS.values() if world.n_classes == 2]

each_world = pytest.mark.parametrize("world", ALL, ids=NAMES)


def matrix(array):
    return np.column_stack([1 - array, array]) if array.ndim == 1 else array


def two_sided(n, rng):
    """A model that predicts 0.5 for every row, while the posterior is 0.181 or 0.819."""
    posterior = np.where(rng.random(n) < 0.5, 0.181, 0.819)
    labels = (rng.random(n) < posterior).astype(np.int64)
    return Draw(labels, np.full(n, 0.5), posterior)


CONSTANT = World("constant", 2, "Perfectly calibrated and uninformative.", two_sided)


def test_registry():
    assert set(WORLDS) == {
        "binary",
        "calibrated",
        "multiclass",
        "calibrated_multiclass",
        "long_tailed",
        "tied",
        "saturated",
        "rare",
    }
    assert all(name == world.name and world.description for name, world in WORLDS.items())


@each_world
def test_shapes(world, subtests):
    for n in [1, 50, 333]:
        with subtests.test(f"{n} rows"):
            draw = world.draw(n, 0)
            shape = (n,) if world.n_classes == 2 else (n, world.n_classes)
            assert draw.probs.shape == draw.posterior.shape == shape
            assert draw.labels.shape == (n,)
            assert draw.labels.dtype.kind == "i"
            assert 0 <= draw.labels.min() <= draw.labels.max() < world.n_classes
            for values in (draw.probs, draw.posterior):
                assert values.min() >= 0.0
                assert values.max() <= 1.0
                assert matrix(values).sum(axis=1) == pytest.approx(np.ones(n))


@each_world
def test_seed_decides(world):
    a, b, c = world.draw(200, 3), world.draw(200, np.random.default_rng(3)), world.draw(200, 4)
    assert np.array_equal(a.labels, b.labels)
    assert np.array_equal(a.probs, b.probs)
    assert np.array_equal(a.posterior, b.posterior)
    assert not np.array_equal(a.posterior, c.posterior)


def test_generator_is_advanced():
    rng = np.random.default_rng(0)
    first, second = WORLDS["binary"].draw(100, rng), WORLDS["binary"].draw(100, rng)
    assert not np.array_equal(first.probs, second.probs)


@each_world
def test_labels_follow_the_posterior(world):
    draw = world.draw(100_000, 11)
    eta = matrix(draw.posterior)
    hit = np.eye(world.n_classes)[draw.labels]
    # Per class, over all rows and over the rows on either side of the median posterior.
    for k in range(world.n_classes):
        high = eta[:, k] > np.median(eta[:, k])
        for rows in (np.ones(len(eta), bool), high, ~high):
            observed, p = hit[rows, k].sum(), eta[rows, k]
            z = (observed - p.sum()) / np.sqrt(max((p * (1 - p)).sum(), 1.0))
            assert abs(z) < 5


@each_world
def test_a_million_rows_are_quick(world):
    start = time.perf_counter()
    assert len(world.draw(1_000_000, 0).labels) == 1_000_000
    assert time.perf_counter() - start < 30  # about 2 s at most on one slow core


def test_base_rates():
    def rate(name):
        return WORLDS[name].draw(200_000, 5).labels.mean()

    assert rate("binary") == pytest.approx(0.16, abs=0.005)
    assert rate("rare") == pytest.approx(0.01, abs=0.001)


def test_long_tail_is_zipf():
    counts = np.bincount(WORLDS["long_tailed"].draw(200_000, 5).labels, minlength=20)
    zipf = 1 / np.arange(1, 21)
    assert counts / 200_000 == pytest.approx(zipf / zipf.sum(), abs=0.005)


@pytest.mark.parametrize("name", ["calibrated", "calibrated_multiclass"])
def test_calibrated_worlds_have_no_error(name):
    draw = WORLDS[name].draw(1000, 0)
    assert np.array_equal(draw.probs, draw.posterior)
    assert draw.probs is not draw.posterior
    assert true_ce(WORLDS[name]) == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("gap", [0.0, 0.03, 0.1])
@pytest.mark.parametrize("target", ["positive", "top-label"])
def test_shifted_has_its_gap(gap, target):
    # Only the bin that straddles 0.5 loses: at most 1 / 400 of the gap twice over.
    assert true_ce(shifted_world(gap), target=target) == pytest.approx(gap, rel=0.005)
    assert posterior_error(shifted_world(gap).draw(50, 0)) == pytest.approx(gap)


@pytest.mark.parametrize(
    "name", ["binary", "multiclass", "long_tailed", "tied", "saturated", "rare"]
)
def test_over_confident_worlds(name):
    draw = WORLDS[name].draw(200_000, 2)
    probs, eta = matrix(draw.probs.astype(float)), matrix(draw.posterior)
    assert probs.max(axis=1).mean() > eta.max(axis=1).mean()
    assert true_ce(draw) > 0.001


@pytest.mark.parametrize("world", BINARY, ids=[w.name for w in BINARY])
def test_monotone_scores_have_both_errors_equal(world):
    # A score that is a function of the posterior hides nothing, so the two errors meet,
    # but for the rows that rounding has thrown together.
    draw = world.draw(300_000, 8)
    assert true_ce(draw) <= posterior_error(draw) + 1e-9
    assert true_ce(draw) == pytest.approx(posterior_error(draw), abs=0.002)


def test_constant_model_is_calibrated_and_wrong():
    assert true_ce(CONSTANT) == pytest.approx(0.0, abs=0.002)
    assert posterior_error(CONSTANT.draw(1000, 0)) == pytest.approx(0.319)


def test_true_error_by_hand():
    # 0.6 and 0.9 a thousand times each; the mean posteriors are 0.5 and 0.95.
    probs = np.repeat([0.6, 0.9], 1000)
    posterior = np.concatenate([np.tile([0.2, 0.8], 500), np.full(1000, 0.95)])
    draw = Draw(np.zeros(2000, np.int64), probs, posterior)
    assert true_ce(draw) == pytest.approx((0.1 + 0.05) / 2)
    assert posterior_error(draw) == pytest.approx((0.3 + 0.05) / 2)


def test_posterior_error_averages_all_entries():
    draw = Draw(np.array([0]), np.array([[0.5, 0.3, 0.2]]), np.array([[0.2, 0.6, 0.2]]))
    assert posterior_error(draw) == pytest.approx(0.2)


def test_tied_scores_are_tied():
    probs = WORLDS["tied"].draw(10_000, 0).probs
    assert set(probs) <= {k / 20 for k in range(21)}
    assert len(set(probs)) > 15


def test_saturated_scores_are_saturated():
    draw = WORLDS["saturated"].draw(100_000, 0)
    assert draw.probs.dtype == np.float32
    assert 0.2 < (draw.probs == 0).mean() < 0.3
    assert 0.2 < (draw.probs == 1).mean() < 0.3
    assert draw.posterior[draw.probs == 0].mean() > 0.05
    assert draw.posterior[draw.probs == 1].mean() < 0.95


def test_rare_world_can_reach_high_precision():
    draw = WORLDS["rare"].draw(200_000, 0)
    assert draw.posterior[draw.probs > 0.9].mean() > 0.85


def test_bad_arguments_are_refused():
    with refuses(InputError, "n", "at least 1"):
        WORLDS["binary"].draw(0, 0)
    with pytest.raises(InputError, match=r"\[0, 0.5\]"):
        shifted_world(0.6)
    with pytest.raises(InputError, match="200000"):
        true_ce(WORLDS["binary"], n=1000)
    with pytest.raises(InputError, match="needs two classes"):
        true_ce(WORLDS["multiclass"], target="positive")
    with pytest.raises(InputError, match="classwise"):
        true_ce(WORLDS["multiclass"], target="classwise")
