"""Scores come in the order of the rows, and the model is left as it was."""

import numpy as np
import pytest
import torch
from tests.unit.training.runs import blobs, net
from torch import nn

from calibrant.training import ArrayRows, predict_logits
from calibrant.training.scoring import score


def test_logits_stand_where_their_rows_stand_whatever_the_batch():
    model, rows = net().eval(), blobs(101)
    with torch.no_grad():
        expected = model(rows.features).numpy()
    for size in (1, 7, 101, 1000):
        np.testing.assert_allclose(
            predict_logits(model, rows, batch_size=size), expected, atol=1e-6
        )


def test_scoring_uses_eval_mode_and_gives_each_part_its_own_mode_back():
    model = net()
    model[1].eval()  # a frozen batch norm inside a model in training
    one, other = predict_logits(model, blobs(20)), predict_logits(model, blobs(20))
    assert np.array_equal(one, other)
    assert model.training
    assert not model[1].training
    assert model[3].training


def test_modes_come_back_after_an_error_too():
    class Broken(nn.Linear):
        def forward(self, x):
            raise ValueError("mine")

    model = nn.Sequential(Broken(3, 3))
    with pytest.raises(ValueError, match="mine"):
        predict_logits(model, blobs(5))
    assert model.training


def test_the_parts_of_processes_make_up_the_whole_split():
    rows = ArrayRows(torch.arange(10.0).reshape(5, 2), torch.arange(5))
    model = nn.Linear(2, 2)
    parts = [score(model, rows, 5, torch.device("cpu"), (rank, 3))[1] for rank in range(3)]
    assert sorted(torch.cat(parts).tolist()) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("kind", [torch.float64, torch.bfloat16])
def test_rows_take_the_precision_of_the_model(kind):
    model = nn.Linear(3, 3).to(kind)
    found = predict_logits(model, blobs(7))
    assert found.dtype == np.float32
    assert np.isfinite(found).all()
