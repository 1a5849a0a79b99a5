"""MMCE: both forms and both normalisations against plain sums, and gradients at its corners."""

import math

import numpy as np
import pytest
import torch
from tests.sentences import refuses

from calibrant.errors import InputError
from calibrant.losses import MMCELoss, as_loss, cross_entropy_loss, mmce_loss, mmce_penalty
from calibrant.testing import check_loss
from calibrant.testing.loss_cases import drawn

FORMS = [(w, n) for w in (True, False) for n in ("correct", "released")]


def sides(logits, labels):
    """Confidence of each row, and whether it is right."""
    p = np.exp(logits.numpy() - logits.numpy().max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    return p.max(1), p.argmax(1) == labels.numpy()


def mean_of_pairs(one, other, of_one, of_other, width):
    total = 0.0
    for r, v in zip(one, of_one, strict=True):
        for s, w in zip(other, of_other, strict=True):
            total += v * w * math.exp(-abs(r - s) / width)
    return total / (len(one) * len(other))


def transcribed(logits, labels, *, weighted, normalisation, width=0.4):
    """Pair by pair; the released code divides its three means once more."""
    r, right = sides(logits, labels)
    if not weighted:
        square = mean_of_pairs(r, r, right - r, right - r, width)
        return square if normalisation == "released" else math.sqrt(square)
    yes, no = r[right], r[~right]
    m, n = (len(yes), len(no)) if normalisation == "released" else (1, 1)
    square = (
        mean_of_pairs(yes, yes, 1 - yes, 1 - yes, width) / m**2
        + mean_of_pairs(no, no, no, no, width) / n**2
        - 2 * mean_of_pairs(yes, no, 1 - yes, no, width) / (m * n)
    )
    return math.sqrt(square)


def sure_rows(confidence, right):
    """Rows of two classes with a given confidence in class 0, right or wrong."""
    r = torch.tensor(confidence, dtype=torch.float64)
    return torch.stack([r, 1 - r], 1).log(), torch.tensor([0 if yes else 1 for yes in right])


def test_two_rows_by_hand():
    batch = sure_rows([0.9, 0.6], [True, False])
    likeness = math.exp(-0.3 / 0.4)
    by_hand = math.sqrt(0.1**2 + 0.6**2 - 2 * 0.1 * 0.6 * likeness)
    assert float(mmce_penalty(*batch)) == pytest.approx(by_hand, rel=1e-12)
    plain = math.sqrt((0.1**2 + 0.6**2 - 2 * 0.1 * 0.6 * likeness) / 4)
    assert float(mmce_penalty(*batch, weighted=False)) == pytest.approx(plain, rel=1e-12)


@pytest.mark.parametrize(("weighted", "normalisation"), FORMS)
@pytest.mark.parametrize("width", [0.4, 0.05])
def test_it_is_its_sum_over_pairs(weighted, normalisation, width):
    logits, labels = drawn(5, 0, 40)
    form = {"weighted": weighted, "normalisation": normalisation, "width": width}
    slow = transcribed(logits, labels, **form)
    assert float(mmce_penalty(logits, labels, **form)) == pytest.approx(slow, rel=1e-10)


def test_the_released_normalisation_is_an_order_of_magnitude_smaller():
    rng = np.random.default_rng(0)
    confidence = np.concatenate([rng.uniform(0.7, 1.0, 101), rng.uniform(0.5, 0.9, 27)])
    batch = sure_rows(confidence, [True] * 101 + [False] * 27)
    correct = float(mmce_penalty(*batch))
    released = float(mmce_penalty(*batch, normalisation="released"))
    assert 15 < correct / released < 30
    slow = transcribed(*batch, weighted=True, normalisation="released")
    assert released == pytest.approx(slow, rel=1e-10)


def test_of_one_kind_the_plain_form_is_the_gap():
    batch = sure_rows([0.8] * 10, [True] * 6 + [False] * 4)
    assert float(mmce_penalty(*batch, weighted=False)) == pytest.approx(0.2, rel=1e-12)


def test_a_constant_calibrated_batch_has_none():
    batch = sure_rows([0.75] * 8, [True] * 6 + [False] * 2)
    assert float(mmce_penalty(*batch, weighted=False)) == pytest.approx(0, abs=1e-6)


CORNERS = [
    ([0.8, 0.9, 0.7], [True] * 3),
    ([0.8, 0.9, 0.7], [False] * 3),
    ([0.75] * 4, [True, True, True, False]),
    ([1.0, 1.0], [True, True]),
    ([1.0, 1.0], [True, False]),
    ([0.9], [True]),
    ([0.9], [False]),
]


def test_gradients_are_finite_at_the_corners(subtests):
    for weighted, normalisation in FORMS:
        for confidence, right in CORNERS:
            with subtests.test(f"{confidence}, {right}, {weighted}, {normalisation}"):
                p, labels = sure_rows(confidence, right)
                logits = p.clamp_min(-1e4).float().requires_grad_()
                form = {"weighted": weighted, "normalisation": normalisation}
                mmce_penalty(logits, labels, **form).backward()
                assert bool(logits.grad.isfinite().all())


@pytest.mark.parametrize("right", [True, False])
def test_rows_of_one_kind_have_no_weighted_penalty(right):
    logits, labels = sure_rows([0.8, 0.9, 0.7], [right] * 3)
    logits.requires_grad_()
    penalty = mmce_penalty(logits, labels)
    penalty.backward()
    assert float(penalty.detach()) == 0.0
    assert not bool(logits.grad.any())


def test_the_loss_is_cross_entropy_plus_a_multiple_of_it():
    logits, labels = drawn(4, 1)
    found = mmce_loss(logits, labels, strength=3, width=0.2)
    by_hand = cross_entropy_loss(logits, labels) + 3 * mmce_penalty(logits, labels, width=0.2)
    torch.testing.assert_close(found, by_hand, rtol=1e-14, atol=0)


def test_it_lowers_the_confidence_of_an_overconfident_batch():
    logits, labels = sure_rows([0.95] * 10, [True] * 6 + [False] * 4)
    logits.requires_grad_()
    mmce_penalty(logits, labels, weighted=False).backward()
    assert bool((logits.grad[:, 0] > 0).all())


def test_classes_can_be_renamed():
    logits, labels = drawn(4, 2)
    order = torch.tensor([2, 0, 3, 1])
    found = mmce_penalty(logits[:, order], order.argsort()[labels])
    torch.testing.assert_close(found, mmce_penalty(logits, labels))


@pytest.mark.parametrize(("weighted", "normalisation"), FORMS)
def test_it_keeps_the_contract(weighted, normalisation):
    loss = MMCELoss(weighted=weighted, normalisation=normalisation)
    check_loss(loss, rowwise=False, soft_labels=False, weight=False)


def test_options_come_from_text():
    loss = as_loss("mmce:strength=8,weighted=false,normalisation=released,width=0.2")
    shown = "strength=8, weighted=False, width=0.2, normalisation='released'"
    assert shown in repr(loss)


def test_shares_are_refused():
    with refuses(InputError, "mmce needs", "class per row"):
        mmce_loss(torch.zeros(2, 2), torch.full((2, 2), 0.5))


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"strength": -1}, ("strength", "number", "0 to 100")),
        ({"width": 0}, ("width", "kernel", "number above 0")),
        ({"width": "wide"}, ("width", "kernel", "number above 0")),
        ({"normalisation": "double"}, ("normalisation", "'correct'", "'released'")),
    ],
)
def test_options_out_of_range_are_refused(options, rule):
    with refuses(InputError, *rule):
        MMCELoss(**options)
