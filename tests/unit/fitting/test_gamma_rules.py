"""How gammas move: by hand, and in worlds whose calibration is known."""

import math

import numpy as np
import pytest
import torch
from tests.unit.losses.steer_worlds import world

from calibrant.fitting.gamma_rules import MIN_COUNT, shrink_errors, step_gammas
from calibrant.losses import AdaFocalLoss

BOUNDS = {"strength": 1.0, "switch": 0.2, "low": -2.0, "high": 20.0}


def one_step(gamma, error, **changes):
    return float(step_gammas(np.array([gamma]), np.array([error]), **{**BOUNDS, **changes})[0])


def saturated(n=600, share=0.5, accuracy=0.7):
    """Two-class float32 logits: `share` of the rows are 1.0 sure, but right less often."""
    draw = torch.Generator().manual_seed(0)
    odds = torch.rand(n, generator=draw) * 3 + 0.1
    odds[: int(n * share)] = torch.linspace(20.0, 60.0, int(n * share))
    right = torch.rand(n, generator=draw) < torch.where(odds > 20, accuracy, odds.sigmoid())
    logits = torch.stack([odds, torch.zeros(n)], -1)
    assert ((logits.softmax(-1)[:, 0] == 1.0).sum() >= int(n * share)).item()
    return logits, (~right).long()


# --- one step, by hand ---


def test_over_confidence_raises_and_under_confidence_lowers_gamma_on_both_sides_of_zero():
    assert one_step(1.0, 0.3) == pytest.approx(math.exp(0.3))
    assert one_step(1.0, -0.3) == pytest.approx(math.exp(-0.3))
    assert one_step(-1.0, 0.3) == pytest.approx(-math.exp(-0.3))
    assert one_step(-1.0, -0.3) == pytest.approx(-math.exp(0.3))
    assert one_step(1.0, 0.1, strength=5.0) == pytest.approx(math.exp(0.5))


def test_a_gamma_near_zero_changes_its_sign_and_then_grows():
    assert one_step(0.21, -0.1) == -0.2
    assert one_step(-0.21, 0.1) == 0.2
    assert one_step(-0.2, -0.1) == pytest.approx(-0.2 * math.exp(0.1))
    assert one_step(0.0, -0.5) == 0.2
    assert one_step(0.01, -0.5, switch=0.0) == pytest.approx(0.01 * math.exp(-0.5))


def test_the_switch_is_tested_before_the_bounds_are_applied():
    assert one_step(0.6, -0.5, switch=0.5, low=-0.3) == -0.3
    assert one_step(19.5, 0.5) == 20.0
    assert one_step(-1.9, -0.5) == -2.0


def test_an_error_as_large_as_its_standard_error_is_halved():
    n, accuracy = np.array([98]), np.array([0.5])
    error = np.sqrt(0.25 / 98)
    assert shrink_errors(np.array([error]), accuracy, n)[0] == pytest.approx(error / 2)
    assert shrink_errors(np.array([-error]), accuracy, n)[0] == pytest.approx(-error / 2)


def test_a_bin_without_mistakes_is_not_beyond_doubt():
    found = shrink_errors(np.array([-0.01, 0.0]), np.array([1.0, 1.0]), np.array([50, 50]))
    a = 51 / 52
    doubt = a * (1 - a) / 50
    assert found[0] == pytest.approx(-0.01 * 1e-4 / (1e-4 + doubt))
    assert found[1] == 0.0


def test_shrinking_never_changes_the_sign_nor_enlarges():
    draw = np.random.default_rng(0)
    error, accuracy = draw.uniform(-1, 1, 500), draw.random(500)
    found = shrink_errors(error, accuracy, draw.integers(1, 300, 500))
    assert (np.sign(found) == np.sign(error)).all()
    assert (np.abs(found) < np.abs(error)).all()


# --- robust mode in known worlds ---


def test_saturated_confidences_keep_learning_where_paper_mode_stands_still():
    steer = saturated()
    robust, paper = AdaFocalLoss(), AdaFocalLoss(mode="paper")
    for _ in range(10):
        robust.update(*steer)
        paper.update(*steer)
    surest = torch.tensor([[40.0, 0.0]])
    at = torch.searchsorted(paper.edges.float(), surest.softmax(-1)[0, 0], right=True)
    assert paper.history.count[:, at].tolist() == [0] * 10
    assert paper.gammas[at] == 1.0
    sure = torch.linspace(20.0, 60.0, 200).double()
    at = torch.searchsorted(robust.edges, sure, right=True).unique()
    assert len(at) >= 7
    assert (robust.history.count[:, at] >= MIN_COUNT).all()
    assert robust.gammas[at].min() > 2.0


