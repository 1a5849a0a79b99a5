"""Shares of a mixture: hand-made, against plain searches, and at the edge."""

import numpy as np
import pytest

from calibrant.calibrators.fits.mixture import least_squares_shares, max_likelihood_shares


def mean_log_likelihood(parts, mass, shares):
    return mass @ np.log(parts @ shares)


def simplex_grid(steps):
    a, b = np.meshgrid(np.arange(steps + 1), np.arange(steps + 1))
    keep = a + b <= steps
    return np.column_stack([a[keep], b[keep], steps - a[keep] - b[keep]]) / steps


def by_faces(residuals):
    """Minimise |R w| over the simplex by solving on every face; a plain version."""
    m = residuals.shape[1]
    gram, best, least = residuals.T @ residuals, None, np.inf
    for code in range(1, 2**m):
        at = [a for a in range(m) if code >> a & 1]
        one = np.ones((len(at), 1))
        system = np.block([[gram[np.ix_(at, at)], one], [one.T, np.zeros((1, 1))]])
        answer = np.linalg.lstsq(system, np.eye(len(at) + 1)[-1], rcond=None)[0]
        shares = np.zeros(m)
        shares[at] = answer[:-1]
        height = np.linalg.norm(residuals @ shares)
        if (shares >= -1e-12).all() and abs(shares.sum() - 1) < 1e-9 and height < least:
            best, least = shares, height
    return best


def random_parts(rng, n, m):
    return rng.dirichlet(np.full(m, rng.choice([0.05, 0.3, 2.0])), n) * rng.random(m)


def test_two_parts_by_hand():
    # x = share of the second part: 4 log(0.2 + 1.6 x) + 6 log(1.8 - 1.6 x) has its top at 0.375.
    parts = np.array(4 * [[0.2, 1.8]] + 6 * [[1.8, 0.2]])
    found = max_likelihood_shares(parts, np.full(10, 0.1))
    assert found.shares == pytest.approx([0.625, 0.375], abs=1e-9)
    assert found.converged
    assert found.gap <= 1e-9


@pytest.mark.parametrize("seed", range(6))
def test_no_shares_on_a_fine_grid_are_likelier(seed):
    rng = np.random.default_rng(seed)
    parts, mass = random_parts(rng, 60, 3), rng.dirichlet(np.ones(60))
    found = max_likelihood_shares(parts, mass)
    tried = np.log(np.maximum(parts @ simplex_grid(80).T, 1e-300))
    assert found.gap <= 1e-9
    assert mean_log_likelihood(parts, mass, found.shares) >= (mass @ tried).max() - 1e-12


@pytest.mark.parametrize("seed", range(4))
def test_the_limit_of_plain_em_is_reached(seed):
    rng = np.random.default_rng(seed)
    parts = rng.dirichlet(np.full(5, 0.5), 300)
    mass = np.full(300, 1 / 300)
    slow = np.full(5, 0.2)
    for _ in range(20_000):
        slow = slow * (parts.T @ (mass / (parts @ slow)))
    assert max_likelihood_shares(parts, mass).shares == pytest.approx(slow, abs=1e-7)


def test_every_problem_converges_from_any_start():
    rng = np.random.default_rng(0)
    for _ in range(60):
        n, m = int(rng.choice([2, 20, 400])), int(rng.choice([2, 3, 12]))
        parts = random_parts(rng, n, m)
        start = rng.dirichlet(np.ones(m))
        assert max_likelihood_shares(parts, np.full(n, 1 / n), start).converged


def test_parts_that_explain_nothing_get_exactly_no_share():
    parts = np.column_stack([np.linspace(0.5, 1.0, 20), np.full(20, 0.1), np.full(20, 0.2)])
    found = max_likelihood_shares(parts, np.full(20, 0.05))
    assert found.shares == pytest.approx([1.0, 0.0, 0.0], abs=1e-12)


def test_equal_parts_leave_the_start_alone():
    start = np.array([0.2, 0.5, 0.3])
    found = max_likelihood_shares(np.ones((7, 3)), np.full(7, 1 / 7), start)
    assert found.shares == pytest.approx(start)
    assert found.steps == 0


def test_least_squares_by_hand():
    # From (1, 0), (0, 1) and (5, 5) the point nearest to the origin is the middle of the first two.
    residuals = np.array([[1.0, 0.0, 5.0], [0.0, 1.0, 5.0]])
    assert least_squares_shares(residuals) == pytest.approx([0.5, 0.5, 0.0])


@pytest.mark.parametrize("seed", range(20))
def test_least_squares_agree_with_a_search_over_all_faces(seed):
    rng = np.random.default_rng(seed)
    residuals = rng.normal(size=(3, 3)) + 10.0 ** rng.integers(-3, 1) * rng.normal(size=(3, 1))
    if seed % 4 == 0:
        residuals[:, 1] = residuals[:, 0]
    ours, plain = least_squares_shares(residuals), by_faces(residuals)
    assert np.linalg.norm(residuals @ ours) == pytest.approx(
        np.linalg.norm(residuals @ plain), abs=1e-12
    )
    assert ours.sum() == pytest.approx(1.0)
    assert (ours >= 0).all()


def test_nothing_to_minimise_is_no_error():
    assert least_squares_shares(np.zeros((3, 3))).sum() == pytest.approx(1.0)
