"""The published variants: printed numbers, hand-computed cases, the reference libraries."""

from itertools import pairwise

import numpy as np
import pytest

from calibrant.errors import InputError
from reproductions import parity

EDGE_CONF = [0.5, 0.5, 0.6, 0.8, 0.95, 1.0]
EDGE_CORRECT = [1, 0, 1, 1, 1, 0]

# Only the results of the next two examples are printed; these rows were found to give them.
TEN_CONF = [0.40, 0.55, 0.62, 0.74, 0.76, 0.77, 0.79, 0.90, 0.93, 0.96]
TEN_CORRECT = [0, 1, 1, 0, 1, 1, 0, 1, 1, 0]
SEVEN_CONF = [0.6, 0.7, 0.9] + [1.0] * 7
SEVEN_CORRECT = [0, 1, 1, 1, 0, 1, 1, 1, 1, 1]

EQUAL_WIDTH = [parity.ece_right_closed, parity.ece_left_closed, parity.ece_hidden_last_bin]
EQUAL_MASS = [
    parity.ece_em_interpolated,
    parity.ece_em_library,
    parity.ece_em_rank_split,
    parity.ece_em_midpoint,
    parity.ece_em_first_above,
]


def simulated(n, seed, conf=None):
    """Rows of a perfectly calibrated model with the confidences of the sampling-floor study."""
    rng = np.random.default_rng(seed)
    c = 0.5 + 0.5 * rng.beta(2.2, 1.1, n) if conf is None else conf(rng, n)
    return (rng.random(n) < c).astype(int), c


@pytest.mark.parametrize(
    ("metric", "value"),
    [
        # Hand: bins {.5 .5} 0, {.6} .4, {.8} .2, {.95, 1} |.5 - .975| * 2 -> 1.55 / 6
        (parity.ece_right_closed, 1.55 / 6),
        (parity.ece_left_closed, 0.65 / 6),  # 1.0 leaves: {.95} .05
        (parity.ece_hidden_last_bin, 1.65 / 6),  # 1.0 alone: 1 more
    ],
)
def test_edges_example(metric, value):
    assert metric(EDGE_CORRECT, EDGE_CONF, bins=10) == pytest.approx(value)
    assert round(value, 4) in (0.2583, 0.1083, 0.275)


def test_hidden_bin_example():
    assert parity.ece_hidden_last_bin([1, 0], [0.95, 1.0], bins=10) == pytest.approx(0.525)
    assert parity.ece_right_closed([1, 0], [0.95, 1.0], bins=10) == pytest.approx(0.475)


def test_dropped_rows_still_count():
    assert parity.ece_right_closed([1, 1], [0.0, 0.5], bins=2) == pytest.approx(0.25)
    assert parity.ece_left_closed([0, 1], [1.0, 0.5], bins=2) == pytest.approx(0.25)
    assert parity.ece_em_first_above([1, 1], [0.0, 0.0], bins=2) == pytest.approx(1.0)


@pytest.mark.parametrize("metric", EQUAL_WIDTH)
def test_equal_width_against_a_plain_loop(metric):
    y, c = simulated(500, 1)
    c[:20], c[20:40], c[40:60] = 0.0, 1.0, 0.6
    # 10 as well as 15 bins: 0.6 sits on an edge, where 10 * 0.6 would go astray in floats
    for m in (10, 15):
        edges = np.linspace(0, 1, m + 1)
        total = 0.0
        for low, high in pairwise(edges):
            inside = (c > low) & (c <= high)
            if metric is not parity.ece_right_closed:
                inside = (c >= low) & (c < high)
            total += abs((c - y)[inside].sum())
        if metric is parity.ece_hidden_last_bin:
            total += abs((c - y)[c == 1.0].sum())
        assert metric(y, c, bins=m) == pytest.approx(total / 500)


