"""Splits are checked before any work is done."""

import pytest
import torch
from tests.sentences import refuses
from tests.unit.training.runs import blobs, net, options
from torch import nn

from calibrant.errors import InputError
from calibrant.training import ArrayRows, train
from calibrant.training.split_checks import class_counts


def test_an_empty_split_is_refused_by_name():
    empty = ArrayRows(torch.zeros(0, 3), torch.zeros(0, dtype=torch.long))
    with refuses(InputError, "steer split", "empty"):
        train(net(), blobs(30), empty, options=options())
    with refuses(InputError, "train split", "empty"):
        train(net(), empty, blobs(30), options=options())


def test_labels_that_the_model_cannot_give_are_refused():
    wrong = ArrayRows(torch.zeros(5, 3), torch.tensor([0, 1, 2, 3, 0]))
    with refuses(InputError, "labels", "steer split", "split must be in 0..2", "got 3"):
        train(net(), blobs(30), wrong, options=options())
    below = ArrayRows(torch.zeros(2, 3), torch.tensor([0, -1]))
    with refuses(InputError, "labels", "train split", "got -1"):
        train(net(), below, blobs(30), options=options())


def test_a_model_without_a_column_per_class_is_refused():
    for model, shape in ((nn.Linear(3, 1), "got shape (2, 1)"), (_Flat(3, 3), "got shape (6,)")):
        with refuses(InputError, "column", "K > 1", "classes", shape):
            train(model, blobs(30), blobs(30), options=options())


class _Flat(nn.Linear):
    def forward(self, x):
        return super().forward(x).flatten()


def test_a_class_that_steer_lacks_is_warned_of_and_training_goes_on():
    steer = blobs(60)
    kept = steer.labels != 2
    with pytest.warns(UserWarning, match="no rows of 1 of 3 classes.*first is 2"):
        trained = train(
            net(), blobs(60), ArrayRows(steer.features[kept], steer.labels[kept]), options=options()
        )
    assert len(trained.records) == 5


def test_the_check_leaves_the_model_in_its_mode_and_its_running_means_alone():
    model = net()
    before = model[1].running_mean.clone()
    with pytest.raises(InputError):
        train(model, blobs(30), ArrayRows(torch.zeros(1, 3), torch.tensor([9])), options=options())
    assert model.training
    assert torch.equal(model[1].running_mean, before)


def test_classes_are_counted_with_zeros_for_the_absent():
    rows = ArrayRows(torch.zeros(4, 1), torch.tensor([0, 2, 2, 0]))
    assert class_counts(rows, 4).tolist() == [2, 0, 2, 0]


def test_a_steer_split_of_one_row_cannot_be_measured():
    one = ArrayRows(torch.zeros(1, 3), torch.tensor([0]))
    with refuses(InputError, "at least 2 rows", "evaluated", "got 1"):
        train(net(), blobs(30), one, options=options())


def test_a_model_without_weights_to_train_is_refused():
    for model in (net().requires_grad_(False), nn.Identity()):
        with refuses(InputError, "no weights", "train"):
            train(model, blobs(30), blobs(30), options=options())


def test_batch_norm_needs_two_rows():
    with refuses(InputError, "batch_size", "at least 2", "batch norm", "got 1"):
        train(net(), blobs(30), blobs(30), options=options(batch_size=1))
    with refuses(InputError, "number", "train rows", "at least 2", "batch"):
        train(net(), blobs(1), blobs(30), options=options())
    trained = train(nn.Linear(3, 3), blobs(5), blobs(30), options=options(batch_size=1, epochs=1))
    assert len(trained.records) == 1
