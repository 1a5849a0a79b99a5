"""A weighted ensemble: weights of the largest likelihood, losses without the row itself."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import minimize

from calibrant.bundle.scorers import mix_logits
from calibrant.convert import log_probs_from_logits, probs_from_logits
from calibrant.study.candidates.weighted import cross_fit_losses, drop_twins, fit_mixture


def world(n=400, noise=(0.5, 1.0, 2.0), seed=0):
    """Draw codes of three classes, and models that see their log-probabilities through noise."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(0, 1.5, (n, 3))
    codes = (rng.random((n, 1)) > probs_from_logits(truth).cumsum(axis=1)).sum(axis=1)
    return [truth + rng.normal(0, each, truth.shape) for each in noise], codes


def loss_of(logits, codes):
    return -log_probs_from_logits(logits)[np.arange(len(codes)), codes]


def test_a_mixture_worked_out_by_hand():
    # Each member is right on one of two rows, so that they weigh the same.
    one, other = np.log([[0.75, 0.25], [0.75, 0.25]]), np.log([[0.25, 0.75], [0.25, 0.75]])
    mixture = fit_mixture([one, other], np.array([0, 1]))
    assert mixture.weights == pytest.approx((0.5, 0.5), abs=1e-6)
    assert probs_from_logits(mixture.logits([one, other]))[:, 0] == pytest.approx([0.5, 0.5])


def test_weights_are_those_of_a_general_optimiser():
    members, codes = world()
    mixture = fit_mixture(members, codes)

    def mean_loss(free):
        weights = np.exp(free) / np.exp(free).sum()
        return loss_of(mix_logits(members, weights, mixture.temperatures), codes).mean()

    best = minimize(mean_loss, np.zeros(3), method="Nelder-Mead", options={"xatol": 1e-8})
    own = loss_of(mixture.logits(members), codes).mean()
    assert own <= best.fun + 1e-3  # a member below 5 % is left out
    assert mixture.weights[0] > mixture.weights[1] > mixture.weights[2]


def test_a_member_that_knows_nothing_gets_no_weight():
    members, codes = world(noise=(0.3,))
    assert fit_mixture([members[0], np.zeros_like(members[0])], codes).weights == (1.0, 0.0)


def test_equal_members_give_the_member_itself():
    members, codes = world(noise=(0.5,))
    both = [members[0], members[0]]
    mixture = fit_mixture(both, codes)
    alone = probs_from_logits(members[0] / mixture.temperatures[0])
    np.testing.assert_allclose(probs_from_logits(mixture.logits(both)), alone, atol=1e-12)


def test_equal_models_are_mixed_once():
    members, _ = world(noise=(0.5, 1.0))
    logits = [members[0], members[0].copy(), members[1]]
    trained = [SimpleNamespace(name=i, logits={"choice": each}) for i, each in enumerate(logits)]
    assert [each.name for each in drop_twins(trained)] == [0, 2]


def test_the_loss_of_a_row_does_not_depend_on_its_own_label():
    members, codes = world(n=60)
    before = cross_fit_losses(members, codes, seed=3)
    changed = codes.copy()
    changed[7] = (codes[7] + 1) % 3
    after = cross_fit_losses(members, changed, seed=3)
    own_fold = np.random.default_rng(3).permutation(60) % 5
    same = (own_fold == own_fold[7]) & (np.arange(60) != 7)
    np.testing.assert_array_equal(before[same], after[same])


def test_cross_fitted_losses_are_fair():
    """Where the best ensemble is a single model, they are on average not below its own loss."""
    gains = []
    for seed in range(40):
        members, codes = world(n=100, noise=(0.3, 2.0, 2.0), seed=seed)
        fair = cross_fit_losses(members, codes, seed=0)
        gains.append((loss_of(members[0], codes) - fair).mean())
    assert np.mean(gains) < 0.01
