"""Sample-dependent focal loss: the steps of gamma, their edges, and where they come from."""

import math

import numpy as np
import pytest
import torch
from scipy.optimize import brentq
from tests.sentences import refuses

from calibrant.errors import InputError
from calibrant.losses import FLSDLoss, as_loss, flsd_loss, focal_loss, gamma_for
from calibrant.testing import check_loss
from calibrant.testing.loss_cases import drawn

EDGES = {"flsd": "edges", "scheduled_focal": "epochs"}


def transcribed(logits, labels, top_gamma):
    """Row by row as the paper says it: 5 below 0.2, 3 below 0.5, the last gamma above."""
    values = []
    for z, y in zip(logits.numpy(), labels.tolist(), strict=True):
        p = np.exp(z - z.max())
        p = p[y] / p.sum()
        gamma = 5.0 if p < 0.2 else 3.0 if p < 0.5 else top_gamma
        values.append(-((1 - p) ** gamma) * math.log(p))
    return values


def pull(p, gamma):
    """Gradient of focal loss over that of cross-entropy."""
    return (1 - p) ** gamma - gamma * p * (1 - p) ** (gamma - 1) * math.log(p)


def test_three_rows_by_hand():
    logits = torch.tensor([[0.1, 0.9], [0.4, 0.6], [0.9, 0.1]], dtype=torch.float64).log()
    found = flsd_loss(
        logits, torch.tensor([0, 0, 0]), gammas=(5, 3, 2), edges=(0.2, 0.5), reduction="none"
    )
    by_hand = [0.9**5 * math.log(10), 0.6**3 * math.log(2.5), 0.1**2 * math.log(1 / 0.9)]
    assert found.tolist() == pytest.approx(by_hand, rel=1e-12)


@pytest.mark.parametrize("top_gamma", [3.0, 2.0, 0.0])
def test_it_is_the_papers_rule_row_by_row(top_gamma):
    logits, labels = drawn(5, 0, 200)
    loss = FLSDLoss(gammas=(5, 3, top_gamma), reduction="none")
    found = loss(logits, labels)
    assert found.tolist() == pytest.approx(transcribed(logits, labels, top_gamma), rel=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("k", "edge"), [(2, 0.5), (4, 0.25), (5, 0.2)])
def test_a_probability_on_an_edge_belongs_above_it(k, edge, dtype):
    row = torch.zeros(1, k, dtype=dtype), torch.tensor([0])
    found = flsd_loss(*row, gammas=(5, 1), edges=(edge,))
    torch.testing.assert_close(found, focal_loss(*row, gamma=1))
    below = row[0].clone()
    below[0, 0] = -1e-5
    found = flsd_loss(below, row[1], gammas=(5, 1), edges=(edge,))
    torch.testing.assert_close(found, focal_loss(below, row[1], gamma=5))


def test_equal_gammas_are_plain_focal_loss():
    logits, labels = drawn(4, 1)
    shares = logits.flip(0).softmax(-1)
    for target in (labels, shares):
        found = flsd_loss(logits, target, gammas=(2, 2, 2))
        torch.testing.assert_close(found, focal_loss(logits, target, gamma=2), rtol=1e-12, atol=0)


def test_no_gradient_flows_through_the_choice_of_gamma():
    logits, labels = drawn(3, 2)
    logits.requires_grad_()
    p = logits.detach().softmax(-1).gather(-1, labels[:, None]).squeeze(-1)
    (found,) = torch.autograd.grad(flsd_loss(logits, labels, reduction="sum"), logits)
    for row, chance in enumerate(p.tolist()):
        one = logits[row : row + 1]
        gamma = 5 if chance < 0.2 else 3
        (own,) = torch.autograd.grad(focal_loss(one, labels[row : row + 1], gamma=gamma), one)
        torch.testing.assert_close(found[row], own[0], rtol=1e-12, atol=0)


@pytest.mark.parametrize(("p0", "gamma"), [(0.2, 4.85), (0.25, 3.07), (0.1, 14.9)])
def test_the_gamma_for_a_probability_is_the_published_one(p0, gamma):
    assert gamma_for(p0) == pytest.approx(gamma, rel=2e-3)


@pytest.mark.parametrize("p0", [1e-6, 1e-3, 0.01, 0.1, 0.2, 0.25, 0.3, 0.4, 0.49])
def test_the_gamma_for_a_probability_solves_its_equation(p0):
    gamma = gamma_for(p0)
    assert pull(p0, gamma) == pytest.approx(1, abs=1e-9)
    found = brentq(lambda g: pull(p0, g) - 1, 0.5 * gamma, 2 * gamma, xtol=1e-13)
    assert gamma == pytest.approx(found, rel=1e-7)


def test_rows_surer_than_the_probability_are_held_back():
    gamma = gamma_for(0.2)
    assert pull(0.19, gamma) > 1 > pull(0.21, gamma)


@pytest.mark.parametrize("p0", [0.5, 0.7, 0.999])
def test_from_one_half_on_only_cross_entropy_solves_it(p0):
    assert gamma_for(p0) == 0.0


@pytest.mark.parametrize("p0", [0.4998, 0.49995, 0.49999])
def test_near_one_half_the_gamma_falls_to_0(p0):
    # (1 - p) ** gamma (1 - gamma b) = 1, expanded to gamma squared and divided by gamma.
    a, b = math.log1p(-p0), p0 * math.log(p0) / (1 - p0)
    assert gamma_for(p0) == pytest.approx((a - b) / (a * b - a * a / 2), rel=1e-3)
    assert gamma_for(math.nextafter(0.5, 0)) < 1e-12


@pytest.mark.parametrize("p0", [0.0, 1.0, -0.2, float("nan")])
def test_a_gamma_for_no_probability_is_refused(p0):
    with refuses(InputError, "p0", "probability inside (0, 1)"):
        gamma_for(p0)


def test_it_keeps_the_contract():
    check_loss("flsd")
    check_loss("flsd:gammas=[20,0.2],edges=[0.3]")


def test_steps_come_from_text():
    loss = as_loss("flsd:gammas=[4,2],edges=[0.25]")
    assert (loss.gammas, loss.edges) == ((4, 2), (0.25,))
    assert "edges=(0.25,)" in repr(loss)


@pytest.mark.parametrize(
    ("gammas", "edges"), [((5, 3), (0.2, 0.5)), ((5, 3, 3), (0.5, 0.2)), ((5, 3), (1.0,))]
)
def test_steps_that_do_not_fit_are_refused(gammas, edges):
    with pytest.raises(InputError, match=r"rising edges inside \(0, 1\)"):
        FLSDLoss(gammas, edges)


@pytest.mark.parametrize(
    ("text", "mentions"),
    [
        ("gammas=5", ("gammas", "list of numbers", "[5,3]", "got 5")),
        ("gammas=[5,x]", ("gammas", "list of numbers", "[5,3]", "got '[5,x]'")),
        ('gammas=[5,"x"]', ("gammas", "list of numbers", "got [5, 'x']")),
        ("edges=0.2", ("edges", "list of numbers", "got 0.2")),
        ("gammas=[5,3],edges=[null]", ("edges", "list of numbers", "got [None]")),
    ],
)
def test_steps_that_are_no_list_of_numbers_are_refused(text, mentions):
    for name in ("flsd", "scheduled_focal"):
        option, *rest = mentions
        with refuses(InputError, option.replace("edges", EDGES[name]), *rest):
            as_loss(f"{name}:{text.replace('edges', EDGES[name])}")


def test_a_negative_gamma_is_refused():
    with refuses(InputError, "gammas", "number", "0 to 100"):
        FLSDLoss((5, 3, -1))
