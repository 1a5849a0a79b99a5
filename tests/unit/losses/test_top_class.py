"""The top class of steer rows: exact where probabilities round to 1, in an order of its own."""

import numpy as np
import pytest
import torch
from tests.sentences import refuses
from tests.unit.losses.steer_worlds import world

from calibrant.convert import log_odds_from_logits
from calibrant.errors import InputError
from calibrant.losses.top_class import sort_rows, top_rows


def scores_of(logits, labels, scale="log-odds"):
    return sort_rows(top_rows(logits, labels, scale=scale, ignore_index=-100))


def test_log_odds_of_the_top_class_by_hand():
    scores, right = scores_of(torch.tensor([[100.0, 0.0], [0.0, 3.0]]), torch.tensor([0, 0]))
    assert scores.tolist() == [3.0, 100.0]
    assert right.tolist() == [False, True]
    three = torch.tensor([[50.0, 0.0, 0.0]])
    assert scores_of(three, torch.tensor([1]))[0][0] == pytest.approx(50 - np.log(2), abs=1e-14)


@pytest.mark.parametrize("k", [3, 10, 1000])
def test_log_odds_equal_those_of_the_house(k):
    logits, labels = world(400, k, sharpness=3.0)
    scores, _ = scores_of(logits, labels)
    assert np.allclose(scores, np.sort(log_odds_from_logits(logits.numpy()).max(1)), atol=1e-12)


def test_probabilities_are_those_of_softmax_in_the_precision_that_came():
    for dtype in (torch.float32, torch.float64):
        logits, labels = world(300, dtype=dtype)
        scores, right = scores_of(logits, labels, "probability")
        expected, top = logits.softmax(-1).max(-1)
        assert np.array_equal(scores, np.sort(expected.double().numpy()))
        assert right.sum() == (top == labels).sum()


@pytest.mark.parametrize("scale", ["log-odds", "probability"])
@pytest.mark.parametrize("k", [2, 3, 7, 33])
def test_neither_the_order_of_rows_nor_how_they_are_cut_changes_a_bit(scale, k):
    logits, labels = world(1003, k, dtype=torch.float32)
    logits[::5] = logits[0]  # ties, right and wrong
    whole = scores_of(logits, labels, scale)
    shuffled = torch.randperm(1003, generator=torch.Generator().manual_seed(0))
    logits, labels = logits[shuffled], labels[shuffled]
    parts = [
        top_rows(logits[a:b], labels[a:b], scale=scale, ignore_index=-100)
        for a, b in [(0, 1), (1, 8), (8, 500), (500, 1003)]
    ]
    for found, expected in zip(sort_rows(torch.cat(parts)), whole, strict=True):
        assert np.array_equal(found, expected)


def test_arrays_half_precision_and_images_are_taken():
    logits, labels = world(60, 3, dtype=torch.float32)
    expected = scores_of(logits, labels)
    image = logits.reshape(4, 3, 5, 3).permute(0, 3, 1, 2)
    frozen = logits.numpy().copy()
    frozen.flags.writeable = False
    for given in (
        (logits.numpy(), labels.numpy().astype(np.int16)),
        (frozen, labels.tolist()),
        (image, labels.reshape(4, 3, 5)),
        (logits.clone().requires_grad_(), labels),
    ):
        assert np.array_equal(scores_of(*given)[0], expected[0])
    half = scores_of(logits.half(), labels)[0]
    assert np.allclose(half, expected[0], atol=0.02)


def test_ignored_rows_are_left_out_whatever_they_hold():
    logits, labels = world(50, 3)
    labels[::2] = -100
    logits[::2] = torch.nan
    assert np.array_equal(scores_of(logits, labels)[0], scores_of(logits[1::2], labels[1::2])[0])


def test_many_rows_are_taken_block_by_block(monkeypatch):
    logits, labels = world(500, 4)
    whole = scores_of(logits, labels)[0]
    monkeypatch.setattr("calibrant.losses.top_class._BLOCK", 30)
    assert np.array_equal(scores_of(logits, labels)[0], whole)


@pytest.mark.parametrize(
    ("logits", "labels", "message"),
    [
        (
            torch.tensor([[0.0, torch.nan]]),
            torch.tensor([0]),
            ("1 of 1", "rows", "NaN", "infinity"),
        ),
        (torch.tensor([[0.0, torch.inf]]), torch.tensor([0]), ("finite numbers",)),
        (torch.zeros(1, 2), torch.tensor([2]), ("labels must lie in 0..1", "2 classes", "got 2")),
        (torch.zeros(1, 2), torch.tensor([0, 1]), ("labels", "classes", "shape")),
        (torch.zeros(1, 2), torch.full((1, 2), 0.5), ("cannot take shares", "classes")),
        (torch.zeros(1, 2), ["yes"], ("labels", "tensor", "array", "numbers", "got list")),
        (torch.zeros(2), torch.tensor([0, 1]), ("logits must be (n, K)",)),
    ],
)
def test_rows_that_cannot_be_used_are_refused_in_a_sentence(logits, labels, message):
    with refuses(InputError, *message):
        scores_of(logits, labels)
