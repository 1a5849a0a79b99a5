"""Simulated samples prove as often as real ones."""

import numpy as np
import pytest

from calibrant.thresholds import Cost, fpr, npv, precision, recall
from calibrant.thresholds.labels_needed.power import simulate_success_rate
from calibrant.thresholds.labels_needed.rank_curves import RankCurves
from calibrant.thresholds.proof.certify import certify_positions
from calibrant.thresholds.proof.ranked import rank_rows

SHARES = np.array([0.95, 0.9, 0.8, 0.5, 0.3, 0.2, 0.1, 0.05, 0.03, 0.02])


def steps(versions, *, kinds=1, tied=False):
    """Ten equal cells of ranks; kinds of weight differ in their share of positives."""
    factor = np.array([1.0, 0.9])[:kinds]
    rates = (SHARES[:, None] * factor)[None].repeat(versions, axis=0)
    mass = np.full((10, kinds), 0.1 / kinds)
    weights = np.array([1.0, 3.0])[:kinds]
    largest = 3.0 if kinds == 2 else None
    return RankCurves(np.arange(11) / 10, mass, rates, weights, largest, np.full(10, tied))


def real_rows(n, rng, *, kinds=1, tied=False):
    place = rng.random(n)
    cell = np.minimum((place * 10).astype(int), 9)
    kind = rng.integers(kinds, size=n)
    event = rng.random(n) < SHARES[cell] * np.array([1.0, 0.9])[kind]
    weights = np.array([1.0, 3.0])[kind] if kinds == 2 else None
    score = -cell.astype(float) if tied else -place
    return rank_rows(score, event, weights, rng=rng)


@pytest.mark.parametrize(
    ("n", "targets", "options"),
    [
        (400, (precision >= 0.85,), {}),
        (400, (precision >= 0.85,), {"tied": True}),
        (1500, (precision >= 0.75,), {"kinds": 2}),
        (300, (npv >= 0.93,), {}),
        (300, (npv >= 0.93,), {"tied": True}),
        (250, (precision >= 0.7, recall >= 0.6), {}),
        (200, (recall >= 0.7, fpr <= 0.2), {}),
        (300, (recall >= 0.6, fpr <= 0.3), {"kinds": 2}),
    ],
)
def test_simulated_samples_prove_as_often_as_real_ones(n, targets, options):
    rng = np.random.default_rng(0)
    found = simulate_success_rate(steps(1000, **options), n, targets, 0.1, rng)
    proved = []
    for _ in range(300):
        rows = real_rows(n, rng, **options)
        masks = [certify_positions(rows, target, 0.1 / len(targets)) for target in targets]
        proved.append(np.logical_and.reduce(masks).any())
    assert 0.1 < np.mean(proved) < 0.95  # a case that tells something
    assert found == pytest.approx(np.mean(proved), abs=0.12)


def test_more_rows_prove_more():
    rng = np.random.default_rng(1)
    powers = [
        simulate_success_rate(steps(400), n, (precision >= 0.88,), 0.05, rng)
        for n in (100, 1000, 10_000)
    ]
    assert powers[0] < 0.2 < powers[1] < powers[2]
    assert powers[2] > 0.9


def test_thresholds_that_are_fixed_are_the_only_ones():
    rng = np.random.default_rng(2)
    cost = Cost(false_positive=1, false_negative=3)
    target = (cost <= 0.4,)
    good = simulate_success_rate(steps(100), 20_000, target, 0.05, rng, np.array([0.4]))
    bad = simulate_success_rate(steps(100), 20_000, target, 0.05, rng, np.array([0.0, 0.9]))
    assert good == 1.0
    assert bad == 0.0


def test_nothing_is_proved_by_too_few_rows():
    rng = np.random.default_rng(3)
    assert simulate_success_rate(steps(50), 10, (precision >= 0.85,), 0.05, rng) == 0.0
    assert simulate_success_rate(steps(50), 1, (npv >= 0.85,), 0.05, rng) == 0.0
