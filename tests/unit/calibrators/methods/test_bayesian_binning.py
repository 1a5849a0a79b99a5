"""Bayesian binning: the paper in plain loops, hand-computed cases, weights, saving."""

import json
import math

import numpy as np
import pytest
from tests.sentences import refuses

from calibrant.calibrators import Calibrator
from calibrant.calibrators.methods.bayesian_binning import BayesianBinning, candidate_bin_counts
from calibrant.errors import InputError
from calibrant.testing import WORLDS


def logits_of(name, n, seed):
    draw = WORLDS[name].draw(n, seed)
    probs = np.clip(draw.probs.astype(np.float64), 1e-6, 1 - 1e-6)
    return (np.log(probs) - np.log1p(-probs) if probs.ndim == 1 else np.log(probs)), draw.labels


def sigmoid(score):
    return 1.0 / (1.0 + math.exp(-score))


def slow_model(scores, events, n_bins):
    """Cut sorted rows into bins of equal frequency; return edges, log score, posterior means."""
    n = len(scores)
    bins, edges, last = [[]], [], 0
    for i in range(n):
        first = i == 0 or scores[i] != scores[i - 1]
        if first:
            index = i * n_bins // n
            if index != last:
                bins.append([])
                edges.append(scores[i])
            last = index
        bins[-1].append(events[i])
    found, total_prior = len(bins), 2.0
    borders = [0.0, *(sigmoid(e) for e in edges), 1.0]
    score, means = 0.0, []
    for b in range(found):
        p = (borders[b] + borders[b + 1]) / 2
        prior = total_prior / found
        alpha, beta = prior * p, prior * (1 - p)
        m, rows = sum(bins[b]), len(bins[b])
        score += math.lgamma(prior) - math.lgamma(rows + prior)
        score += math.lgamma(m + alpha) - math.lgamma(alpha)
        score += math.lgamma(rows - m + beta) - math.lgamma(beta)
        means.append((m + alpha) / (rows + prior))
    return edges, score, means


def slow_answers(logits, labels, asked):
    order = sorted(range(len(logits)), key=lambda i: logits[i])
    scores, events = [float(logits[i]) for i in order], [int(labels[i]) for i in order]
    n = len(scores)
    root = round(n ** (1 / 3), 10)
    highest = max(1, min(math.ceil(n / 5), math.ceil(10 * root), len(set(scores))))
    lowest = min(max(1, math.floor(root / 10)), highest)
    models = {}
    for n_bins in range(lowest, highest + 1):
        edges, score, means = slow_model(scores, events, n_bins)
        models[tuple(edges)] = (score, means)
    best = max(score for score, _ in models.values())
    out = []
    for s in asked:
        top = bottom = 0.0
        for edges, (score, means) in models.items():
            b = sum(1 for e in edges if e <= s)
            top += math.exp(score - best) * means[b]
            bottom += math.exp(score - best)
        out.append(top / bottom)
    return out


@pytest.mark.parametrize("name", ["binary", "rare", "tied", "calibrated"])
@pytest.mark.parametrize("n", [7, 60, 300])
def test_it_is_the_paper_in_plain_loops(name, n):
    logits, labels = logits_of(name, n, 3)
    labels[np.argmin(logits)], labels[np.argmax(logits)] = 0, 1  # both classes occur
    asked = np.concatenate([logits[:40], np.linspace(-9, 9, 30)])
    found = BayesianBinning().fit(logits, labels).predict_proba(asked)
    assert found == pytest.approx(slow_answers(logits, labels, asked), abs=1e-10)