@pytest.mark.parametrize(
    ("metric", "ten", "seven", "constant"),
    [
        (parity.ece_em_interpolated, 0.120, 0.14, 0.0),
        (parity.ece_em_library, 0.120, 0.14, 0.0),
        (parity.ece_em_rank_split, 0.142, 0.14, 0.633),
        (parity.ece_em_midpoint, 0.142, 0.12, 0.567),
        (parity.ece_em_first_above, 0.142, 0.12, 0.567),
    ],
)
def test_equal_mass_examples(metric, ten, seven, constant):
    # Ten distinct, three bins. Sums of c - y: rows 2-4 -.09 (rows 1-4 .31), 5-7 .32, 8-10 .79;
    # the minimum dropped (.09 + .32 + .79) / 10, kept (.31 + .32 + .79) / 10.
    assert metric(TEN_CORRECT, TEN_CONF, bins=3) == pytest.approx(ten)
    # Seven at 1.0, five bins. Bins by rank: |.3| + |-.1| + 1 = 1.4; ties together: .3 + .9 = 1.2.
    assert metric(SEVEN_CORRECT, SEVEN_CONF, bins=5) == pytest.approx(seven)
    # Constant .9, one of three right: the gap is .9 - 1/3; by rank (.1 + .9 + .9) / 3.
    assert metric([1, 0, 0], [0.9] * 3, bins=3) == pytest.approx(constant, abs=5e-4)


def edges_as_published(metric, c, bins):
    x, size = sorted(c), len(c) // bins
    if metric is parity.ece_em_library:
        return [x[b * size] for b in range(bins)] + [1.0]
    if metric is parity.ece_em_first_above:
        return [0.0] + [x[b * size] for b in range(1, bins)] + [1.0]
    last = len(x) - 1
    places = [min(b * len(x) / bins, last) for b in range(bins + 1)]
    return [x[int(t)] + (x[min(int(t) + 1, last)] - x[int(t)]) * (t % 1) for t in places]


@pytest.mark.parametrize(
    "metric", [parity.ece_em_interpolated, parity.ece_em_library, parity.ece_em_first_above]
)
@pytest.mark.parametrize("bins", [1, 4, 16])
def test_equal_mass_against_a_plain_loop(metric, bins):
    y, c = simulated(402, 6)
    c = np.round(c, 2)  # ties, also on the edges
    edges = edges_as_published(metric, c, bins)
    gaps = [abs((c - y)[(c > low) & (c <= high)].sum()) for low, high in pairwise(edges)]
    assert metric(y, c, bins=bins) == pytest.approx(sum(gaps) / 402)


def test_interpolated_counts():
    c = np.array(TEN_CONF)
    edges = edges_as_published(parity.ece_em_interpolated, c, 3)
    assert [((c > a) & (c <= b)).sum() for a, b in pairwise(edges)] == [3, 3, 3]


def test_rank_split_depends_on_the_order_of_ties():
    c = [0.9] * 4
    assert parity.ece_em_rank_split([1, 1, 0, 0], c, bins=2) == pytest.approx(0.5)
    assert parity.ece_em_rank_split([1, 0, 1, 0], c, bins=2) == pytest.approx(0.4)
    assert parity.ece_em_midpoint([1, 1, 0, 0], c, bins=2) == pytest.approx(0.4)


@pytest.mark.parametrize("metric", EQUAL_MASS)
def test_equal_mass_agree_without_ties(metric):
    y, c = simulated(3000, 2)
    assert metric(y, c) == pytest.approx(parity.ece_em_midpoint(y, c), abs=15 / 3000)


@pytest.mark.parametrize("metric", EQUAL_MASS)
def test_more_bins_than_rows(metric):
    assert 0.0 <= metric([1, 0], [0.8, 0.3], bins=15) <= 1.0


def test_debiased_l2_by_hand():
    # bins {.2 .4} acc .5 conf .3: .04 - .25; {.6 .8} acc 1 conf .7: .09 - 0 -> mean < 0 -> 0
    assert parity.debiased_l2([0, 1, 1, 1], [0.2, 0.4, 0.6, 0.8], bins=2) == 0.0
    # bins {.1 .1} acc 0: .01; {.6 .8} acc 1: .09 -> sqrt(.05)
    y, c = [0, 0, 1, 1], [0.1, 0.1, 0.6, 0.8]
    assert parity.debiased_l2(y, c, bins=2) == pytest.approx(0.05**0.5)
    # one row in each bin: nothing is added
    assert parity.debiased_l2([1, 0], [0.9, 0.3], bins=2) == 0.0


