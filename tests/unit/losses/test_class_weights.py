"""Weights of classes from their counts."""

import math

import numpy as np
import pytest
import torch
from sklearn.utils.class_weight import compute_class_weight
from tests.sentences import refuses

from calibrant.errors import InputError
from calibrant.losses import balanced_weights, class_balanced_weights
from calibrant.losses.class_weights import as_counts, has_unknown_shift, log_weight


def test_balanced_weights_by_hand():
    assert balanced_weights([90, 10]).tolist() == pytest.approx([100 / 180, 5.0])
    assert balanced_weights([7, 7, 7]).tolist() == [1.0, 1.0, 1.0]


def test_balanced_weights_are_scikit_learns():
    labels = np.repeat([0, 1, 2], [50, 13, 7])
    theirs = compute_class_weight("balanced", classes=np.arange(3), y=labels)
    assert balanced_weights(np.bincount(labels)).tolist() == pytest.approx(theirs.tolist())


def test_logarithm_of_weights_leaves_a_class_of_weight_0_where_it_is():
    assert log_weight(torch.tensor([math.e, 0.0, 1.0])).tolist() == pytest.approx([1.0, 0.5, 0.0])
    scaled = log_weight(100 * torch.tensor([math.e, 0.0, 1.0]))  # a factor moves all alike
    assert (scaled - scaled[2]).tolist() == pytest.approx([1.0, 0.5, 0.0], rel=1e-5)


def test_every_class_counts_alike():
    counts = torch.tensor([500, 20, 3])
    mass = counts * balanced_weights(counts)
    assert mass.tolist() == pytest.approx([mass[0].item()] * 3)
    assert mass.sum().item() == pytest.approx(523)


def test_class_balanced_weights_by_hand():
    raw = [(1 - 0.9) / (1 - 0.9**5), (1 - 0.9) / (1 - 0.9**2)]
    expected = [2 * value / sum(raw) for value in raw]
    assert class_balanced_weights([5, 2], beta=0.9).tolist() == pytest.approx(expected)


def released_class_balanced(counts, beta):
    """The released code of Cui et al. (2019), in NumPy."""
    effective = 1.0 - np.power(beta, counts)
    weights = (1.0 - beta) / np.array(effective)
    return weights / np.sum(weights) * len(counts)


@pytest.mark.parametrize("beta", [0.9, 0.99, 0.999, 0.9999])
def test_class_balanced_weights_are_the_released_ones(beta):
    counts = [5000, 300, 20, 1]
    expected = released_class_balanced(counts, beta).tolist()
    assert class_balanced_weights(counts, beta=beta).tolist() == pytest.approx(expected)


def test_class_balanced_weights_go_from_equal_to_balanced():
    counts = [900, 90, 10]
    assert class_balanced_weights(counts, beta=0).tolist() == pytest.approx([1.0, 1.0, 1.0])
    near = class_balanced_weights(counts, beta=1 - 1e-9)
    balanced = balanced_weights(counts)
    assert near.tolist() == pytest.approx((3 * balanced / balanced.sum()).tolist(), rel=1e-4)
    milder = class_balanced_weights(counts)
    assert 1 < milder[2] / milder[0] < balanced[2] / balanced[0]
    assert milder.sum().item() == pytest.approx(3)


@pytest.mark.parametrize("weights", [balanced_weights, class_balanced_weights])
def test_a_class_without_rows_gets_0_and_does_not_move_the_others(weights):
    found = weights([30, 0, 10])
    assert found[1] == 0.0
    assert found[[0, 2]].tolist() == pytest.approx(weights([30, 10]).tolist())
    assert found.dtype == torch.float32


@pytest.mark.parametrize(
    "counts",
    [[5], [], [0, 0], [3, -1], [1.0, math.nan], [1.0, math.inf], [[1, 2]], "ab", None, [1, "x"]],
)
def test_counts_must_be_of_two_classes_at_least(counts):
    for weights in (balanced_weights, class_balanced_weights, as_counts):
        with refuses(InputError, "class_counts", "rows"):
            weights(counts)


@pytest.mark.parametrize("beta", [1.0, -0.1, 2, math.nan, "0.9", None, True])
def test_beta_must_lie_in_range(beta):
    with refuses(InputError, "beta", "[0, 1)", "got"):
        class_balanced_weights([1, 2], beta=beta)


def test_counts_may_be_lists_arrays_or_tensors():
    for counts in ([3, 1], np.array([3, 1]), torch.tensor([3, 1]), (3.0, 1.0)):
        assert as_counts(counts).tolist() == [3.0, 1.0]


def test_example_of_has_unknown_shift():
    import torch

    from calibrant.losses import as_loss

    counts = torch.tensor([90, 10])
    names = ("ce:weight=balanced", "focal:weight=balanced", "focal")
    assert [has_unknown_shift(as_loss(name, class_counts=counts)) for name in names] == [
        False,
        True,
        False,
    ]
