"""When no threshold keeps the promise."""

import copy
import pickle

import numpy as np
import pytest
from tests.sentences import assert_mentions

from calibrant.thresholds import (
    Cost,
    TargetUnreachable,
    accuracy,
    coverage,
    fpr,
    precision,
    recall,
    select,
)


def rows(n=600, seed=0, shift=1.5):
    rng = np.random.default_rng(seed)
    labels = (rng.random(n) < 0.2).astype(int)
    return labels, 1 / (1 + np.exp(-rng.normal(shift * labels - 2, 1)))


def failure(*args, **options):
    with pytest.raises(TargetUnreachable) as failed:
        select(*args, **options)
    return failed.value


def test_the_best_value_is_the_best_that_would_have_been_promised():
    labels, probs = rows()
    error = failure(labels, probs, hold=precision >= 0.9)
    point = select(labels, probs, hold=precision >= error.best, maximise=coverage)
    assert point.threshold == pytest.approx(error.threshold)
    assert failure(labels, probs, hold=precision >= error.best + 0.02).best is not None
    assert str(error.best)[:4] in str(error)


def test_estimates_that_never_meet_the_target_ask_for_no_labels():
    rng = np.random.default_rng(1)
    labels = rng.random(3000) < 0.2
    error = failure(labels, rng.random(3000), hold=[precision >= 0.6, recall >= 0.5])
    assert error.labels_needed is None
    assert_mentions(error.why, "estimates meet all", "more rows may", "not help")


def test_targets_that_fail_only_together_say_so():
    labels, probs = rows(4000, shift=2.5)
    select(labels, probs, hold=precision >= 0.8)
    select(labels, probs, hold=recall >= 0.95)
    error = failure(labels, probs, hold=[precision >= 0.8, recall >= 0.95])
    assert error.hold == ("precision>=0.8", "recall>=0.95")
    assert 0 < error.best < 0.8


def test_recall_needs_positives():
    labels, probs = rows(100)
    error = failure(labels, probs, hold=recall >= 0.95)
    assert_mentions(error.why, "positive rows", "few")
    assert error.positives_needed >= 59  # 0.95 ** 59 = 0.0485
    assert error.labels_needed > 100


@pytest.mark.parametrize("target", [coverage <= 0.05, fpr <= 0.01])
def test_a_share_that_acting_on_few_rows_keeps_names_its_rows(target):
    error = failure(*rows(40), hold=target, maximise=precision)
    assert error.labels_needed > 40


def test_more_rows_are_asked_for_and_then_suffice():
    world_rows = rows(400, seed=3, shift=4.0)
    error = failure(*world_rows, hold=precision >= 0.9, confidence=0.999)
    assert error.labels_needed > 400
    kept = 0
    for seed in range(20):
        try:
            fresh = rows(error.labels_needed, 100 + seed, 4.0)
            select(*fresh, hold=precision >= 0.9, confidence=0.999)
            kept += 1
        except TargetUnreachable:
            continue
    assert kept >= 9  # asked for: four times in five


def test_without_confidence_the_sentence_speaks_of_estimates():
    labels, probs = rows()
    error = failure(labels, 1 - probs, hold=precision >= 0.9, confidence=None)
    assert "no threshold meets" in str(error)
    assert error.confidence is None


def test_costs_and_accuracy_fail_in_words():
    labels, probs = rows()
    assert failure(labels, probs, hold=Cost(1, 5) <= 0.1).best > 0.1
    error = failure(labels, probs, hold=accuracy >= 0.999)
    assert error.of is None
    assert "predicted correctly" in str(error)


def test_the_error_survives_copies_and_pickles():
    error = failure(*rows(), hold=precision >= 0.9)
    for twin in (copy.deepcopy(error), pickle.loads(pickle.dumps(error))):
        assert twin.to_dict() == error.to_dict()
        assert str(twin) == str(error)
    assert TargetUnreachable.from_dict(error.to_dict()).to_dict() == error.to_dict()
