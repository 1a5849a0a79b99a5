"""Log-odds of the true class: exact where the probability has long rounded to 1."""

import math

import pytest
import torch

from calibrant.errors import InputError
from calibrant.losses import focal_loss
from calibrant.losses.rows import as_rows
from calibrant.losses.true_odds import class_odds, odds_of, true_odds


def drawn(n=12, k=4, scale=2.0, seed=0):
    noise = torch.Generator().manual_seed(seed)
    logits = scale * torch.randn(n, k, generator=noise, dtype=torch.float64)
    return logits, torch.randint(0, k, (n,), generator=noise)


def plain_odds(logits, labels):
    """The definition, row by row."""
    rows = []
    for z, y in zip(logits, labels.tolist(), strict=True):
        others = [value for k, value in enumerate(z) if k != y]
        rows.append(z[y] - torch.logsumexp(torch.stack(others), 0))
    return torch.stack(rows)


def test_hand_computed_values():
    logits = torch.tensor([[2.0, 0.0, 0.0], [0.0, 0.0, 0.0], [1.0, 3.0, -math.inf]])
    found = true_odds(logits, torch.tensor([0, 1, 1]))
    assert found.tolist() == pytest.approx([2 - math.log(2), -math.log(2), 2.0])


@pytest.mark.parametrize("k", [2, 3, 50])
def test_odds_are_those_of_the_softmax(k):
    logits, labels = drawn(k=k)
    odds = true_odds(logits, labels)
    p = logits.softmax(-1).gather(-1, labels[:, None]).squeeze(-1)
    assert torch.allclose(torch.sigmoid(odds), p, rtol=1e-12)
    assert torch.allclose(odds, plain_odds(logits, labels), rtol=1e-12)


def test_odds_are_exact_where_the_probability_rounds_to_1_or_0():
    logits = torch.tensor([[60.0, 0.0], [1e4, -1e4], [0.0, 60.0], [-1e4, 1e4]])
    zeros = torch.zeros(4, dtype=torch.long)
    assert logits.softmax(-1)[0, 0] == 1.0
    assert true_odds(logits, zeros).tolist() == [60.0, 2e4, -60.0, -2e4]
    many = torch.zeros(1, 1000)
    assert true_odds(many, zeros[:1]).item() == pytest.approx(-math.log(999), rel=1e-6)


@pytest.mark.parametrize("shift", [0.0, 7.0, -1e4])
def test_only_differences_count(shift):
    logits, labels = drawn()
    assert torch.allclose(true_odds(logits + shift, labels), true_odds(logits, labels), atol=1e-10)


@pytest.mark.parametrize("scale", [0.5, 5.0, 50.0])
def test_gradient_is_that_of_the_plain_formula(scale):
    logits, labels = drawn(scale=scale)
    ours, theirs = logits.clone().requires_grad_(), logits.clone().requires_grad_()
    weights = torch.arange(len(labels)) - 5.0
    (weights * true_odds(ours, labels)).sum().backward()
    (weights * plain_odds(theirs, labels)).sum().backward()
    assert torch.allclose(ours.grad, theirs.grad, atol=1e-12)
    assert torch.autograd.gradcheck(true_odds, (ours, labels))


def test_gradient_is_1_for_the_true_class_and_shared_by_the_others():
    logits = torch.zeros(1, 5, requires_grad=True)
    true_odds(logits, torch.tensor([2])).sum().backward()
    assert logits.grad.tolist()[0] == pytest.approx([-0.25, -0.25, 1.0, -0.25, -0.25])


def test_it_cannot_be_differentiated_twice():
    logits, labels = drawn()
    logits.requires_grad_()
    (grad,) = torch.autograd.grad(true_odds(logits, labels).exp().sum(), logits, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        grad.sum().backward()


def test_infinite_logits_have_no_odds():
    logits = torch.tensor([[math.inf, 0.0]])
    assert math.isnan(true_odds(logits, torch.tensor([0])).item())
    with pytest.raises(InputError, match="row 0 hold inf"):
        focal_loss(logits, torch.tensor([0]))


@pytest.mark.parametrize("k", [2, 3, 50])
def test_odds_of_every_class_are_those_of_each_class_alone(k):
    logits, _ = drawn(k=k)
    found = class_odds(logits)
    for label in range(k):
        alone = true_odds(logits, torch.full((len(logits),), label))
        assert torch.allclose(found[:, label], alone, rtol=1e-12)


def test_odds_of_every_class_at_ties_and_extremes():
    logits = torch.tensor([[1e4, -1e4, 0.0], [5.0, 5.0, 5.0], [3.0, 3.0, -1e4], [60.0, 0.0, 0.0]])
    logits.requires_grad_()
    found = class_odds(logits)
    assert found[0].tolist() == pytest.approx([1e4, -2e4, -1e4])
    assert found[1].tolist() == pytest.approx([-math.log(2)] * 3)
    assert found[2].tolist() == pytest.approx(
        [0.0, 0.0, -1e4 - 3 - math.log(2)], rel=1e-6, abs=1e-6
    )
    assert found[3].tolist() == pytest.approx([60 - math.log(2), -60.0, -60.0])
    found.sum().backward()
    assert bool(logits.grad.isfinite().all())


def test_two_classes_have_opposite_odds():
    logits, _ = drawn(k=2)
    found = class_odds(logits)
    assert torch.allclose(found[:, 0], -found[:, 1], rtol=1e-12)


@pytest.mark.parametrize("tied", [False, True])
def test_gradient_of_every_class_agrees_with_differences(tied):
    logits, _ = drawn(n=4, k=3)
    if tied:
        logits[:, 1] = logits[:, 0]
    assert torch.autograd.gradcheck(class_odds, (logits.requires_grad_(),))


def test_odds_of_rows_are_of_the_class_or_of_all_classes():
    logits, labels = drawn()
    assert torch.equal(odds_of(as_rows(logits, labels)), true_odds(logits, labels))
    shares = logits.softmax(-1)
    assert torch.equal(odds_of(as_rows(logits, shares)), class_odds(logits))
