"""The steps of docs/threshold-proof.md, tried on random populations with ties."""

import itertools
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.stats import binom

from calibrant.stats import running_log_evidence
from calibrant.thresholds.proof.walk import binomial_passes, plan_starts, walk

TAU = 0.7
WORLDS = range(6)


@dataclass(frozen=True)
class World:
    """A population: probability, label rate and weight of each score, highest score first."""

    mass: np.ndarray
    rate: np.ndarray
    weight: float | np.ndarray = 1.0

    @property
    def ends(self):
        return np.append(np.cumsum(self.mass)[:-1], 1.0)

    @property
    def excess(self):
        """G where each slice ends."""
        return np.cumsum(self.mass * self.weight * (self.rate - TAU))

    def corners(self):
        """Depths at which G turns or crosses zero, and G there."""
        depth, value = [0.0], [0.0]
        for t, g in zip(self.ends, self.excess, strict=True):
            if value[-1] * g < 0:
                share = value[-1] / (value[-1] - g)
                depth.append(depth[-1] + share * (t - depth[-1]))
                value.append(0.0)
            depth.append(t)
            value.append(g)
        return np.array(depth), np.array(value)

    def stretches(self):
        """Begin and end of each stretch, and whether it is broken."""
        depth, value = self.corners()
        zeros = np.flatnonzero(value == 0)
        cuts = np.unique(np.append(zeros, len(depth) - 1))
        return [
            (depth[i], depth[j], value[i + 1 : j + 1].min() < 0)
            for i, j in itertools.pairwise(cuts)
        ]

    def labels(self, depth, rng):
        return rng.random(depth.shape) < self.rate[self.scores(depth)]

    def scores(self, depth):
        return np.searchsorted(self.ends, depth)


def random_world(seed, heaviest=1):
    """A population with at least three stretches, drawn until there is one."""
    rng = np.random.default_rng(seed)
    while True:
        rate = np.clip(TAU + rng.normal(0, 0.3, 9), 0, 1)
        world = World(rng.dirichlet(np.ones(9)), rate, rng.integers(1, heaviest + 1, 9))
        if len(world.stretches()) >= 3 and (world.excess < 0).any():
            return world


def suspects(world, counts):
    """Positions of broken stretches, both ends included, from the counts alone."""
    after = np.cumsum(counts)
    return sorted(
        {
            k
            for (_, _, broken), last, count in zip(world.stretches(), after, counts, strict=True)
            if broken
            for k in range(last - count, last + 1)
        }
        - {0}
    )


def drawn_given(counts, world, times, rng):
    """Labels by depth, and the depths, with so many rows in each stretch."""
    parts = [
        begin + (end - begin) * rng.random((times, count))
        for (begin, end, _), count in zip(world.stretches(), counts, strict=True)
    ]
    depth = np.sort(np.concatenate(parts, axis=1), axis=1)
    return world.labels(depth, rng), depth


@pytest.mark.parametrize("seed", WORLDS)
def test_whole_stretches_before_a_broken_one_have_the_target_as_rate(seed):
    world = random_world(seed)
    depth, value = world.corners()
    for begin, end, broken in world.stretches():
        assert np.interp(begin, depth, value) == pytest.approx(0, abs=1e-12)
        inside = np.interp(np.linspace(begin, end, 50)[1:-1], depth, value)
        assert (inside < 0).all() if broken else (inside >= 0).all()


@pytest.mark.parametrize("seed", WORLDS)
def test_a_broken_threshold_lies_at_a_suspect_position(seed):
    world, rng = random_world(seed), np.random.default_rng(seed)
    met = 0
    for _ in range(200):
        depth = np.sort(rng.random(40))
        cuts = [end for _, end, _ in world.stretches()]
        counts = np.diff(np.searchsorted(depth, cuts), prepend=0)
        found = set(suspects(world, counts))
        for score in np.flatnonzero(world.excess < 0):
            position = int((world.scores(depth) <= score).sum())
            assert position == 0 or position in found
            met += position > 0
    assert met > 100