def test_debiased_l1_is_smaller_and_seeded():
    y, c = simulated(1000, 3)
    value = parity.debiased_l1(y, c, rng=0)
    assert value == parity.debiased_l1(y, c, rng=np.random.default_rng(0))
    assert value != parity.debiased_l1(y, c, rng=1)
    assert value < parity.ece_em_midpoint(y, c)


def test_debiased_l1_can_be_negative_and_needs_two_rows():
    y, c = np.tile([0, 1], 50), np.full(100, 0.5)
    c[:50] = 0.4999
    assert parity.debiased_l1(y, c, rng=0, bins=2) < 0
    with pytest.raises(InputError, match="two rows in each bin"):
        parity.debiased_l1([1, 0, 1], [0.2, 0.5, 0.9], rng=0, bins=3)
    # a constant confidence: the edges .9 and 1 leave an empty bin between them
    with pytest.raises(InputError, match="a bin with 0"):
        parity.debiased_l1([1, 0, 0, 1], [0.9] * 4, rng=0, bins=2)


def slow_sweep(y, c, scheme, norm):
    """Sweep in plain Python, one row at a time."""
    n, kept = len(y), [0] * len(y)
    ranked = sorted(range(n), key=lambda i: c[i])

    def bins_of(count):
        if scheme == "width":
            return [min(count - 1, int(c[i] * count)) for i in range(n)]
        index = [0] * n
        for rank, i in enumerate(ranked):
            index[i] = min(count - 1, int(rank / n * count))
        return index

    def gather(index):
        return [[i for i in range(n) if index[i] == b] for b in sorted(set(index))]

    for count in range(2, n):
        index = bins_of(count)
        accuracies = [sum(y[i] for i in rows) / len(rows) for rows in gather(index)]
        if any(b < a for a, b in pairwise(accuracies)):
            break
        kept = index
    gaps = [(len(r), abs(sum(c[i] - y[i] for i in r)) / len(r)) for r in gather(kept)]
    return (sum(k * g**norm for k, g in gaps) / n) ** (1 / norm)


@pytest.mark.parametrize("scheme", ["mass", "width"])
@pytest.mark.parametrize("norm", [1, 2])
def test_sweep_against_a_plain_loop(scheme, norm):
    for seed in range(8):
        y, c = simulated(120, seed)
        value = parity.sweep(y, c, scheme=scheme, norm=norm)
        assert value == pytest.approx(slow_sweep(y, c, scheme, norm))


def test_sweep_by_hand():
    # two bins: accuracies 1/2 and 1/2, gaps .2 and .2; three bins: 1/2, 0, 1, so it stops
    assert parity.sweep([0, 1, 0, 1], [0.2, 0.4, 0.6, 0.8]) == pytest.approx(0.2)
    # two bins already fail: one bin, gap |.5 - .5|
    assert parity.sweep([1, 1, 0, 0], [0.2, 0.4, 0.6, 0.8]) == pytest.approx(0.0)
    # two bins, gaps .1 and .3: norm 1 .2, norm 2 sqrt(.05)
    y, c = [0, 1, 0, 1, 0, 1, 0, 1], [0.4, 0.4, 0.4, 0.4, 0.8, 0.8, 0.8, 0.8]
    assert parity.sweep(y, c, norm=1) == pytest.approx(0.2)
    assert parity.sweep(y, c) == pytest.approx(0.05**0.5)
    assert parity.sweep([1], [0.7]) == pytest.approx(0.3)


def test_sweep_norm_two_is_never_below_norm_one():
    # Printed: 0.0532 and 0.0567 on rows that are not given; the inequality is what is left.
    for y, c in (simulated(400, seed) for seed in range(10)):
        assert parity.sweep(y, c) >= parity.sweep(y, c, norm=1) - 1e-12


