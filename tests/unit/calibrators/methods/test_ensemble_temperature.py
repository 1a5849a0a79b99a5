"""Ensemble temperature scaling: by hand, against plain searches, and where the truth is known."""

import numpy as np
import pytest
from tests.data_sets import data_file
from tests.sentences import refuses

from calibrant.calibrators import TemperatureScaling
from calibrant.calibrators.methods.ensemble_temperature import EnsembleTemperatureScaling
from calibrant.convert import probs_from_logits
from calibrant.errors import InputError
from calibrant.metrics import brier, nll
from calibrant.testing import WORLDS, check_calibrator

OBJECTIVES = ("nll", "mse")
SCORE = {"nll": nll, "mse": brier}


def multiclass(n, seed):
    draw = WORLDS["multiclass"].draw(n, seed)
    return np.log(draw.probs), draw.labels


def mixed(logits, temperature, shares):
    """Mix the three parts as the formula says."""
    k = logits.shape[1]
    softened, own = probs_from_logits(logits / temperature), probs_from_logits(logits)
    return shares[0] * softened + shares[1] * own + shares[2] / k


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_the_contract(objective):
    check_calibrator(EnsembleTemperatureScaling(objective))


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_by_hand(objective):
    # p = 0.9 where three of four are right: 0.625 * 0.9 + 0.375 * 0.5 = 0.75.
    z = np.log(9.0)
    calibrator = EnsembleTemperatureScaling(objective, highest=1.0)
    calibrator.fit(4 * [z] + 4 * [-z], [1, 1, 1, 0, 0, 0, 0, 1])
    if objective == "mse":  # with 'nll' another T with other shares is as good
        assert calibrator.temperature_ == pytest.approx(1.0)
        assert calibrator.hit_bound_
        assert calibrator.shares_[2] == pytest.approx(0.375, abs=1e-9)
    assert calibrator.predict_proba([z, 0.0]) == pytest.approx([0.75, 0.5], abs=1e-9)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_predictions_follow_the_formula(objective):
    logits, labels = multiclass(400, 1)
    calibrator = EnsembleTemperatureScaling(objective).fit(logits, labels)
    fresh, _ = multiclass(300, 2)
    expected = mixed(fresh, calibrator.temperature_, calibrator.shares_)
    assert calibrator.predict_proba(fresh) == pytest.approx(expected, abs=1e-14)
    assert calibrator.shares_.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_no_temperature_and_then_no_shares_on_a_grid_do_better(objective, seed):
    logits, labels = multiclass(150, seed)
    labels[:15] = np.roll(labels[:15], 1)  # some confident errors, for the uniform part
    score = SCORE[objective]
    calibrator = EnsembleTemperatureScaling(objective).fit(logits, labels)
    alone = score(labels, probs_from_logits(logits / calibrator.temperature_))
    tried = [score(labels, probs_from_logits(logits / t)) for t in np.geomspace(0.05, 50, 400)]
    found = score(labels, calibrator.predict_proba(logits))
    if objective == "mse":
        assert alone <= min(tried) + 1e-12
    assert found <= min(tried) + 1e-12
    for a in np.linspace(0, 1, 13):
        for b in np.linspace(0, 1 - a, 13):
            shares = np.array([a, b, max(0.0, 1 - a - b)])
            other = mixed(logits, calibrator.temperature_, shares)
            assert found <= score(labels, other / other.sum(axis=1, keepdims=True)) + 1e-12


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_no_temperature_with_shares_of_its_own_is_likelier(seed):
    logits, labels = multiclass(150, seed)
    labels[:15] = np.roll(labels[:15], 1)
    found = nll(labels, EnsembleTemperatureScaling().fit(logits, labels).predict_proba(logits))
    for t in np.geomspace(0.2, 20, 30):
        for a in np.linspace(0, 1, 9):
            for b in np.linspace(0, 1 - a, 9):
                other = mixed(logits, t, np.array([a, b, max(0.0, 1 - a - b)]))
                other /= other.sum(axis=1, keepdims=True)
                assert found <= nll(labels, other) + 1e-6


def test_true_shares_are_recovered():
    rng = np.random.default_rng(0)
    logits = 3.0 * rng.normal(size=(60_000, 4))
    truth = 0.7 * probs_from_logits(logits) + 0.3 / 4
    labels = (rng.random((len(truth), 1)) > truth.cumsum(axis=1)).sum(axis=1)
    # T may not soften, so that softened and own probabilities are the same part.
    for objective in OBJECTIVES:
        calibrator = EnsembleTemperatureScaling(objective, highest=1.0).fit(logits, labels)
        assert calibrator.shares_[2] == pytest.approx(0.3, abs=0.02)


def test_a_temperature_is_recovered_and_needs_no_other_part():
    rng = np.random.default_rng(1)
    logits = 5.0 * rng.normal(size=(40_000, 4))
    truth = probs_from_logits(logits / 2.0)
    labels = (rng.random((len(truth), 1)) > truth.cumsum(axis=1)).sum(axis=1)
    for objective in OBJECTIVES:
        calibrator = EnsembleTemperatureScaling(objective).fit(logits, labels)
        assert calibrator.temperature_ == pytest.approx(2.0, abs=0.05)
        assert calibrator.shares_[0] > 0.9


def test_labels_without_any_signal_still_leave_the_order_of_classes():
    rng = np.random.default_rng(2)
    logits, labels = rng.normal(size=(500, 3)), rng.integers(0, 3, 500)
    logits[np.arange(500), labels] -= 3.0
    for objective in OBJECTIVES:
        calibrator = EnsembleTemperatureScaling(objective).fit(logits, labels)
        assert calibrator.hit_bound_ or objective == "nll"
        assert calibrator.shares_[0] + calibrator.shares_[1] >= 1e-3
        probs = calibrator.predict_proba(logits)
        assert np.array_equal(probs.argmax(axis=1), logits.argmax(axis=1))
        assert probs == pytest.approx(np.full((500, 3), 1 / 3), abs=1e-3)


def test_on_real_logits_it_is_never_worse_than_its_parts():
    with np.load(data_file("logits_resnet110_c10", "resnet110_c10.npz")) as arrays:
        logits, labels = arrays["val_logits"], arrays["val_labels"]
        fresh = arrays["test_logits"]
    calibrator = EnsembleTemperatureScaling().fit(logits, labels)
    alone = TemperatureScaling().fit(logits, labels)
    assert nll(labels, calibrator.predict_proba(logits)) <= nll(
        labels, alone.predict_proba(logits)
    ) * (1 + 1e-12)
    assert np.array_equal(calibrator.predict(fresh), fresh.argmax(axis=1))


def test_bad_settings_are_refused():
    with refuses(InputError, "objective", "'nll'", "'mse'", "got 'ece'"):
        EnsembleTemperatureScaling("ece").fit([0.0, 1.0], [0, 1])
    with pytest.raises(InputError, match="lowest and highest"):
        EnsembleTemperatureScaling(lowest=2.0, highest=1.0).fit([0.0, 1.0], [0, 1])


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_bounds_without_a_temperature_between_are_refused(objective):
    with refuses(InputError, "lowest", "highest", "positive", "order"):
        EnsembleTemperatureScaling(objective, lowest=2.0, highest=1.0).fit([-1.0, 1.0], [0, 1])
