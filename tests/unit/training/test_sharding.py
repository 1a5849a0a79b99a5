"""Cutting a split into batches and batches into the parts of processes."""

import numpy as np
import pytest
import torch
from tests.sentences import refuses

from calibrant.errors import InputError
from calibrant.training.sharding import (
    as_row_labels,
    batch_sizes,
    check_batch_size,
    row_positions,
    shard_batches,
)


def test_no_row_is_lost_or_dealt_twice(subtests):
    for n in [0, 1, 2, 7, 64, 65, 66, 128, 129, 1000]:
        for size in [1, 2, 3, 64]:
            for world in [1, 2, 3]:
                with subtests.test(f"{n} rows, size {size}, world {world}"):
                    for shuffled in (True, False):
                        sizes = batch_sizes(n, size, shuffled=shuffled, world=world)
                        assert sum(sizes) == n
                        assert 0 not in sizes


def test_a_rest_that_leaves_a_process_one_row_joins_the_batch_before():
    assert batch_sizes(65, 64, shuffled=True) == [65]
    assert batch_sizes(66, 64, shuffled=True) == [64, 2]
    assert batch_sizes(67, 64, shuffled=True, world=2) == [67]
    assert batch_sizes(68, 64, shuffled=True, world=2) == [64, 4]


def test_a_rest_with_no_batch_before_it_stays():
    assert batch_sizes(1, 64, shuffled=True) == [1]


def test_without_shuffling_no_batch_exceeds_the_size():
    assert batch_sizes(65, 64, shuffled=False) == [64, 1]


def test_processes_take_turns_within_each_batch():
    order = torch.arange(7)
    first, first_sizes = shard_batches(order, [4, 3], (0, 2), shuffled=True)
    second, second_sizes = shard_batches(order, [4, 3], (1, 2), shuffled=True)
    assert (first.tolist(), first_sizes) == ([0, 2, 4, 6], [2, 2])
    assert (second.tolist(), second_sizes) == ([1, 3, 5], [2, 1])


def test_a_shuffled_batch_with_fewer_rows_than_processes_is_left_out_by_all():
    order = torch.arange(5)
    for rank in range(3):
        _, sizes = shard_batches(order, [3, 2], (rank, 3), shuffled=True)
        assert sizes == [1]


def test_in_order_every_row_goes_to_exactly_one_process():
    parts = [shard_batches(torch.arange(5), [3, 2], (rank, 3), shuffled=False) for rank in range(3)]
    assert sorted(torch.cat([order for order, _ in parts]).tolist()) == list(range(5))
    assert [sizes for _, sizes in parts] == [[1, 1], [1, 1], [1]]


def test_a_seed_gives_one_order_and_another_seed_another():
    def drawn(seed):
        return row_positions(100, torch.Generator().manual_seed(seed)).tolist()

    assert drawn(3) == drawn(3) != drawn(4)
    assert sorted(drawn(3)) == row_positions(100, None).tolist() == list(range(100))


def test_absent_labels_are_zeros():
    assert as_row_labels(None, 3).tolist() == [0, 0, 0]


def test_labels_of_any_whole_type_become_int64():
    for labels in ([1, 0], np.array([1, 0], dtype=np.int8), torch.tensor([1, 0]).int()):
        found = as_row_labels(labels, 2)
        assert found.dtype == torch.int64
        assert found.tolist() == [1, 0]


def test_a_batch_size_of_numpys_is_a_batch_size():
    check_batch_size(np.int64(32))


def test_bad_labels_sizes_and_shards_are_named():
    with refuses(InputError, "whole numbers", "class per row", "got torch.float64"):
        as_row_labels(np.array([0.0, 1.0]), 2)
    with pytest.raises(InputError, match=r"\(3,\) here, got shape \(2,\)"):
        as_row_labels([0, 1], 3)
    for size in (0, -1, 1.5, True, np.float64(2)):
        with refuses(InputError, "batch_size", f"got {size!r}"):
            check_batch_size(size)
    with refuses(InputError, "shard", "got (2, 2)"):
        shard_batches(torch.arange(2), [2], (2, 2), shuffled=True)
