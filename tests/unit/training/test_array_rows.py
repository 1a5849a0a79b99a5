"""BatchRows of numbers as batches: all rows, once, where their places say."""

import numpy as np
import pytest
import torch
from tests.sentences import refuses
from torch import nn

from calibrant.errors import InputError
from calibrant.training import array_rows
from calibrant.training.array_rows import ArrayRows


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def made(n=130, columns=3):
    features = np.random.default_rng(0).normal(size=(n, columns))
    return ArrayRows(features, np.arange(n) % 7)


def dealt(rows, size, **options):
    """Places, features and labels of all batches, joined."""
    batches = list(rows.batches(size, **options))
    places = torch.cat([batch.places for batch in batches])
    features = torch.cat([batch.inputs[0] for batch in batches])
    return places, features, torch.cat([batch.labels for batch in batches])


@pytest.mark.parametrize("generator", [None, 5])
def test_each_row_is_dealt_once_with_its_own_features_and_label(generator):
    rows = made()
    order = None if generator is None else seeded(generator)
    places, features, labels = dealt(rows, 32, generator=order)
    assert sorted(places.tolist()) == list(range(130))
    assert torch.equal(features, rows.features[places])
    assert torch.equal(labels, rows.labels[places])


def test_without_a_generator_rows_come_in_order_and_are_not_copied():
    rows = made()
    batches = list(rows.batches(50))
    assert torch.cat([batch.places for batch in batches]).tolist() == list(range(130))
    assert batches[1].inputs[0].data_ptr() == rows.features[50:].data_ptr()


def test_the_same_seed_deals_the_same_batches_and_the_next_draw_others():
    rows, generator = made(), seeded()
    first, again = (dealt(rows, 32, generator=seeded())[0].tolist() for _ in range(2))
    assert first == again
    assert dealt(rows, 32, generator=generator)[0].tolist() == first
    assert dealt(rows, 32, generator=generator)[0].tolist() != first


def test_gathering_in_blocks_deals_the_same_as_all_at_once(monkeypatch):
    rows = made()
    whole = dealt(rows, 32, generator=seeded())
    monkeypatch.setattr(array_rows, "_BLOCK", 70 * 12)  # two batches of 32 rows of 12 bytes
    for one, other in zip(whole, dealt(rows, 32, generator=seeded()), strict=True):
        assert torch.equal(one, other)
    monkeypatch.setattr(array_rows, "_BLOCK", 1)  # a batch larger than a block is a block
    assert torch.equal(whole[1], dealt(rows, 32, generator=seeded())[1])


def test_batch_norm_can_learn_from_every_shuffled_batch():
    model = nn.BatchNorm1d(3)
    sizes = []
    for batch in made(129).batches(64, generator=seeded()):
        model(*batch.inputs)
        sizes.append(len(batch.labels))
    assert sizes == [64, 65]


@pytest.mark.parametrize("n", [129, 130, 131, 132])
def test_two_processes_share_each_batch(n):
    rows = made(n)
    alone = list(rows.batches(64, generator=seeded()))
    shared = [list(rows.batches(64, generator=seeded(), shard=(rank, 2))) for rank in (0, 1)]
    assert len(shared[0]) == len(shared[1])
    together = torch.cat([batch.places for part in shared for batch in part])
    assert sorted(together.tolist()) == list(range(n))
    assert shared[0][0].places.tolist() == alone[0].places[::2].tolist()
    assert shared[1][0].places.tolist() == alone[0].places[1::2].tolist()
    assert torch.equal(shared[1][0].inputs[0], rows.features[shared[1][0].places])
    assert all(len(batch.labels) > 1 for part in shared for batch in part)


def test_in_order_processes_together_deal_every_row_once():
    rows = made(5)
    parts = [dealt(rows, 2, shard=(rank, 3))[0].tolist() for rank in (0, 1)]
    assert list(rows.batches(2, shard=(2, 3))) == []
    assert sorted(parts[0] + parts[1]) == [0, 1, 2, 3, 4]


def test_numpy_becomes_float32_and_a_tensor_keeps_its_precision():
    assert made().features.dtype == torch.float32
    assert ArrayRows(torch.zeros(2, 1, dtype=torch.float64)).features.dtype == torch.float64


def test_the_callers_array_is_not_held():
    features = np.zeros((4, 2), dtype=np.float32)
    rows = ArrayRows(features)
    features[:] = 1
    assert float(rows.features.sum()) == 0


def test_size_in_bytes_counts_features_and_labels():
    assert made(10, 3).nbytes == 10 * 3 * 4 + 10 * 8


def test_images_keep_their_shape():
    rows = ArrayRows(torch.zeros(6, 3, 8, 8))
    assert next(rows.batches(4, generator=seeded())).inputs[0].shape == (4, 3, 8, 8)


def test_rows_moved_to_a_device_deal_there():
    moved = made().to(torch.device("meta"))
    assert {moved.features.device.type, moved.labels.device.type} == {"meta"}
    assert len(moved) == 130
    assert next(moved.batches(4)).inputs[0].device.type == "meta"


def test_no_rows_give_no_batches():
    rows = ArrayRows(np.zeros((0, 3)), [])
    assert list(rows.batches(4)) == list(rows.batches(4, generator=seeded())) == []


def test_bad_features_are_named():
    with refuses(InputError, "floating-point numbers", "got int64"):
        ArrayRows(np.zeros((2, 2), dtype=np.int64))
    with refuses(InputError, "floating-point numbers", "got torch.uint8"):
        ArrayRows(torch.zeros(2, 2, dtype=torch.uint8))
    with pytest.raises(InputError, match=r"got shape \(3,\)"):
        ArrayRows(np.zeros(3))
    with pytest.raises(InputError, match="row 1 holds nan"):
        ArrayRows(np.array([[0.0, 1.0], [0.0, np.nan]]))
    with pytest.raises(InputError, match="row 0 holds inf"):
        ArrayRows(torch.tensor([[float("inf")]]))
