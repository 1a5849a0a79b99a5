"""CalFocal: Eq. 2 and Eq. 3 of the paper."""

import math

import pytest
import torch
from tests.sentences import refuses
from tests.unit.losses.steer_worlds import world

from calibrant.errors import InputError
from calibrant.losses import CalFocalLoss, FocalLoss, adafocal_loss, as_loss, calfocal_loss


def logits_of(*probs):
    p = torch.tensor(probs, dtype=torch.float64)
    return torch.stack([(p / (1 - p)).log(), torch.zeros_like(p)], -1)


def zeros(n):
    return torch.zeros(n, dtype=torch.long)


BINS = {"accuracies": [0.3, 0.7], "edges": [0.5], "scale": "probability", "reduction": "none"}


def test_each_row_has_its_own_gamma_by_hand():
    found = calfocal_loss(logits_of(0.2, 0.8), zeros(2), strength=10.0, **BINS)
    gammas = [math.exp(10 * (0.2 - 0.3)), math.exp(10 * (0.8 - 0.7))]
    by_hand = [-((1 - p) ** g) * math.log(p) for p, g in zip((0.2, 0.8), gammas, strict=True)]
    assert found.tolist() == pytest.approx(by_hand, rel=1e-12)


def test_each_bin_has_its_own_gamma_by_hand():
    found = calfocal_loss(
        logits_of(0.2, 0.8), zeros(2), confidences=[0.4, 0.65], strength=10.0, **BINS
    )
    gammas = [math.exp(10 * (0.4 - 0.3)), math.exp(10 * (0.65 - 0.7))]
    by_hand = [-((1 - p) ** g) * math.log(p) for p, g in zip((0.2, 0.8), gammas, strict=True)]
    assert found.tolist() == pytest.approx(by_hand, rel=1e-12)


def test_the_loss_falls_steeply_at_the_accuracy_of_the_bin():
    """The curve of the paper's Figure 3(a): accuracy 0.8, lambda 10 and 100."""
    for strength in (10.0, 100.0):
        options = {"accuracies": [0.8], "edges": [], "strength": strength, "reduction": "none"}
        low, high = calfocal_loss(logits_of(0.7, 0.95), zeros(2), **options).tolist()
        assert low > 0.2
        assert high < 0.001


@pytest.mark.parametrize("per", ["sample", "bin"])
def test_before_the_first_update_gamma_is_one(per):
    logits, labels = world(200, dtype=torch.float32)
    loss = CalFocalLoss(per)
    assert torch.equal(loss(logits, labels), FocalLoss(1.0)(logits, labels))
    assert loss.gammas.tolist() == [1.0] * 15


def test_an_update_per_bin_is_adafocal_with_these_gammas():
    steer, (logits, labels) = world(3000, sharpness=2.0), world(400, seed=1)
    loss = CalFocalLoss("bin", strength=10.0)
    loss.update(*steer)
    history = loss.history
    gammas = torch.tensor(10 * history.error[-1]).exp()
    assert torch.allclose(loss.gammas, gammas)
    assert history.gamma[-1] == pytest.approx(gammas.numpy())
    assert gammas.max() > 2
    expected = adafocal_loss(logits, labels, gammas=gammas, edges=loss.edges)
    assert torch.allclose(loss(logits, labels), expected)


def test_an_update_per_sample_uses_the_accuracy_of_the_bin():
    loss = CalFocalLoss(n_bins=1, strength=5.0)
    logits, labels = world(1000)
    loss.update(logits, labels)
    accuracy = (logits.argmax(-1) == labels).double().mean().item()
    assert loss.accuracies.item() == pytest.approx(accuracy)
    p = 0.9
    expected = -((1 - p) ** math.exp(5 * (p - accuracy))) * math.log(p)
    assert loss(logits_of(p), zeros(1)).item() == pytest.approx(expected)


def test_it_has_no_memory():
    loss = CalFocalLoss("bin")
    loss.update(*world(3000, sharpness=4.0))
    loss.update(*world(3000, sharpness=1.0, seed=1))
    fresh = CalFocalLoss("bin")
    fresh.update(*world(3000, sharpness=1.0, seed=1))
    assert torch.equal(loss.gammas, fresh.gammas)
    assert loss.gammas.min() > 0.3
    assert loss.gammas.max() < 3


def test_a_bin_with_few_rows_has_gamma_one():
    loss = CalFocalLoss("bin")
    loss.update(*world(19, sharpness=5.0))
    assert loss.gammas.tolist() == [1.0] * 15
    assert loss.history.gamma[-1].tolist() == [1.0] * 15


@pytest.mark.parametrize("per", ["sample", "bin"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_gradients_are_finite_at_strength_100_for_logits_of_any_size(per, dtype):
    loss = CalFocalLoss(per, strength=100.0, n_bins=4)
    steer = world(400, 3, sharpness=5.0)
    loss.update(steer[0], torch.zeros_like(steer[1]))
    size = torch.tensor([0.0, 1.0, 17.0, 60.0, 1e4, -1e4, -60.0], dtype=dtype)
    logits = torch.stack([size, torch.zeros_like(size), -size], -1).requires_grad_()
    value = loss(logits, zeros(len(size)))
    value.backward()
    assert value.isfinite()
    assert logits.grad.isfinite().all()
    assert loss.gammas.max() <= 100.0 + 1e-9


def test_gamma_is_a_constant_of_the_row():
    logits, labels = world(30, 4)
    loss = CalFocalLoss("sample", strength=10.0, n_bins=3, reduction="sum")
    loss.update(*world(600, 4, sharpness=2.0, seed=1))
    logits.requires_grad_()
    (found,) = torch.autograd.grad(loss(logits, labels), logits)
    p = logits.detach().softmax(-1).gather(1, labels[:, None]).squeeze(1)
    bins = torch.searchsorted(loss.edges, p.logit(), right=True)
    gammas = (10.0 * (p - loss.accuracies[bins])).exp()
    again = logits.detach().requires_grad_()
    q = again.softmax(-1).gather(1, labels[:, None]).squeeze(1)
    (expected,) = torch.autograd.grad((-((1 - q) ** gammas) * q.log()).sum(), again)
    assert torch.allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_it_is_found_by_name():
    loss = as_loss("calfocal:per=bin,strength=100,n_bins=10")
    assert (loss.per, loss.strength, loss.n_bins, loss.steered) == ("bin", 100, 10, True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"per": "row"}, ("per", "'sample'", "'bin'", "got 'row'")),
        ({"strength": -1}, ("strength", "number above 0", "0, up to 100", "got -1")),
        ({"n_bins": True}, ("n_bins", "whole number", "at least 1", "got True")),
        ({"min_count": 0}, ("min_count", "whole number", "at least 1", "got 0")),
    ],
)
def test_options_that_make_no_sense_are_refused_in_a_sentence(options, message):
    with refuses(InputError, *message):
        CalFocalLoss(**options)


def test_bins_that_do_not_fit_and_shares_are_refused_in_a_sentence():
    logits = logits_of(0.5)
    with refuses(InputError, "confidences", "accuracies", "same bins"):
        calfocal_loss(logits, zeros(1), accuracies=[0.5], confidences=[0.5, 0.6], edges=[])
    with refuses(InputError, "accuracies", "number per bin"):
        calfocal_loss(logits, zeros(1), accuracies=0.5, edges=[])
    with refuses(InputError, "CalFocal needs", "class per row"):
        CalFocalLoss()(torch.zeros(2, 2), torch.full((2, 2), 0.5))
