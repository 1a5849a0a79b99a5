"""Temperature scaling: the exact optimum, known truth, bounds, and the papers' grid."""

import math

import mpmath
import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from tests.data_sets import data_file
from tests.sentences import refuses

from calibrant.calibrators import TemperatureScaling
from calibrant.calibrators.fits import inverse_temperature
from calibrant.convert import logits_from_probs
from calibrant.errors import InputError
from calibrant.metrics import accuracy, auroc, nll


def drawn(k, temperature, n, seed=0):
    """Rows whose labels follow softmax(logits / temperature) exactly."""
    rng = np.random.default_rng(seed)
    if k == 2:
        truth = rng.normal(-1.0, 2.0, n)
        return temperature * truth, (rng.random(n) < 1 / (1 + np.exp(-truth))) * 1
    truth = rng.normal(0.0, 2.0, (n, k))
    labels = (truth + rng.gumbel(size=truth.shape)).argmax(axis=1)
    return temperature * truth, labels


def loss(logits, labels, temperature, weights=None, doubt=0.0):
    """The mean negative log-likelihood, written down again."""
    z = np.column_stack([0 * logits, logits]) if logits.ndim == 1 else logits
    z = z / temperature
    z = z - z.max(axis=1, keepdims=True)
    log_p = z - np.log(np.exp(z).sum(axis=1, keepdims=True))
    rows = (1 - doubt) * log_p[np.arange(len(z)), labels] + doubt * log_p.mean(axis=1)
    return -float(np.average(rows, weights=weights))


def optimum(logits, labels, weights=None, doubt=0.0):
    """The least loss that a slow, careful search finds."""
    found = minimize_scalar(
        lambda t: loss(logits, labels, math.exp(t), weights, doubt),
        bounds=(math.log(0.01), math.log(1e4)),
        method="bounded",
        options={"xatol": 1e-12, "maxiter": 2000},
    )
    return float(found.fun)


def standard_error(logits, labels, temperature):
    """The relative standard error of T, from the curvature of the loss in log T."""
    step = 1e-3
    up, middle, down = (loss(logits, labels, temperature * math.exp(d)) for d in (step, 0.0, -step))
    return 1 / math.sqrt(len(labels) * (up - 2 * middle + down) / step**2)


# The optimum


def test_two_thirds_by_hand():
    # Odds 4 to 1 to 1 are probabilities 4/6, 1/6 and 1/6, which is how often the classes occur.
    logits = np.log([[4.0, 1.0, 1.0]] * 6)
    calibrator = TemperatureScaling().fit(logits, [0, 0, 0, 0, 1, 2])
    assert calibrator.temperature_ == pytest.approx(1.0, rel=1e-7)
    doubled = TemperatureScaling().fit(2 * logits, [0, 0, 0, 0, 1, 2])
    assert doubled.temperature_ == pytest.approx(2.0, rel=1e-7)
    assert doubled.predict_proba(2 * logits[:1]) == pytest.approx(np.array([[4, 1, 1]]) / 6)


def test_weights_by_hand():
    # Right three times in four by weight: log-odds 2 must become log 3.
    calibrator = TemperatureScaling().fit([2.0, 2.0], [1, 0], weights=[3.0, 1.0])
    assert calibrator.temperature_ == pytest.approx(2 / np.log(3), rel=1e-7)


@pytest.mark.parametrize("k", [2, 10])
@pytest.mark.parametrize("truth", [0.3, 0.8, 1.0, 2.5, 8.0, 40.0, 200.0])
def test_true_temperature_is_recovered(k, truth):
    logits, labels = drawn(k, truth, 20_000)
    calibrator = TemperatureScaling().fit(logits, labels)
    error = standard_error(logits, labels, truth)
    assert abs(math.log(calibrator.temperature_ / truth)) < 4.5 * error
    assert not calibrator.hit_bound_
    ours = loss(logits, labels, calibrator.temperature_)
    assert abs(ours - optimum(logits, labels)) < 1e-9
    assert nll(labels, calibrator.predict_proba(logits)) == pytest.approx(ours, abs=1e-12)