def test_two_models_by_hand():
    # Six rows allow B = 1 and B = 2. Scores are symmetric, the second bin begins at 0.
    logits, labels = [-3.0, -2.0, -1.0, 0.0, 1.0, 2.0], [0, 0, 1, 0, 1, 1]
    one = math.gamma(2) / math.gamma(8) * math.gamma(4) ** 2  # p = 1/2: alpha = beta = 1
    beta = math.gamma
    low = beta(1) / beta(4) * beta(1.25) / beta(0.25) * beta(2.75) / beta(0.75)  # p = 1/4
    high = beta(1) / beta(4) * beta(2.75) / beta(0.75) * beta(1.25) / beta(0.25)  # p = 3/4
    two = low * high
    expected = [(one * 4 / 8 + two * x / 4) / (one + two) for x in (1.25, 2.75)]
    found = BayesianBinning().fit(logits, labels).predict_proba([-9.0, 9.0])
    assert found == pytest.approx(expected, abs=1e-12)


def test_numbers_of_bins_tried():
    assert candidate_bin_counts(4, 4) == range(1, 2)
    assert candidate_bin_counts(1000, 1000) == range(1, 101)  # 10 / 10 to 10 x 10
    assert candidate_bin_counts(100.0, 100) == range(1, 21)  # five rows a bin
    assert candidate_bin_counts(8000, 8000) == range(2, 201)
    assert candidate_bin_counts(8000, 12) == range(2, 13)  # no more bins than scores
    assert candidate_bin_counts(0.3, 2) == range(1, 2)
    assert candidate_bin_counts(1e12, 10**6) == range(1000, 2001)


@pytest.mark.parametrize("name", ["binary", "tied", "multiclass"])
def test_a_weight_equals_a_repetition(name):
    logits, labels = logits_of(name, 250, 2)
    times = np.random.default_rng(0).integers(0, 4, 250)
    weighted = BayesianBinning().fit(logits, labels, times).predict_proba(logits)
    repeated = BayesianBinning().fit(np.repeat(logits, times, axis=0), np.repeat(labels, times))
    assert weighted == pytest.approx(repeated.predict_proba(logits), abs=1e-10)


@pytest.mark.parametrize("name", ["binary", "multiclass"])
def test_saved_and_loaded_it_answers_the_same_bits(name):
    logits, labels = logits_of(name, 300, 4)
    calibrator = BayesianBinning().fit(logits, labels)
    loaded = Calibrator.from_dict(json.loads(json.dumps(calibrator.to_dict(), allow_nan=False)))
    assert isinstance(loaded, BayesianBinning)
    assert np.array_equal(loaded.predict_log_proba(logits), calibrator.predict_log_proba(logits))


def test_turning_scores_and_labels_round_turns_the_prior_round():
    # One bin from 0 to 1 knows no direction.
    logits, labels = np.array([-1.0, 0.5, 2.0, 3.0]), np.array([0, 1, 1, 1])
    there = BayesianBinning().fit(logits, labels).predict_proba([0.0])
    back = BayesianBinning().fit(-logits, 1 - labels).predict_proba([0.0])
    assert there == pytest.approx(1 - back)


def test_many_rows_find_the_truth():
    draw = WORLDS["binary"].draw(20_000, 7)
    logits = np.log(draw.probs) - np.log1p(-draw.probs)
    found = BayesianBinning().fit(logits, draw.labels).predict_proba(logits)
    assert np.abs(found - draw.posterior).mean() < 0.5 * np.abs(draw.probs - draw.posterior).mean()


def test_constant_separated_and_saturated_scores():
    constant = BayesianBinning().fit(np.zeros(50), np.arange(50) % 5 == 0)
    assert constant.predict_proba([3.0]) == pytest.approx([11 / 52])
    labels = np.repeat([0, 1], 30)
    separated = BayesianBinning().fit(np.linspace(-5.0, 5.0, 60), labels)
    probs = separated.predict_proba([-9.0, 9.0])
    assert 0 < probs[0] < 0.1
    assert 0.9 < probs[1] < 1
    huge = BayesianBinning().fit(np.linspace(-1e4, 1e4, 60), labels)
    assert np.isfinite(huge.predict_log_proba(np.array([[0.0, 1e4], [0.0, -1e4]]))).all()


def test_a_class_that_never_occurs_is_refused():
    with refuses(InputError, "rows of every class"):
        BayesianBinning().fit([0.0, 1.0], [0, 0])
