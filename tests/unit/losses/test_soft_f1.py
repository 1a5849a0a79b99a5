"""Soft-F1: by hand, as the tutorial wrote it, and the F1 score of sure predictions."""

import numpy as np
import pytest
import torch
from sklearn.metrics import f1_score
from tests.sentences import refuses

from calibrant.errors import InputError
from calibrant.losses import CrossEntropyLoss, SoftF1Loss, as_loss, soft_f1_loss
from calibrant.testing import check_loss
from calibrant.testing.loss_cases import drawn


def as_in_the_tutorial(p, labels):
    """Precision and recall of the positive class, each with its own small constant."""
    tp = (p * labels).sum()
    precision = tp / (tp + (p * (1 - labels)).sum() + 1e-7)
    recall = tp / (tp + ((1 - p) * labels).sum() + 1e-7)
    return 1 - 2 * precision * recall / (precision + recall + 1e-7)


def test_three_rows_by_hand():
    p = torch.tensor([0.9, 0.4, 0.3], dtype=torch.float64)
    logits = torch.stack([1 - p, p], 1).log()
    found = soft_f1_loss(logits, torch.tensor([1, 1, 0]))  # TP 1.3, FP 0.3, FN 0.7
    assert float(found) == pytest.approx(1 - 2.6 / 3.6, rel=1e-12)


def test_three_classes_by_hand():
    p = torch.tensor([[0.6, 0.3, 0.1], [0.2, 0.7, 0.1]], dtype=torch.float64)
    found = soft_f1_loss(p.log(), torch.tensor([0, 1]))
    first = 1 - 1.2 / (1.2 + 0.2 + 0.4)
    second = 1 - 1.4 / (1.4 + 0.3 + 0.3)
    assert float(found) == pytest.approx((first + second) / 2, rel=1e-12)  # class 2 does not occur


def test_it_is_the_tutorials_loss_but_for_its_small_constants():
    logits, labels = drawn(2, 0, 64)
    theirs = as_in_the_tutorial(logits.softmax(-1)[:, 1], labels)
    torch.testing.assert_close(SoftF1Loss()(logits, labels), theirs, rtol=1e-6, atol=0)


@pytest.mark.parametrize(("k", "average"), [(2, "binary"), (2, "macro"), (5, "macro")])
def test_sure_predictions_have_the_f1_score_of_scikit_learn(k, average):
    logits, labels = drawn(k, 1, 60)
    predicted = logits.argmax(-1)
    sure = 1e3 * torch.nn.functional.one_hot(predicted, k).double()
    theirs = f1_score(labels.numpy(), predicted.numpy(), average=average)
    assert float(soft_f1_loss(sure, labels, average=average)) == pytest.approx(1 - theirs, rel=1e-9)


def test_by_itself_it_is_binary_for_two_classes_and_macro_for_more():
    for k, average in ((2, "binary"), (3, "macro")):
        batch = drawn(k, 2)
        assert float(soft_f1_loss(*batch)) == float(soft_f1_loss(*batch, average=average))


def test_macro_is_the_mean_of_both_binary_losses():
    logits, labels = drawn(2, 3)
    both = soft_f1_loss(logits, labels) + soft_f1_loss(logits.flip(1), 1 - labels)
    torch.testing.assert_close(soft_f1_loss(logits, labels, average="macro"), both / 2)


def test_shares_enter_the_counts():
    p = torch.tensor([[0.4, 0.6], [0.8, 0.2]], dtype=torch.float64)
    shares = torch.tensor([[0.5, 0.5], [1.0, 0.0]], dtype=torch.float64)
    found = soft_f1_loss(p.log(), shares)  # TP 0.3, FP 0.3 + 0.2, FN 0.2
    assert float(found) == pytest.approx(1 - 0.6 / (0.6 + 0.5 + 0.2), rel=1e-12)


def test_rows_twice_over_have_the_same_f1():
    logits, labels = drawn(3, 4)
    twice = soft_f1_loss(logits.repeat(2, 1), labels.repeat(2))
    torch.testing.assert_close(twice, soft_f1_loss(logits, labels))


def test_classes_can_be_renamed():
    logits, labels = drawn(4, 5)
    order = torch.tensor([2, 0, 3, 1])
    found = soft_f1_loss(logits[:, order], order.argsort()[labels])
    torch.testing.assert_close(found, soft_f1_loss(logits, labels))


def test_a_batch_without_positives_still_pushes_scores_down():
    logits = torch.zeros(3, 2, dtype=torch.float64, requires_grad=True)
    loss = soft_f1_loss(logits, torch.tensor([0, 0, 0]))
    loss.backward()
    assert float(loss.detach()) == pytest.approx(1.5 / 2.5, rel=1e-12)
    assert bool((logits.grad[:, 1] > 0).all())
    quiet = soft_f1_loss(torch.tensor([[50.0, -50.0]]), torch.tensor([0]))
    assert float(quiet) == pytest.approx(0, abs=1e-12)


def test_a_nearly_perfect_batch_keeps_its_distance():
    logits = torch.tensor([[-20.0, 20.0], [20.0, -20.0]])  # 1 - p rounds to 0 in float32
    found = float(soft_f1_loss(logits, torch.tensor([1, 0])))
    assert found == pytest.approx(np.exp(-40.0), rel=1e-4)


def test_half_and_half_with_cross_entropy_is_a_sum():
    logits, labels = drawn(2, 6)
    found = as_loss("0.5*ce + 0.5*soft_f1")(logits, labels)
    by_hand = (CrossEntropyLoss()(logits, labels) + soft_f1_loss(logits, labels)) / 2
    torch.testing.assert_close(found, by_hand)


@pytest.mark.parametrize("average", ["auto", "macro"])
def test_it_keeps_the_contract(average):
    check_loss(f"soft_f1:average={average}", rowwise=False, weight=False)


def test_binary_with_more_classes_is_refused():
    with refuses(InputError, "needs logits", "two classes", "got 3"):
        soft_f1_loss(*drawn(3, 7), average="binary")


def test_an_unknown_average_is_refused():
    with refuses(InputError, "average", "'auto'", "'binary'", "'macro'"):
        SoftF1Loss("micro")