def tails(hits, positions, levels):
    """How often the p-value of each position is at most each level."""
    k = np.array(positions)
    p = binom.sf(hits[:, k - 1] - 1, k, TAU)
    return np.array([(p <= level).mean(axis=0) for level in levels])


LEVELS = np.array([0.01, 0.05, 0.1, 0.3])


@pytest.mark.parametrize("seed", WORLDS)
def test_p_values_are_valid_at_every_suspect_position_given_the_counts(seed):
    world, rng, times = random_world(seed), np.random.default_rng(seed), 4000
    counts = rng.integers(1, 15, len(world.stretches()))
    labels, _ = drawn_given(counts, world, times, rng)
    found = tails(np.cumsum(labels, axis=1), suspects(world, counts), LEVELS)
    error = np.sqrt(LEVELS * (1 - LEVELS) / times)
    assert (found <= (LEVELS + 4.5 * error)[:, None]).all()


def test_p_values_are_not_valid_where_positives_come_first_in_a_tie():
    rng = np.random.default_rng(0)
    labels = rng.random((2000, 40)) < TAU - 0.01  # one score: every position is suspect
    honest = tails(np.cumsum(labels, axis=1), range(1, 41), LEVELS)
    first = tails(np.cumsum(np.sort(labels)[:, ::-1], axis=1), range(1, 41), LEVELS)
    assert honest[1].max() < 0.07
    assert first[1].max() > 0.9


def quantiles(world, begin, end, of):
    """The depth of positives (or negatives) of a stretch, by quantile."""
    inner = world.ends[(world.ends > begin) & (world.ends < end)]
    grid = np.concatenate([[begin], inner, [end]])
    rate = world.rate[world.scores((grid[1:] + grid[:-1]) / 2)]
    mass = np.append(0, np.cumsum(np.diff(grid) * (rate if of else 1 - rate)))
    return lambda v: np.interp(v * mass[-1], mass, grid)


def repaired(world):
    """Turn the deepest negatives into positives until G ends at 0, where it ends below."""
    depth, value = world.corners()
    if value[-1] >= 0:
        return world
    with_rest = value + (1 - TAU) * (1 - depth)  # G at the end, if all below here were positive
    j = int(np.flatnonzero(with_rest >= 0)[-1])
    share = with_rest[j] / (with_rest[j] - with_rest[j + 1])
    cut = depth[j] + share * (depth[j + 1] - depth[j])
    kept = world.ends < cut
    mass = np.diff(np.concatenate([[0], world.ends[kept], [cut, 1]]))
    return World(mass, np.concatenate([world.rate[kept], [world.rate[kept.sum()], 1.0]]))


def hits_before_and_after(world, begin, end, rate, rng):
    """Running positives of a stretch, before and after its positives are moved up."""
    labels = rng.random((500, 30)) < rate
    v = rng.random(labels.shape)
    low, high = quantiles(world, begin, end, 0)(v), quantiles(world, begin, end, 1)(v)
    before = np.take_along_axis(labels, np.argsort(np.where(labels, high, low)), axis=1)
    after = np.take_along_axis(labels, np.argsort(low), axis=1)
    return np.cumsum(before, axis=1), np.cumsum(after, axis=1)


@pytest.mark.parametrize("seed", WORLDS)
def test_a_bernoulli_walk_has_at_least_the_hits_at_all_suspect_positions_at_once(seed):
    world, rng = repaired(random_world(seed)), np.random.default_rng(seed)
    assert world.excess[-1] > -1e-12
    for begin, end, broken in world.stretches():
        if broken:
            before, after = hits_before_and_after(world, begin, end, TAU, rng)
            assert (before <= after).all()
            assert (before[:, -1] == after[:, -1]).all()
            walk_mean = TAU * np.arange(1, 31)
            assert np.abs(after.mean(axis=0) - walk_mean).max() < 4 * np.sqrt(30 / 4 / 500)


