"""The history of gammas: numbers to draw."""

import json

import numpy as np
import pytest
import torch
from tests.unit.losses.steer_worlds import world

from calibrant.losses import AdaFocalLoss, CalFocalLoss


@pytest.mark.parametrize("mode", ["robust", "paper"])
def test_it_holds_one_row_for_each_update(mode):
    loss = AdaFocalLoss(n_bins=6, mode=mode)
    assert len(loss.history) == 0
    assert loss.history.gamma.shape == (0, 6)
    for seed in range(3):
        loss.update(*world(600, sharpness=2.0, seed=seed))
    history = loss.history
    assert history.step.tolist() == [1, 2, 3]
    assert history.edges.shape == (3, 5)
    for name in ("error", "count", "gamma", "confidence", "accuracy"):
        assert getattr(history, name).shape == (3, 6)
    assert np.array_equal(history.gamma[-1], loss.gammas.numpy())
    assert np.array_equal(history.error, history.confidence - history.accuracy)
    assert str(history).startswith("6 bins over 3 updates, gamma ")


def test_the_figures_are_those_of_the_rows():
    logits, labels = world(600, sharpness=2.0)
    loss = AdaFocalLoss(n_bins=4)
    loss.update(logits, labels)
    confidence, top = logits.softmax(-1).max(-1)
    order = confidence.argsort()
    history = loss.history
    for b, rows in enumerate(order.split(150)):
        right = (top == labels)[rows].double().mean()
        assert history.count[0, b] == 150
        assert history.confidence[0, b] == pytest.approx(confidence[rows].mean().item())
        assert history.accuracy[0, b] == pytest.approx(right.item())
    lowest = confidence[order[150::150]]
    assert history.edges[0] == pytest.approx(lowest.numpy())


def test_edges_are_probabilities_in_both_modes():
    steer = world(3000)
    found = []
    for mode in ("robust", "paper"):
        loss = AdaFocalLoss(mode=mode)
        loss.update(*steer)
        found.append(loss.history.edges)
    assert found[0] == pytest.approx(found[1], abs=0.01)


def test_it_becomes_json_with_null_for_bins_without_rows():
    loss = CalFocalLoss("bin", n_bins=3)
    loss.update(torch.zeros(30, 2), torch.zeros(30, dtype=torch.long))
    saved = json.loads(json.dumps(loss.history.to_dict(), allow_nan=False))
    assert saved["count"] == [[30, 0, 0]]
    assert saved["error"] == [[-0.5, None, None]]
    assert saved["edges"] == [[1.0, 1.0]]
    assert saved["step"] == [1]


def test_what_is_handed_out_can_be_changed_without_harm():
    loss = AdaFocalLoss(n_bins=3)
    loss.update(*world(300))
    loss.history.gamma[...] = 99.0
    assert loss.history.gamma.max() < 99.0
