"""Focal recovery: by hand, against the minimiser of the focal loss, and at every extreme."""

import numpy as np
import pytest
from scipy.optimize import minimize
from tests.sentences import refuses

from calibrant.calibrators.methods.focal_recovery import FocalRecovery, recover_logits
from calibrant.convert import logits_from_probs, probs_from_logits
from calibrant.errors import InputError
from calibrant.testing import check_calibrator

# Minimisers q of the expected focal loss where the posterior is 0.6, 0.8, 0.9 and 0.99.
POSTERIORS = (0.6, 0.8, 0.9, 0.99)
MINIMISERS = {
    1.0: (0.557, 0.686, 0.774, 0.927),
    2.0: (0.538, 0.627, 0.694, 0.846),
    3.0: (0.528, 0.595, 0.647, 0.780),
    5.0: (0.518, 0.562, 0.597, 0.695),
    10.0: (0.510, 0.533, 0.552, 0.608),
}


def recovered(probs, gamma):
    """Apply the map to probabilities (n, K) or (n,)."""
    logits = logits_from_probs(np.asarray(probs))
    return FocalRecovery(gamma).fit(logits, np.zeros(len(logits), dtype=int)).predict_proba(logits)


def formula(probs, gamma):
    """Write the formula down as it stands."""
    h = probs / ((1 - probs) ** gamma - gamma * probs * (1 - probs) ** (gamma - 1) * np.log(probs))
    return h / h.sum(axis=1, keepdims=True)


def minimiser(posterior, gamma):
    """Find the softmax that minimises the expected focal loss."""
    posterior = np.asarray(posterior)

    def risk(z):
        q = probs_from_logits(np.append(z, 0.0)[None])[0]
        return -(posterior * (1 - q) ** gamma * np.log(q)).sum()

    found = minimize(risk, np.zeros(len(posterior) - 1), method="BFGS", options={"gtol": 1e-10})
    return probs_from_logits(np.append(found.x, 0.0)[None])[0]


def test_the_contract():
    for gamma in (0.0, 0.5, 3.0):
        check_calibrator(FocalRecovery(gamma), improves=False)


def test_by_hand():
    # gamma 1, q = 1/2, 1/4, 1/4: 1/h = (1-q)/q - log q is 1 + log 2 and 3 + log 4.
    h = 1 / np.array([1 + np.log(2), 3 + np.log(4), 3 + np.log(4)])
    assert recovered([[0.5, 0.25, 0.25]], 1.0)[0] == pytest.approx(h / h.sum(), abs=1e-14)


@pytest.mark.parametrize("gamma", MINIMISERS)
def test_the_table_of_two_class_minimisers(gamma):
    for posterior, printed in zip(POSTERIORS, MINIMISERS[gamma], strict=True):
        q = minimiser([1 - posterior, posterior], gamma)[1]
        assert q == pytest.approx(printed, abs=6e-4)
        assert recovered([q], gamma)[0] == pytest.approx(posterior, abs=1e-5)


def test_three_classes():
    q = minimiser([0.8, 0.15, 0.05], 3.0)
    assert q == pytest.approx([0.550, 0.305, 0.146], abs=6e-4)
    assert recovered([q], 3.0)[0] == pytest.approx([0.8, 0.15, 0.05], abs=1e-5)


@pytest.mark.parametrize("gamma", [0.3, 1.0, 2.0, 7.5])
def test_the_posterior_is_recovered_from_the_minimiser(gamma):
    rng = np.random.default_rng(0)
    for _ in range(4):
        posterior = rng.dirichlet(np.ones(5))
        assert recovered([minimiser(posterior, gamma)], gamma)[0] == pytest.approx(
            posterior, abs=2e-5
        )


@pytest.mark.parametrize("gamma", [0.1, 0.5, 1.0, 2.0, 5.0, 20.0])
def test_the_stable_form_is_the_formula(gamma):
    probs = np.random.default_rng(1).dirichlet(np.full(6, 0.7), 400)
    probs = np.maximum(probs, 1e-9)
    probs /= probs.sum(axis=1, keepdims=True)
    assert recovered(probs, gamma) == pytest.approx(formula(probs, gamma), abs=1e-10)


def test_no_focus_changes_nothing():
    probs = np.random.default_rng(2).dirichlet(np.ones(4), 50)
    assert recovered(probs, 0.0) == pytest.approx(probs, abs=1e-15)
    assert recovered(probs, 1e-9) == pytest.approx(probs, abs=1e-7)


def test_with_two_classes_it_is_nearly_a_temperature():
    q = np.linspace(0.5001, 0.9, 200)
    for gamma, slope in ((1.0, 1.77), (2.0, 2.68), (3.0, 3.62), (5.0, 5.57)):
        ratio = logits_from_probs(recovered(q, gamma)) / logits_from_probs(q)
        assert ratio.min() > 0.98 * slope
        assert ratio.max() < 1.02 * slope


@pytest.mark.parametrize("gamma", [0.0, 0.05, 0.5, 0.99, 1.0, 1.5, 3.0, 10.0, 20.0])
def test_order_is_kept_for_every_focus_and_number_of_classes(gamma):
    rng = np.random.default_rng(3)
    for k in (2, 3, 5, 10, 50):
        for scale in (0.01, 1.0, 20.0):
            logits = scale * rng.normal(size=(200, k))
            new = recover_logits(logits, gamma)
            order = np.argsort(logits, axis=1)
            steps = np.diff(np.take_along_axis(new, order, axis=1), axis=1)
            assert (steps > 0).all()
    odds = np.linspace(-60, 60, 2001)
    both = recover_logits(np.column_stack([-odds / 2, odds / 2]), gamma)
    assert (np.diff(both[:, 1] - both[:, 0]) > 0).all()


@pytest.mark.parametrize("gamma", [0.5, 3.0, 20.0])
def test_far_out_the_slope_is_one_more_than_the_focus(gamma):
    # For log-odds o far above 0 h is e^(gamma o) / (1 + gamma), and far below it is q itself.
    logits = np.array([[0.0, 50.0], [0.0, 1e4], [0.0, 1e6]])
    new = recover_logits(logits, gamma)
    o = logits[:, 1]
    assert new[:, 1] == pytest.approx(gamma * o - np.log1p(gamma), rel=1e-9)
    assert new[:, 0] == pytest.approx(-o, rel=1e-9)


@pytest.mark.parametrize("gamma", [-1.0, float("nan"), float("inf"), True])
def test_bad_settings_are_refused(gamma):
    with refuses(InputError, "gamma must be 0", "more"):
        FocalRecovery(gamma).fit([0.0, 1.0], [0, 1])