def test_every_bin_that_a_row_can_be_looked_up_in_has_rows_of_its_own():
    draw = torch.Generator().manual_seed(0)
    for seed, (n, levels) in enumerate([(500, 3), (500, 1), (40, 40), (5, 5), (1000, 12)]):
        odds = torch.randint(0, levels, (n,), generator=draw).double() * 7 - 3
        logits = torch.stack([odds, torch.zeros(n, dtype=torch.float64)], -1)
        loss = AdaFocalLoss(min_count=1)
        loss.update(logits, torch.full((n,), seed % 2))
        anywhere = torch.linspace(-50, 1e4, 4001, dtype=torch.float64)
        reached = torch.searchsorted(loss.edges, anywhere, right=True).unique().numpy()
        count = loss.history.count[-1]
        assert (count[reached] > 0).all()
        assert count.sum() == n


def test_a_constant_confidence_is_one_bin_and_learns():
    logits = torch.tensor([[2.0, 0.0]]).repeat(200, 1)
    loss = AdaFocalLoss()
    loss.update(logits, torch.tensor([0, 1]).repeat(100))
    assert sorted(loss.history.count[-1].tolist()) == [0] * 14 + [200]
    error = 1 / (1 + math.exp(-2)) - 0.5
    moved = math.exp(error**3 / (error**2 + 0.25 / 200))
    assert loss.gammas.tolist() == pytest.approx([moved] + [1.0] * 14)
    everywhere = torch.searchsorted(loss.edges, torch.linspace(-1e4, 1e4, 11).double(), right=True)
    assert everywhere.unique().tolist() == [0]


@pytest.mark.parametrize("n", [1, 3, 14, 19])
def test_fewer_rows_than_the_minimum_move_no_gamma(n):
    loss = AdaFocalLoss()
    loss.update(*world(n, sharpness=5.0))
    assert loss.gammas.tolist() == [1.0] * 15
    assert loss.history.count[-1].sum() == n


def test_a_small_split_is_split_into_fewer_bins_that_do_learn():
    loss = AdaFocalLoss()
    for seed in range(5):
        loss.update(*world(70, sharpness=5.0, seed=seed))
    count = loss.history.count[-1]
    assert np.flatnonzero(count).tolist() == [0, 5, 10]
    assert count[count > 0].tolist() == [24, 23, 23]
    assert (loss.gammas[[0, 5, 10]] > 1.2).all()
    assert loss.gammas[[1, 4, 6, 14]].tolist() == [1.0] * 4


def test_noise_alone_moves_gammas_less_than_in_paper_mode():
    drift = {}
    for mode in ("robust", "paper"):
        moved = []
        for repetition in range(10):
            loss = AdaFocalLoss(mode=mode)
            for seed in range(20):
                loss.update(*world(900, seed=100 * repetition + seed))
            moved.append(loss.gammas.log().abs().mean().item())
        drift[mode] = np.mean(moved)
    assert drift["robust"] < 0.8 * drift["paper"]


@pytest.mark.parametrize("mode", ["robust", "paper"])
def test_a_much_too_sure_model_raises_every_gamma(mode):
    loss = AdaFocalLoss(mode=mode)
    for seed in range(12):
        loss.update(*world(3000, sharpness=4.0, seed=seed))
    assert loss.gammas[:-1].min() > 1.5  # the very surest rows are right nearly always


@pytest.mark.parametrize(("mode", "lowest"), [("robust", -1.5), ("paper", -2.0)])
def test_a_much_too_unsure_model_ends_in_inverse_focal_within_its_bound(mode, lowest):
    loss = AdaFocalLoss(mode=mode, strength=2.0)
    for seed in range(40):
        loss.update(*world(3000, sharpness=0.3, seed=seed))
    gammas = loss.gammas
    assert (gammas < 0).sum() >= 12
    assert gammas.min() == lowest
    focal = loss.history.gamma > 0
    assert focal[0].all()
    assert (np.abs(loss.history.gamma) >= 0.2).all()


def test_more_strength_moves_gammas_faster():
    steer = world(3000, sharpness=3.0)
    mild, strong = AdaFocalLoss(), AdaFocalLoss(strength=4.0)
    for loss in (mild, strong):
        loss.update(*steer)
    assert torch.allclose(strong.gammas.log(), 4 * mild.gammas.log(), atol=1e-12)