@pytest.mark.parametrize("k", [2, 4])
def test_weighted_and_single_precision_optimum(k):
    logits, labels = drawn(k, 3.0, 3000)
    weights = np.random.default_rng(1).exponential(size=3000)
    calibrator = TemperatureScaling().fit(logits, labels, weights)
    ours = loss(logits, labels, calibrator.temperature_, weights)
    assert abs(ours - optimum(logits, labels, weights)) < 1e-9
    narrow = TemperatureScaling().fit(logits.astype(np.float32), labels, weights)
    assert narrow.temperature_ == pytest.approx(calibrator.temperature_, rel=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_root_of_the_derivative_in_forty_digits(seed):
    logits, labels = drawn(3, 2.0, 25, seed)
    calibrator = TemperatureScaling().fit(logits, labels)
    with mpmath.workdps(40):
        rows = [[mpmath.mpf(float(v)) for v in row] for row in logits]

        def slope(beta):
            total = mpmath.mpf(0)
            for row, label in zip(rows, labels, strict=True):
                e = [mpmath.exp(beta * v) for v in row]
                total += sum(a * v for a, v in zip(e, row, strict=True)) / sum(e) - row[label]
            return total

        beta = mpmath.findroot(slope, (0.05, 3.0), solver="anderson", tol=1e-30)
        assert calibrator.temperature_ == pytest.approx(float(1 / beta), rel=1e-7)


def test_a_large_input_starts_from_some_of_its_rows(monkeypatch):
    logits, labels = drawn(5, 3.0, 4000)
    whole = TemperatureScaling().fit(logits, labels).temperature_
    monkeypatch.setattr(inverse_temperature, "_SAMPLE_ENTRIES", 1000)
    monkeypatch.setattr(inverse_temperature, "_BLOCK_ENTRIES", 64)
    assert TemperatureScaling().fit(logits, labels).temperature_ == pytest.approx(whole, rel=1e-7)


def test_doubt_is_one_rows_worth():
    logits, labels = drawn(4, 2.0, 40)
    calibrator = TemperatureScaling(smooth=True).fit(logits, labels)
    ours = loss(logits, labels, calibrator.temperature_, doubt=1 / 41)
    assert abs(ours - optimum(logits, labels, doubt=1 / 41)) < 1e-9
    sure = np.array([-1.0, -2.0, 1.0, 3.0])
    assert TemperatureScaling().fit(sure, [0, 0, 1, 1]).hit_bound_
    assert not TemperatureScaling(smooth=True).fit(sure, [0, 0, 1, 1]).hit_bound_


def test_decisions_and_ranking_stay():
    logits, labels = drawn(2, 6.0, 3000)
    probs = TemperatureScaling().fit(logits, labels).predict_proba(logits)
    before = 1 / (1 + np.exp(-logits))
    assert accuracy(labels, probs) == accuracy(labels, before)
    assert auroc(labels, probs) == pytest.approx(auroc(labels, before), abs=1e-9)


# Bounds


def test_separated_labels_end_at_the_lowest_temperature():
    calibrator = TemperatureScaling().fit([-1.0, -2.0, 1.0, 3.0], [0, 0, 1, 1])
    assert calibrator.temperature_ == 0.01
    assert calibrator.hit_bound_
    bounded = TemperatureScaling(lowest=0.5).fit([-1.0, -2.0, 1.0, 3.0], [0, 0, 1, 1])
    assert (bounded.temperature_, bounded.hit_bound_) == (0.5, True)


@pytest.mark.parametrize("k", [2, 3])
def test_contradicting_scores_end_at_the_highest_temperature(k):
    logits, labels = drawn(k, 1.0, 300)
    calibrator = TemperatureScaling().fit(-logits, labels)
    assert calibrator.temperature_ == 1e4
    assert calibrator.hit_bound_
    bounded = TemperatureScaling(highest=20.0).fit(-logits, labels)
    assert (bounded.temperature_, bounded.hit_bound_) == (20.0, True)
    assert np.array_equal(
        bounded.predict(logits), np.asarray(logits > 0) * 1 if k == 2 else logits.argmax(axis=1)
    )


def test_constant_scores_have_no_temperature_and_no_error():
    calibrator = TemperatureScaling().fit(np.zeros(10), [0, 1] * 5)
    assert calibrator.predict_proba([0.0]) == pytest.approx([0.5])


def test_an_optimum_beyond_a_bound_is_the_bound():
    logits, labels = drawn(3, 5.0, 500)
    assert TemperatureScaling(highest=2.0).fit(logits, labels).temperature_ == 2.0
    assert TemperatureScaling(lowest=30.0).fit(logits, labels).temperature_ == 30.0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"lowest": 0}, ("positive", "order", "got 0")),
        ({"lowest": 3, "highest": 2}, ("got 3 and 2",)),
        ({"highest": np.inf}, ("got 0.01 and inf",)),
        ({"lowest": np.nan}, ("got nan",)),
        ({"objective": "ece"}, ("objective", "'nll'", "'ece_mass'", "'ece_width'", "got 'ece'")),
        ({"objective": "ece_mass", "n_bins": 0}, ("n_bins", "whole number")),
    ],
)
def test_bad_settings_are_named(settings, message):
    with refuses(InputError, *message):
        TemperatureScaling(**settings).fit([0.0, 1.0], [0, 1])


# The papers' grid