def test_without_the_repair_the_last_stretch_need_not_obey_the_walk():
    world = World(np.array([0.5, 0.5]), np.array([TAU - 0.01, 0.0]))
    before, after = hits_before_and_after(world, 0, 1, (TAU - 0.01) / 2, np.random.default_rng(0))
    assert (before > after).any()


def share_with_a_false_pass(suspect, n, delta, *, forgiving=False, times=20_000):
    """Walk with Bernoulli(tau) hits at suspect positions; every other position passes."""
    rng = np.random.default_rng(1)
    starts, shares = plan_starts(n, TAU, delta)
    share = np.zeros(n + 1)
    share[starts] = shares
    hits = np.cumsum(rng.random((times, n)) < TAU, axis=1)
    alive, false = np.zeros(times), np.zeros(times, dtype=bool)
    for k in range(1, n + 1):
        alive += share[k]
        if k in suspect:
            passed = (binom.sf(hits[:, k - 1] - 1, k, TAU) <= alive) & (alive > 0)
            false |= passed
            if not forgiving:
                alive[~passed] = 0
    return false.mean()


def hostile_sets(n, delta):
    starts, _ = plan_starts(n, TAU, delta)
    rng = np.random.default_rng(0)
    yield set(range(1, n + 1))
    yield set(range(2, n + 1, 2))
    yield set(range(n // 2, n + 1))
    yield {int(start) for start in starts}
    yield {min(n, int(start) + 3) for start in starts}
    yield {n}
    yield from (set(rng.choice(n, size, replace=False) + 1) for size in (2, 5, 20, 60))


def test_the_levels_add_up_to_delta_for_hostile_suspects():
    n, delta = 120, 0.2
    error = np.sqrt(delta * (1 - delta) / 20_000)
    shares = [share_with_a_false_pass(s, n, delta) for s in hostile_sets(n, delta)]
    assert max(shares) <= delta + 3.1 * error
    assert max(shares) > 0.7 * delta  # the sets are hostile enough to come near


def test_a_level_that_survives_a_failure_breaks_the_bound():
    everything = set(range(1, 121))
    assert share_with_a_false_pass(everything, 120, 0.2, forgiving=True) > 0.25


@pytest.mark.parametrize("seed", range(8))
def test_the_walk_of_the_library_is_the_walk_of_the_proof(seed):
    rng = np.random.default_rng(seed)
    n, delta = 300, 0.1
    good = np.repeat(rng.choice([0.4, 0.8, 0.95], 6), 50)
    hits = np.cumsum(rng.random(n) < good)
    starts, shares = plan_starts(n, TAU, delta)
    share = dict(zip(starts.tolist(), shares.tolist(), strict=True))
    alive, plain = 0.0, []
    for k in range(1, n + 1):
        alive += share.get(k, 0.0)
        if alive > 0 and binom.sf(hits[k - 1] - 1, k, TAU) <= alive:
            plain.append(k)
        else:
            alive = 0.0
    found = walk(n, TAU, delta, binomial_passes(hits, TAU))
    assert [k for first, last in found for k in range(first, last + 1)] == plain


@pytest.mark.parametrize("seed", WORLDS)
def test_bets_have_a_mean_of_at_most_one_at_suspect_positions(seed):
    world, rng, times = random_world(seed, heaviest=3), np.random.default_rng(seed), 6000
    counts = rng.integers(1, 5, len(world.stretches()))
    labels, depth = drawn_given(counts, world, times, rng)
    gains = world.weight[world.scores(depth)] * (labels - TAU)
    k = np.array(suspects(world, counts)) - 1
    evidence = np.exp([running_log_evidence(row, -3 * TAU)[k] for row in gains])
    error = evidence.std(axis=0) / np.sqrt(times)
    assert (evidence.mean(axis=0) <= 1 + 4.5 * error).all()
    assert evidence.max() > 1.5  # the bets are not idle