def test_classwise_forgets_absent_last_classes():
    probs = np.array([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25]])
    # K = 2: class 0 gaps in (0, .5]: |.75 - 1| / 2 = .125, the same for class 1
    assert parity.classwise_fc([0, 1], probs, bins=2) == pytest.approx(0.125)
    # all three columns would give (.125 + .125 + .25) / 3
    one_hot = np.eye(3)[[0, 1]]
    every = [parity.ece_right_closed(one_hot[:, k], probs[:, k], bins=2) for k in range(3)]
    assert np.mean(every) == pytest.approx(0.5 / 3)


@pytest.mark.parametrize(
    ("metric", "n", "bins", "mean", "upper"),
    [
        (parity.ece_right_closed, 1013, 10, 0.019, 0.031),
        (parity.ece_em_rank_split, 1013, 15, 0.032, 0.044),
        (parity.ece_right_closed, 1839, 10, 0.014, 0.023),
        (parity.ece_em_rank_split, 1839, 15, 0.024, None),
        (parity.ece_em_interpolated, 5000, 15, 0.015, None),
        (parity.ece_em_interpolated, 10_000, 15, 0.010, None),
    ],
)
def test_sampling_floor(metric, n, bins, mean, upper):
    # Printed to three digits from 300 draws, whose mean has a standard error of up to 0.0005.
    values = [metric(*simulated(n, seed), bins=bins) for seed in range(300)]
    assert np.mean(values) == pytest.approx(mean, abs=0.0015)
    if upper is not None:
        assert np.quantile(values, 0.95) == pytest.approx(upper, abs=0.002)


def test_sampling_floor_of_sharp_confidences():
    def sharp(rng, n):
        return np.clip(1 - rng.exponential(0.05, n), 0, 1)

    draws = [simulated(10_000, seed, sharp) for seed in range(300)]
    values = [parity.ece_em_interpolated(y, c) for y, c in draws]
    assert np.mean([y.mean() for y, _ in draws]) == pytest.approx(0.95, abs=0.001)
    assert np.mean(values) == pytest.approx(0.0057, abs=0.0003)
    assert np.quantile(values, 0.95) == pytest.approx(0.0077, abs=0.0005)


def test_against_torchmetrics():
    torch = pytest.importorskip("torch")
    functional = pytest.importorskip("torchmetrics.functional.classification")
    y, c = simulated(2000, 4)
    c[:300] = 1.0
    theirs = functional.binary_calibration_error(torch.tensor(c), torch.tensor(y), n_bins=15)
    assert parity.ece_hidden_last_bin(y, c, bins=15) == pytest.approx(float(theirs), abs=1e-6)


def test_against_verified_calibration():
    reference = pytest.importorskip("calibration")
    y, c = simulated(1200, 5)
    c[:200] = c[0]
    plain = reference.lower_bound_scaling_ce(c, y, p=1, debias=False)
    assert parity.ece_em_midpoint(y, c) == pytest.approx(plain)
    l2 = reference.lower_bound_scaling_ce(c, y, p=2, debias=True)
    assert parity.debiased_l2(y, c) == pytest.approx(l2)
    l1 = reference.lower_bound_scaling_ce(c, y, p=1, debias=True)
    assert parity.debiased_l1(y, c, rng=0) == pytest.approx(l1, abs=0.002)


@pytest.mark.parametrize("metric", [*EQUAL_WIDTH, *EQUAL_MASS, parity.debiased_l2])
def test_bad_input_is_named(metric):
    with pytest.raises(InputError, match="bins must be at least 1"):
        metric([1], [0.5], bins=0)
    with pytest.raises(InputError, match="shape"):
        metric([1, 0], [[0.5, 0.5], [0.1, 0.9]])


def test_bad_scheme_is_named():
    with pytest.raises(InputError, match="'mass' or 'width'"):
        parity.sweep([1, 0], [0.5, 0.2], scheme="rank")