def slow_ece(logits, labels, temperature, n_bins, mass):
    """The calibration error of the predicted class, one row at a time."""
    scored = []
    for row, label in zip(logits, labels, strict=True):
        e = [math.exp((v - max(row)) / temperature) for v in row]
        top = max(range(len(row)), key=lambda j: row[j])
        scored.append((e[top] / sum(e), top == label))
    scored.sort()
    bins = {}
    for rank, (confidence, right) in enumerate(scored):
        wide = min(int(confidence * n_bins), n_bins - 1)
        place = rank * n_bins // len(scored) if mass else wide
        bins.setdefault(place, []).append((confidence, right))
    return sum(abs(sum(c - r for c, r in rows)) for rows in bins.values()) / len(scored)


@pytest.mark.parametrize("n_bins", [10, 15])
@pytest.mark.parametrize("objective", ["ece_mass", "ece_width"])
def test_papers_grid_against_a_plain_loop(objective, n_bins):
    logits, labels = drawn(4, 2.0, 150, seed=3)
    grid = [t / 10 for t in range(1, 101)]
    errors = [slow_ece(logits, labels, t, n_bins, objective == "ece_mass") for t in grid]
    calibrator = TemperatureScaling(objective, n_bins=n_bins).fit(logits, labels)
    at = grid.index(calibrator.temperature_)
    assert errors[at] == pytest.approx(min(errors), abs=1e-12)


@pytest.mark.parametrize("objective", ["ece_mass", "ece_width"])
def test_papers_grid_takes_the_lowest_among_equals_and_knows_its_ends(objective):
    sure = TemperatureScaling(objective).fit(
        [[500.0, 0.0, 0.0], [0.0, 500.0, 0.0], [0.0, 0.0, 500.0]], [0, 1, 2]
    )
    assert sure.temperature_ == 0.1
    assert sure.hit_bound_
    logits, labels = drawn(3, 1.0, 300)
    lost = TemperatureScaling(objective).fit(100 * logits, (labels + 1) % 3)
    assert lost.temperature_ == 10.0
    assert lost.hit_bound_


def test_weights_of_the_papers_grid_are_repetitions():
    logits, labels = drawn(3, 2.0, 80)
    times = np.random.default_rng(0).integers(0, 4, 80)
    weighed = TemperatureScaling("ece_width").fit(logits, labels, times)
    repeated = TemperatureScaling("ece_width").fit(
        logits.repeat(times, axis=0), labels.repeat(times)
    )
    assert weighed.temperature_ == repeated.temperature_


# Real networks: the temperature printed beside their logits


SIX, CLEANLAB, NETCAL = "logits_cifar10_six_models", "probs_cleanlab", "probs_netcal_cifar"
PRINTED = [
    ("logits_resnet110_c10", "resnet110_c10", 2.3950),
    ("logits_resnet50_focal_c10", "resnet50_focal_c10", 1.0626),
    (SIX, "densenet_BC_100_12", 1.9577),
    (SIX, "pyramidnet_basic_110_270", 1.8164),
    (SIX, "resnet_basic_110", 2.6257),
    (SIX, "resnet_preact_bottleneck_164", 2.2628),
    (SIX, "shake_shake_26_2x64d_SSI_cutout16", 1.8458),
    (SIX, "wrn_28_10", 1.4150),
    (CLEANLAB, "20news", 0.4044),
    (CLEANLAB, "cifar10", 1.4717),
    (CLEANLAB, "mnist", 1.1518),
    (NETCAL, "lenet-5-cifar-10", 1.3763),
    (NETCAL, "wideresnet-16-4-cifar-10", 2.0392),
    (NETCAL, "lenet-5-cifar-100", 1.1126),
    (NETCAL, "wideresnet-16-4-cifar-100", 1.1124),
    ("probs_vgg16_c10", "vgg16_c10", 1.7026),
]


def calibration_half(folder, name):
    with np.load(data_file(folder, f"{name}.npz"), allow_pickle=False) as data:
        if "val_logits" in data:
            return data["val_logits"], data["val_labels"]
        chosen = data["val_idx"]
        if "logits" in data:
            return data["logits"][chosen], data["labels"][chosen]
        probs, labels = data["probs"][chosen].astype(np.float64), data["labels"][chosen]
    # The printed temperature of 20news leaves out 31 rows whose label has a probability of 0.
    there = probs[np.arange(len(labels)), labels] > 0
    return logits_from_probs(probs[there], floor=1e-30), labels[there]


@pytest.mark.data
@pytest.mark.parametrize(("folder", "name", "printed"), PRINTED, ids=[p[1] for p in PRINTED])
def test_temperature_of_a_real_network(folder, name, printed):
    logits, labels = calibration_half(folder, name)
    calibrator = TemperatureScaling().fit(logits, labels)
    assert calibrator.temperature_ == pytest.approx(printed, abs=6e-5)
    assert not calibrator.hit_bound_
    wide = np.asarray(logits, dtype=np.float64)
    ours = loss(wide, labels, calibrator.temperature_)
    assert abs(ours - optimum(wide, labels)) < 1e-9
