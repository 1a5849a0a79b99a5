"""Losses of a batch as a whole: what they refuse, and how they are summed."""

import pytest
import torch
from tests.sentences import refuses

from calibrant.errors import InputError
from calibrant.losses import BatchLoss, MMCELoss, SoftF1Loss, as_loss, mmce_loss, soft_f1_loss
from calibrant.testing.loss_cases import drawn

BOTH = pytest.mark.parametrize(
    ("made", "function"), [(MMCELoss, mmce_loss), (SoftF1Loss, soft_f1_loss)]
)


@BOTH
def test_a_value_per_row_is_refused(made, function):
    with refuses(InputError, "no value per", "row", "choose reduction 'mean'", "'sum'"):
        made(reduction="none")
    with refuses(InputError, "no value per", "row"):
        function(*drawn(2, 0), reduction="none")


@BOTH
def test_class_weights_are_refused(made, function):
    with refuses(InputError, "not support class", "weights"):
        made(weight=[1.0, 2.0])
    with refuses(InputError, "not support class", "weights"):
        function(*drawn(2, 0), weight=[1.0, 2.0])


@pytest.mark.parametrize("name", ["mmce", "soft_f1"])
def test_weights_by_name_are_refused_too(name):
    with refuses(InputError, f"{name!r}", "defined", "whole batch"):
        as_loss(f"{name}:weight=balanced", class_counts=[90, 10])


@BOTH
def test_a_sum_is_the_mean_times_the_rows_that_count(made, function):
    logits, labels = drawn(3, 1)
    mean = function(logits, labels)
    torch.testing.assert_close(function(logits, labels, reduction="sum"), 24 * mean)
    labels[::4] = -100
    mean = made()(logits, labels)
    torch.testing.assert_close(made(reduction="sum")(logits, labels), 18 * mean)


def test_it_is_the_base_of_both_and_keeps_their_options():
    loss = MMCELoss(ignore_index=7, reduction="sum")
    assert isinstance(loss, BatchLoss)
    assert loss.options == {"ignore_index": 7, "reduction": "sum"}


def test_an_unknown_reduction_is_refused():
    with refuses(InputError, "reduction", "'mean'", "'sum'", "'none'"):
        SoftF1Loss(reduction="average")
