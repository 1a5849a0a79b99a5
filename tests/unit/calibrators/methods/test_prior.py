"""Prior correction: Bayes' rule by hand, against known truth, and what it leaves alone."""

import json

import numpy as np
import pytest
from tests.sentences import refuses

from calibrant.calibrators import PriorCorrection, TemperatureScaling, from_dict
from calibrant.calibrators.methods.prior import as_prior
from calibrant.errors import InputError
from calibrant.metrics import nll


def corrected(probs, source, target):
    """Bayes' rule in plain Python, one row at a time."""
    out = []
    for row in probs:
        new = [p * t / s for p, s, t in zip(row, source, target, strict=True)]
        out.append([v / sum(new) for v in new])
    return np.array(out)


def test_two_classes_by_hand():
    # Odds 1 to 1 under equal classes become 1 to 9 where one row in ten is positive; odds 3 to 1
    # become 3 to 9.
    correction = PriorCorrection(source=[0.5, 0.5], target=[0.9, 0.1]).fit([0.0], [0])
    assert correction.predict_proba([0.0, np.log(3)]) == pytest.approx([0.1, 0.25])


def test_three_classes_against_a_plain_loop():
    rng = np.random.default_rng(0)
    probs = rng.dirichlet([1, 1, 1], 50)
    source, target = [0.2, 0.5, 0.3], [0.6, 0.1, 0.3]
    correction = PriorCorrection(source, target).fit(np.log(probs), np.arange(50) % 3)
    found = correction.predict_proba(np.log(probs))
    assert found == pytest.approx(corrected(probs, source, target), abs=1e-12)


def test_priors_default_to_uniform_and_to_the_rows():
    labels = [0, 0, 0, 1]
    correction = PriorCorrection().fit(np.zeros(4), labels)
    assert correction.source_.tolist() == [0.5, 0.5]
    assert correction.target_.tolist() == [0.75, 0.25]
    weighed = PriorCorrection().fit(np.zeros(4), labels, weights=[1, 1, 1, 5])
    assert weighed.target_ == pytest.approx([3 / 8, 5 / 8])


def test_counts_are_as_good_as_frequencies():
    assert as_prior([30, 10], 2, "source").tolist() == [0.75, 0.25]


def test_equal_priors_change_nothing():
    logits = np.random.default_rng(0).normal(size=(20, 4))
    correction = PriorCorrection([1, 2, 3, 4], [2, 4, 6, 8]).fit(logits, np.arange(20) % 4)
    plain = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    assert correction.predict_proba(logits) == pytest.approx(plain, abs=1e-14)


def test_there_and_back_again():
    logits = np.random.default_rng(0).normal(size=(20, 3))
    labels = np.arange(20) % 3
    there, here = [0.7, 0.2, 0.1], [0.1, 0.3, 0.6]
    first = PriorCorrection(there, here).fit(logits, labels)
    back = PriorCorrection(here, there).fit(logits, labels)
    plain = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    assert first.then(back).predict_proba(logits) == pytest.approx(plain, abs=1e-14)


def test_known_truth_of_gaussian_classes():
    # x ~ N(+-1, 1): log-odds are 2x plus the log-odds of the prior, so the answer is exact.
    rng = np.random.default_rng(0)
    rare = 0.03
    labels = (rng.random(20_000) < rare) * 1
    x = rng.normal(2.0 * labels - 1.0)
    correction = PriorCorrection(source=[1, 1], target=[1 - rare, rare]).fit(2 * x, labels)
    truth = 1 / (1 + np.exp(-(2 * x + np.log(rare / (1 - rare)))))
    assert correction.predict_proba(2 * x) == pytest.approx(truth, abs=1e-12)
    learned = PriorCorrection().fit(2 * x, labels)
    assert nll(labels, learned.predict_proba(2 * x)) == pytest.approx(nll(labels, truth), rel=1e-3)


def test_over_confidence_stays_and_the_next_step_mends_it():
    rng = np.random.default_rng(1)
    labels = (rng.random(20_000) < 0.1) * 1
    logits = 3 * 2 * rng.normal(2.0 * labels - 1.0)  # three times too sure, for equal classes
    wrong = PriorCorrection().fit(logits, labels)
    right = TemperatureScaling().then(PriorCorrection()).fit(logits, labels)
    both = PriorCorrection(target=[0.9, 0.1]).then(TemperatureScaling()).fit(logits, labels)
    losses = [nll(labels, c.predict_proba(logits)) for c in (wrong, right, both)]
    assert losses[1] < losses[0]
    assert losses[2] < losses[0]


def test_a_class_that_never_occurred_stays_possible():
    correction = PriorCorrection().fit(np.zeros((3, 3)), [0, 1, 0])
    assert correction.target_.tolist() == pytest.approx([2 / 3, 1 / 3, 0])
    probs = correction.predict_proba([[0.0, 0.0, 0.0], [0.0, 0.0, 60.0]])
    assert 0 < probs[0, 2] < 1e-11
    assert probs[1, 2] > 0.99


def test_saved_and_loaded():
    correction = PriorCorrection(source=np.array([3, 1, 1])).fit(np.zeros((4, 3)), [0, 1, 2, 2])
    loaded = from_dict(json.loads(json.dumps(correction.to_dict())))
    assert loaded.source == [3, 1, 1]
    logits = np.random.default_rng(0).normal(size=(9, 3))
    assert np.array_equal(loaded.predict_proba(logits), correction.predict_proba(logits))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"source": [0.5, 0.5]}, ("source", "number", "3 classes", "got (2")),
        ({"target": [[1, 1, 1]]}, ("target", "number", "3 classes")),
        ({"source": [0.5, -0.5, 1]}, ("source", "class frequencies", "none", "negative")),
        ({"target": [0, 0, 0]}, ("target", "class frequencies")),
        ({"target": [1, np.nan, 1]}, ("target", "class frequencies")),
        ({"target": [1, np.inf, 1]}, ("target", "class frequencies")),
    ],
)
def test_bad_priors_are_named(settings, message):
    with refuses(InputError, *message):
        PriorCorrection(**settings).fit(np.zeros((3, 3)), [0, 1, 2])
