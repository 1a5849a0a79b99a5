"""The logistic fit behind Platt, beta and quadratic scaling: by hand, by search, at its limits."""

import numpy as np
import pytest
from scipy.optimize import minimize

from calibrant.calibrators.fits.logistic import fit_logistic, platt_targets

NO_BOUND = -np.inf


def loss(features, targets, weights, theta):
    """NLL written as plainly as its formula."""
    eta = features @ theta
    return float(np.average(np.logaddexp(0.0, eta) - targets * eta, weights=weights))


def searched(features, targets, weights, lowest):
    """Return the lowest NLL that L-BFGS-B finds from ten starts, in features of size 1."""
    size = np.abs(features).max(axis=0)
    x, mass = features / size, np.ones(len(targets)) if weights is None else weights

    def objective(theta):
        slack = mass / mass.sum() * (0.5 + 0.5 * np.tanh(x @ theta / 2) - targets)
        return loss(x, targets, weights, theta), x.T @ slack

    bounds = [
        (None if low == NO_BOUND else low * s, None) for low, s in zip(lowest, size, strict=True)
    ]
    rng = np.random.default_rng(0)
    starts = [np.zeros(len(size)), *rng.normal(size=(9, len(size))) * 10 ** rng.uniform(0, 3)]
    options = {"maxiter": 10_000, "maxfun": 20_000, "ftol": 1e-16, "gtol": 1e-13}
    tries = [
        minimize(objective, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
        for start in starts
    ]
    return min(found.fun for found in tries)


def line(scores):
    return np.column_stack([scores, np.ones(len(scores))])


def parabola(scores):
    return np.column_stack([scores * scores, scores, np.ones(len(scores))])


def drawn(n, seed, slope=2.0):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=n)
    return z, (rng.random(n) < 1 / (1 + np.exp(-slope * z + 0.3))).astype(float)


def fitted(features, targets, weights=None, *, lowest=None):
    d = features.shape[1]
    start = np.zeros(d)
    start[max(0, d - 2)] = 1.0
    lowest = np.full(d, NO_BOUND) if lowest is None else np.array(lowest)
    return fit_logistic(features, targets, weights, start=start, lowest=lowest)


def test_platt_targets_by_hand():
    events = np.array([True, True, True, False])
    assert platt_targets(events, None, smooth=True) == pytest.approx([0.8, 0.8, 0.8, 1 / 3])
    weighted = platt_targets(events, np.array([1.0, 2.0, 0.5, 4.0]), smooth=True)
    assert weighted == pytest.approx([4.5 / 5.5, 4.5 / 5.5, 4.5 / 5.5, 1 / 6])
    assert platt_targets(events, None, smooth=False).tolist() == [1, 1, 1, 0]


def test_an_intercept_alone_is_the_log_odds_of_the_mean():
    found = fit_logistic(
        np.ones((8, 1)),
        np.array([1.0, 0, 0, 0, 0, 0, 0, 1.0]),
        None,
        start=np.zeros(1),
        lowest=np.array([NO_BOUND]),
    )
    assert found == pytest.approx([np.log(2 / 6)], abs=1e-12)


def test_two_scores_make_a_line_through_two_frequencies():
    scores = np.array([-2.0] * 5 + [1.0] * 5)
    targets = np.array([1.0, 0, 0, 0, 0, 1, 1, 1, 0, 0])
    low, high = np.log(1 / 4), np.log(3 / 2)
    found = fitted(line(scores), targets)
    assert found == pytest.approx([(high - low) / 3, high - (high - low) / 3], abs=1e-9)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("smooth", [True, False])
def test_no_search_from_many_starts_does_better(seed, smooth):
    z, y = drawn(60, seed, slope=[2.0, 0.3, -1.5][seed % 3])
    weights = np.random.default_rng(seed).uniform(0.1, 9.0, 60) if seed % 2 else None
    targets = platt_targets(y == 1, weights, smooth=smooth)
    for features, lowest in (
        (line(3 * z), [1e-6, NO_BOUND]),
        (parabola(3 * z), [NO_BOUND] * 3),
        (np.column_stack([np.minimum(z, 0), np.maximum(z, 0), np.ones(60)]), [0.4, 0.4, NO_BOUND]),
    ):
        found = fitted(features, targets, weights, lowest=lowest)
        assert (found >= np.array(lowest)).all()
        best = searched(features, targets, weights, lowest)
        assert loss(features, targets, weights, found) <= best * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_slopes_vanish_where_free_and_push_down_at_a_bound(seed):
    z, y = drawn(200, seed, slope=[0.5, -2.0, 0.2, 1.0][seed])
    features = np.column_stack([np.minimum(z, 0), np.maximum(z, 0), np.ones(200)])
    lowest = np.array([0.3, 0.3, NO_BOUND])
    found = fitted(features, y, lowest=lowest)
    slope = features.T @ (1 / (1 + np.exp(-features @ found)) - y) / 200
    bound = found == lowest
    assert np.abs(slope[~bound]).max() < 1e-7
    assert (slope[bound] >= -1e-7).all()


