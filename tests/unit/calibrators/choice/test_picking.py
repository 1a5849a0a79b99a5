"""Which of several tried methods is picked: by hand, and where the truth is known."""

from types import SimpleNamespace

import numpy as np
import pytest
from tests.sentences import assert_mentions

from calibrant.calibrators import (
    AutoCalibrator,
    Identity,
    StructuredVectorScaling,
    TemperatureScaling,
)
from calibrant.calibrators.choice.auto import best_beyond_temperature, simplest_near_best
from calibrant.calibrators.choice.trial import Trial

ROWS = SimpleNamespace(mass=np.full(4, 0.25))
MADE = {"identity": Identity(), "temperature": TemperatureScaling()}


def trials(**losses):
    """Make trials of four rows each; None for a method that was left out."""
    rich = StructuredVectorScaling()
    found = {name: None if each is None else np.array(each) for name, each in losses.items()}
    return [Trial(MADE.get(name, rich), name, losses=each) for name, each in found.items()]


def picked(rule, tried, number):
    place, why = rule(tried, ROWS, number)
    return tried[place].name, why


def test_a_richer_method_must_beat_temperature_by_the_margin():
    # The gains over temperature are 0.1, 0.3, 0.1, 0.3: mean 0.2, standard error 0.1 / sqrt(4).
    tried = trials(
        identity=[2.0, 2.0, 2.0, 2.0], temperature=[1.0, 1.0, 1.0, 1.0], svs=[0.9, 0.7, 0.9, 0.7]
    )
    name, why = picked(best_beyond_temperature, tried, 3.9)
    assert name == "svs"
    assert_mentions(why, "svs has the best score", "clearly better than temperature")
    name, why = picked(best_beyond_temperature, tried, 4.1)
    assert name == "temperature"
    assert_mentions(why, "temperature is chosen", "(svs)", "not clearly better")


def test_the_baseline_is_the_better_of_identity_and_temperature():
    ahead = trials(identity=[1.0, 1.0, 1.0, 1.0], temperature=[0.0, 1.9, 0.1, 1.9])
    assert picked(best_beyond_temperature, ahead, 1.5) == (
        "temperature", "temperature has the best score.",
    )  # fmt: skip
    assert picked(simplest_near_best, ahead, 1.0)[0] == "identity"
    behind = trials(identity=[1.0, 1.0, 1.0, 1.0], temperature=[0.0, 2.0, 0.1, 2.0])
    name, why = picked(best_beyond_temperature, behind, 1.5)
    assert name == "identity"
    assert_mentions(why, "no method has a better score", "uncalibrated model")


def test_a_clearly_better_method_is_picked_over_the_best_score():
    tried = trials(
        identity=[1.0, 1.0, 1.0, 1.0], ets=[0.9, 0.9, 0.9, 0.9], svs=[-2.0, 2.0, 1.4, 1.4]
    )
    name, why = picked(best_beyond_temperature, tried, 1.5)
    assert name == "ets"
    assert_mentions(why, "ets", "clearly better than the uncalibrated model")
    name, why = picked(best_beyond_temperature, [tried[0], tried[2]], 1.5)
    assert (name, why[:20]) == ("identity", "Even the best method")


def test_an_excluded_method_is_never_picked():
    out = trials(identity=None, temperature=None, svs=[1.0, 1.0, 1.0, 1.0])
    assert picked(best_beyond_temperature, out, 1.5) == ("svs", "svs has the best score.")
    assert picked(simplest_near_best, out, 9.0)[0] == "svs"
    alone = trials(identity=[1.0, 1.0, 1.0, 1.0], temperature=None)
    for rule in (best_beyond_temperature, simplest_near_best):
        name, why = picked(rule, alone, 1.0)
        assert name == "identity"
        assert_mentions(why, "uncalibrated", "every method was excluded")


def drawn(seed, n=600, k=5, sharper=1.0):
    """Draw labels of a softmax of normal logits, and return these made too sharp."""
    rng = np.random.default_rng(seed)
    logits = 2.0 * rng.normal(size=(n, k))
    return sharper * logits, (logits + rng.gumbel(size=(n, k))).argmax(axis=1)


def test_below_500_rows_and_with_two_classes_the_simplest_near_the_best_is_taken():
    logits, labels = drawn(3, n=499, sharper=1.5)
    few = AutoCalibrator().fit(logits, labels).comparison_
    assert few == AutoCalibrator(tolerance=1.0).fit(logits, labels).comparison_
    logits, labels = drawn(3, k=2, sharper=1.5)
    two = AutoCalibrator().fit(logits, labels).comparison_
    assert two == AutoCalibrator(tolerance=0.5).fit(logits, labels).comparison_


def test_weighted_rows_count_as_far_as_they_tell_something():
    logits, labels = drawn(3, n=1000, sharper=1.5)
    weights = np.where(np.arange(1000) < 100, 1000.0, 1.0)  # worth about 100 rows
    found = AutoCalibrator().fit(logits, labels, weights).comparison_
    assert [each.method for each in found.candidates] == ["identity", "temperature"]
    assert found == AutoCalibrator(tolerance=1.0).fit(logits, labels, weights).comparison_


def test_a_model_that_is_right_in_every_row_is_not_made_certain():
    """One that says 99.9 % and is right in 600 of 600 rows may still be right as it is."""
    rng = np.random.default_rng(0)
    logits = 9.0 * np.eye(3)[rng.integers(0, 3, 600)] + rng.normal(size=(600, 3))
    auto = AutoCalibrator().fit(logits, logits.argmax(axis=1))
    assert [each.method for each in auto.comparison_.candidates] == ["identity", "temperature"]
    surest = auto.predict_proba([[4.0, 0.0, 0.0]]).max()
    assert surest < 0.9999


@pytest.mark.parametrize(("wrong", "tried"), [(9, 2), (10, 5)])
def test_rows_that_the_model_gets_wrong_count(wrong, tried):
    rng = np.random.default_rng(1)
    logits = 5.0 * np.eye(3)[rng.integers(0, 3, 800)] + rng.normal(size=(800, 3))
    labels = logits.argmax(axis=1)
    labels[:wrong] = (labels[:wrong] + 1) % 3
    assert len(AutoCalibrator().fit(logits, labels).comparison_.candidates) == tried
