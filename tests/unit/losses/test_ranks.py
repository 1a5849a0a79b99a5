"""Two processes learn what one would, to the bit."""

import numpy as np
import pytest
import torch
import torch.multiprocessing as multiprocessing
from tests.sentences import assert_mentions, refuses
from tests.unit.losses.steer_worlds import losses, one_of_two, taught, world

from calibrant.errors import InputError
from calibrant.losses import AdaFocalLoss
from calibrant.losses.ranks import broadcast_first, compute_and_gather, gather_rows

CUT = 433  # rows of the first of two processes; the second has 268


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """What both processes wrote down."""
    folder = tmp_path_factory.mktemp("two")
    multiprocessing.spawn(one_of_two, (str(folder), CUT), nprocs=2)
    return [torch.load(folder / f"{rank}.pt") for rank in (0, 1)]


def same(one, other):
    return one.keys() == other.keys() and all(
        np.array_equal(value.numpy(), other[name].numpy(), equal_nan=True)
        for name, value in one.items()
    )


@pytest.mark.parametrize("kind", sorted(losses()))
def test_unequal_shards_give_both_processes_the_state_of_one_with_all_rows(two, kind):
    alone = taught(losses()[kind])
    assert alone["_extra_state"].shape[0] == 3
    assert same(two[0][kind], alone)
    assert same(two[1][kind], alone)


def test_a_process_without_rows_learns_what_the_other_does(two):
    alone = AdaFocalLoss(n_bins=7)
    alone.update(*world(300))
    assert same(two[0]["nothing here"], alone.state_dict())
    assert same(two[1]["nothing here"], alone.state_dict())


def test_rows_refused_on_one_process_are_an_error_on_both(two):
    (first, kept), (second, untouched) = two[0]["refused"], two[1]["refused"]
    assert "the rows of process 1 were refused" in first
    assert_mentions(second, "1 of 300", "rows hold NaN or infinity")
    start = AdaFocalLoss(n_bins=7).state_dict()
    assert same(kept, start)
    assert same(untouched, start)


def test_alone_nothing_is_gathered():
    rows = torch.arange(6.0).reshape(3, 2)
    assert gather_rows(rows) is rows
    assert broadcast_first(rows) is rows
    assert compute_and_gather(lambda: rows) is rows

    def cannot():
        raise InputError("these rows are broken.")

    with refuses(InputError, "rows are broken"):
        compute_and_gather(cannot)
