"""`keeps_order_of`: which calibrators map the probability of a class by one rising function."""

import numpy as np
import pytest

from calibrant.calibrators import (
    AutoCalibrator,
    DirichletCalibration,
    EnsembleTemperatureScaling,
    FocalRecovery,
    Identity,
    IsotonicCalibration,
    MatrixScaling,
    PlattScaling,
    PriorCorrection,
    QuadraticScaling,
    StrictIsotonic,
    TemperatureScaling,
)
from calibrant.calibrators.base.calibrator import Calibrator
from calibrant.calibrators.methods.focal_temperature import FocalTemperatureScaling
from calibrant.convert import log_odds_from_logits, log_probs_from_logits
from calibrant.errors import InputError

ODDS = np.linspace(-9.0, 9.0, 73)


def fit(calibrator, k, seed=0):
    rng = np.random.default_rng(seed)
    logits = rng.normal(scale=2.0, size=(400, k))
    draws = rng.gumbel(size=(400, k))
    return calibrator.fit(logits, (1.6 * logits + draws).argmax(axis=1), classes=list(range(k)))


def with_params(calibrator, k, **params):
    fitted = fit(calibrator, k)
    for name, value in params.items():
        setattr(fitted, name, value)
    return fitted


def new_odds(calibrator, position, rest):
    """Calibrated log-odds of a class on a grid of its own, the others in fixed proportion."""
    k = calibrator.n_classes
    others = np.repeat(log_probs_from_logits(np.asarray([rest], dtype=float)), len(ODDS), axis=0)
    log_probs = calibrator.predict_log_proba(np.insert(others, position, ODDS, axis=1))
    odds = log_odds_from_logits(log_probs)
    return odds[:, position] if k > 2 else odds if position else -odds


def keeps_order_by_trial(calibrator, position):
    """Slow reference: try many other classes, and look whether one rising curve comes out."""
    k = calibrator.n_classes
    rests = [np.zeros(k - 1), *np.random.default_rng(1).normal(scale=2.0, size=(20, k - 1))]
    curves = np.stack([new_odds(calibrator, position, rest) for rest in rests])
    return bool((np.diff(curves[0]) > 0).all() and np.ptp(curves, axis=0).max() < 1e-6)


CASES = {
    "identity, 2": (lambda: fit(Identity(), 2), True),
    "identity, 3": (lambda: fit(Identity(), 3), True),
    "temperature, 2": (lambda: fit(TemperatureScaling(), 2), True),
    "temperature, 3": (lambda: fit(TemperatureScaling(), 3), False),
    "temperature 1, 3": (lambda: with_params(TemperatureScaling(), 3, temperature_=1.0), True),
    "platt, 2": (lambda: fit(PlattScaling(), 2), True),
    "platt, 3": (lambda: fit(PlattScaling(), 3), False),
    "strict isotonic, 2": (lambda: fit(StrictIsotonic(), 2), True),
    "isotonic, 2": (lambda: fit(IsotonicCalibration(), 2), False),
    "ets without softening, 4": (
        lambda: with_params(
            EnsembleTemperatureScaling(), 4, temperature_=2.0, shares_=np.array([0.0, 0.8, 0.2])
        ),
        True,
    ),
    "ets, 4": (
        lambda: with_params(
            EnsembleTemperatureScaling(), 4, temperature_=2.0, shares_=np.array([0.1, 0.7, 0.2])
        ),
        False,
    ),
    "ets, 2": (lambda: fit(EnsembleTemperatureScaling(), 2), True),
    "recovery, 3": (lambda: fit(FocalRecovery(gamma=2.0), 3), False),
    "recovery of cross-entropy, 3": (lambda: fit(FocalRecovery(gamma=0.0), 3), True),
    "focal temperature, 2": (lambda: fit(FocalTemperatureScaling(), 2), True),
    "focal temperature, 3": (lambda: fit(FocalTemperatureScaling(), 3), False),
    "matrix, 2": (lambda: fit(MatrixScaling(), 2), True),
    "matrix, 3": (lambda: fit(MatrixScaling(), 3), False),
    "matrix that turns two classes round": (
        lambda: with_params(MatrixScaling(), 2, weight_=np.array([[0.0, 1.0], [1.0, 0.0]])),
        False,
    ),
    "dirichlet, 2": (lambda: fit(DirichletCalibration(), 2), True),
    "dirichlet that rises and falls": (
        lambda: with_params(DirichletCalibration(), 2, weight_=np.array([[0.0, 0.0], [0.5, 1.0]])),
        False,
    ),
    "quadratic that rises": (lambda: fit(QuadraticScaling(), 2), True),
    "quadratic that turns": (
        lambda: with_params(
            QuadraticScaling(),
            2,
            maps_=[{"bend": 0.5, "slope": 1.0, "intercept": 0.0, "low": -5.0, "high": 5.0}],
        ),
        False,
    ),
    "chain of both kinds, 2": (lambda: fit(PlattScaling().then(TemperatureScaling()), 2), True),
    "chain with ties, 2": (lambda: fit(PlattScaling().then(IsotonicCalibration()), 2), False),
    "automatic, 2": (lambda: fit(AutoCalibrator(), 2), True),
}


@pytest.mark.parametrize("name", CASES)
def test_says_what_a_trial_finds(name):
    build, keeps = CASES[name]
    calibrator = build()
    assert isinstance(calibrator, Calibrator)
    for position in range(calibrator.n_classes):
        assert calibrator.keeps_order_of(position) is keeps
        assert keeps_order_by_trial(calibrator, position) is keeps


def test_a_prior_keeps_the_order_of_a_class_whose_others_move_together():
    # The priors of classes 1 and 2 are halved together, so only class 0 moves against one rest.
    calibrator = fit(PriorCorrection(source=[0.2, 0.4, 0.4], target=[0.6, 0.2, 0.2]), 3)
    assert [calibrator.keeps_order_of(k) for k in range(3)] == [True, False, False]
    assert [keeps_order_by_trial(calibrator, k) for k in range(3)] == [True, False, False]
    # p = 1/2 and ratio 3 against 1/2: 1.5 to 0.25.
    half = np.log([[0.5, 0.1, 0.4], [0.5, 0.25, 0.25]])
    assert calibrator.predict_proba(half)[:, 0] == pytest.approx([6 / 7, 6 / 7])


def test_the_same_probability_moves_differently_under_a_temperature():
    calibrator = with_params(TemperatureScaling(), 3, temperature_=2.0)
    probs = np.log([[0.5, 0.5 - 1e-9, 1e-9], [0.5, 0.25, 0.25]])
    # Square roots: 0.707 to 0.707 + 0, and 0.707 to 0.5 + 0.5.
    expected = [0.5, np.sqrt(0.5) / (np.sqrt(0.5) + 1.0)]
    assert calibrator.predict_proba(probs)[:, 0] == pytest.approx(expected, abs=1e-4)


def test_a_position_beyond_the_classes_is_refused():
    with pytest.raises(InputError, match=r"position .* 0 to 2, got 3"):
        fit(Identity(), 3).keeps_order_of(3)