ODD = {
    "tiny": lambda z: 1e-6 * z,
    "large": lambda z: 1e4 * z,
    "huge": lambda z: 1e6 * z,
    "far from zero": lambda z: 20 + 1e-3 * z,
    "very far from zero": lambda z: -1000 + 0.01 * z,
    "one row far out": lambda z: np.where(np.arange(len(z)) == 0, 1e4, z),
    "heavy tails": lambda z: z**7,
}


@pytest.mark.parametrize("smooth", [True, False])
@pytest.mark.parametrize("odd", ODD.values(), ids=ODD.keys())
def test_the_optimum_is_found_whatever_the_scale_of_the_scores(odd, smooth):
    z, y = drawn(300, 1)
    targets = platt_targets(y == 1, None, smooth=smooth)
    scores = odd(z)
    found = fitted(line(scores), targets, lowest=[1e-9, NO_BOUND])
    # The same line in scores that a search can handle.
    centre, size = np.median(scores), np.std(scores)
    easy = line((scores - centre) / size)
    best = searched(easy, targets, None, [1e-9 * size, NO_BOUND])
    assert loss(line(scores - centre), targets, None, [found[0], found[1] + found[0] * centre]) <= (
        best * (1 + 1e-6)
    )


def test_rare_events_and_weights_of_very_different_size():
    rng = np.random.default_rng(3)
    scores = rng.normal(size=10_000) - 8.0
    y = np.zeros(10_000)
    y[[5, 777, 4321]] = 1.0
    for features in (line(scores), parabola(scores)):
        best = searched(features, y, None, [NO_BOUND] * features.shape[1])
        assert loss(features, y, None, fitted(features, y)) <= best * (1 + 1e-6)
    z, y = drawn(400, 4)
    weights = 10 ** rng.uniform(-6, 6, 400)
    best = searched(line(z), y, weights, [NO_BOUND, NO_BOUND])
    assert loss(line(z), y, weights, fitted(line(z), y, weights)) <= best * (1 + 1e-6)


def test_what_the_rows_do_not_decide_stays_as_it_was():
    y = np.array([1.0, 0, 0, 0])
    for at in (0.0, 0.1, 5.0, -1e4):
        slope, intercept = fitted(line(np.full(4, at)), y)
        assert slope == pytest.approx(1.0)
        assert slope * at + intercept == pytest.approx(np.log(1 / 3), abs=1e-9)


def test_rounding_is_not_taken_for_a_score():
    scores = 5.0 + np.array([0.0, 1.0, 2.0, 0.0]) * np.spacing(5.0)
    slope, _ = fitted(line(scores), np.array([0.0, 1.0, 1.0, 0.0]))
    assert slope == pytest.approx(1.0)


def test_separated_targets_end_far_out_but_finite():
    features = line(np.array([-1.0, -0.5, 0.5, 1.0]))
    found = fitted(features, np.array([0.0, 0.0, 1.0, 1.0]))
    assert np.isfinite(found).all()
    assert loss(features, np.array([0.0, 0, 1, 1]), None, found) < 1e-12


def test_the_truth_is_recovered():
    rng = np.random.default_rng(5)
    z = rng.normal(size=200_000)
    truth = np.array([-0.4, 0.8, 0.3])
    y = (rng.random(len(z)) < 1 / (1 + np.exp(-parabola(z) @ truth))).astype(float)
    assert fitted(parabola(z), y) == pytest.approx(truth, abs=0.03)


def test_a_pull_on_one_distinct_score_by_hand():
    # With g = p - frequency the slopes cancel where a - 1 = -N g s / (2 c) and b = -N g / (2 c).
    s, g, n, c = 2.0, -0.02, 20.0, 2.0
    a, b = 1 - n * g * s / (2 * c), -n * g / (2 * c)
    p = 1 / (1 + np.exp(-(a * s + b)))
    found = fit_logistic(
        line(np.full(2, s)),
        np.array([1.0, 0.0]),
        n * np.array([p - g, 1 - p + g]),
        start=np.array([1.0, 0.0]),
        lowest=np.full(2, NO_BOUND),
        strength=c,
    )
    assert found == pytest.approx([a, b], abs=1e-9)


@pytest.mark.parametrize("strength", [1e-3, 1.0, 50.0])
@pytest.mark.parametrize("odd", ODD.values(), ids=ODD.keys())
def test_no_search_does_better_against_a_pull_whatever_the_scale(odd, strength):
    z, y = drawn(120, 2)
    features, start, lowest = line(odd(z)), np.array([1.0, 0.0]), np.array([1e-6, NO_BOUND])
    size = np.abs(features).max(axis=0)

    def objective(theta):
        away = theta / size - start
        return loss(features / size, y, None, theta) + strength / 120 * away @ away

    found = fit_logistic(features, y, None, start=start, lowest=lowest, strength=strength) * size
    bounds = [(1e-6 * size[0], None), (None, None)]
    for at in (start * size, np.array([1.0, 0.0]), found):
        other = minimize(objective, at, method="L-BFGS-B", bounds=bounds, options={"ftol": 1e-15})
        assert objective(found) <= other.fun * (1 + 1e-6) + 1e-12
