"""Label smoothing: both conventions, by hand, against torch, and at its fixed point."""

import math

import numpy as np
import pytest
import torch
from tests.sentences import refuses
from torch.nn.functional import cross_entropy, one_hot

from calibrant.errors import InputError
from calibrant.losses import LabelSmoothingLoss, as_loss, cross_entropy_loss, label_smoothing_loss
from calibrant.testing import check_loss
from calibrant.testing.loss_cases import drawn


def transcribed(logits, labels, smoothing, others_only):
    """Smoothed labels written out, class by class."""
    total = 0.0
    for z, y in zip(logits.numpy(), labels.tolist(), strict=True):
        k = len(z)
        share = np.full(k, smoothing / (k - 1) if others_only else smoothing / k)
        share[y] = 1 - smoothing if others_only else 1 - smoothing + smoothing / k
        total -= float((share * (z - np.log(np.exp(z).sum()))).sum())
    return total / len(labels)


@pytest.mark.parametrize(
    ("others_only", "share"), [(False, (0.925, 0.025, 0.025, 0.025)), (True, (0.9, *[0.1 / 3] * 3))]
)
def test_four_classes_by_hand(others_only, share):
    logits = torch.tensor([[0.4, 0.3, 0.2, 0.1]], dtype=torch.float64).log()
    found = label_smoothing_loss(logits, torch.tensor([0]), smoothing=0.1, others_only=others_only)
    by_hand = -sum(q * math.log(p) for q, p in zip(share, (0.4, 0.3, 0.2, 0.1), strict=True))
    assert float(found) == pytest.approx(by_hand, rel=1e-12)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("smoothing", [0.0, 0.05, 0.5])
def test_it_is_torchs_label_smoothing(smoothing, reduction):
    logits, labels = drawn(5, 0)
    found = label_smoothing_loss(logits, labels, smoothing=smoothing, reduction=reduction)
    theirs = cross_entropy(logits, labels, label_smoothing=smoothing, reduction=reduction)
    torch.testing.assert_close(found, theirs, rtol=1e-12, atol=0)


def test_shares_are_smoothed_as_torch_smooths_them():
    logits, labels = drawn(4, 1)
    shares = (one_hot(labels, 4) + logits.softmax(-1)) / 2
    found = label_smoothing_loss(logits, shares, smoothing=0.2)
    theirs = cross_entropy(logits, shares, label_smoothing=0.2)
    torch.testing.assert_close(found, theirs, rtol=1e-12, atol=0)


@pytest.mark.parametrize("others_only", [False, True])
def test_it_is_cross_entropy_with_written_out_shares(others_only):
    logits, labels = drawn(6, 2)
    loss = LabelSmoothingLoss(0.3, others_only=others_only)
    by_hand = transcribed(logits, labels, 0.3, others_only)
    assert float(loss(logits, labels)) == pytest.approx(by_hand, rel=1e-12)


def test_one_convention_is_the_other_with_a_larger_smoothing():
    logits, labels = drawn(5, 3)
    others = label_smoothing_loss(logits, labels, smoothing=0.08, others_only=True)
    everywhere = label_smoothing_loss(logits, labels, smoothing=0.08 * 5 / 4)
    torch.testing.assert_close(others, everywhere, rtol=1e-12, atol=0)


@pytest.mark.parametrize(("others_only", "top"), [(False, 0.925), (True, 0.9)])
def test_a_sure_row_is_left_with_a_known_doubt(others_only, top):
    rest = (1 - top) / 3
    p = torch.tensor([[top, rest, rest, rest]], dtype=torch.float64)
    logits = p.log().requires_grad_()
    label_smoothing_loss(
        logits, torch.tensor([0]), smoothing=0.1, others_only=others_only
    ).backward()
    assert float(logits.grad.abs().max()) < 1e-15


def test_no_smoothing_is_cross_entropy():
    logits, labels = drawn(3, 4)
    found = label_smoothing_loss(logits, labels, smoothing=0)
    torch.testing.assert_close(found, cross_entropy_loss(logits, labels), rtol=1e-14, atol=0)


@pytest.mark.parametrize("text", ["label_smoothing", "label_smoothing:others_only=true"])
def test_it_keeps_the_contract(text):
    check_loss(text)


def test_options_come_from_text():
    loss = as_loss("label_smoothing:smoothing=0.2,others_only=true")
    assert (loss.smoothing, loss.others_only) == (0.2, True)
    assert "smoothing=0.2, others_only=True" in repr(loss)


@pytest.mark.parametrize("smoothing", [-0.1, 1.0, float("nan"), "much", True])
def test_a_smoothing_outside_its_range_is_refused(smoothing):
    with refuses(InputError, "smoothing", "number from 0", "below 1"):
        LabelSmoothingLoss(smoothing)
