"""Texts as batches: like lengths together, padded right, every row once."""

import numpy as np
import pytest
import torch
from tests.sentences import refuses

from calibrant.errors import InputError
from calibrant.training.text_rows import TextRows


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def made(n=1000, seed=0, **options):
    """BatchRows and the plain texts they stand for; about one in twenty is empty."""
    rng = np.random.default_rng(seed)
    lengths = rng.lognormal(2.5, 0.8, n).astype(int) * (rng.random(n) > 0.05)
    texts = [rng.integers(1, 500, length) for length in lengths]
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    flat = np.concatenate([*texts, np.zeros(0, int)])
    return TextRows(flat, offsets, np.arange(n) % 5, **options), texts


def padded(texts, width):
    """Padding written as a plain loop."""
    found = np.zeros((len(texts), width), dtype=int)
    for row, text in enumerate(texts):
        found[row, : len(text)] = text
    return found.tolist()


@pytest.mark.parametrize("seed", [None, 0, 1])
def test_every_text_is_dealt_once_as_a_plain_loop_would_pad_it(seed):
    rows, texts = made()
    seen = []
    for batch in rows.batches(64, generator=None if seed is None else seeded(seed)):
        tokens, lengths = batch.inputs
        own = [texts[place] for place in batch.places]
        assert tokens.tolist() == padded(own, max(1, max(map(len, own))))
        assert lengths.tolist() == [len(text) for text in own]
        assert batch.labels.tolist() == [place % 5 for place in batch.places]
        seen += batch.places.tolist()
    assert sorted(seen) == list(range(1000))


def test_bucketing_leaves_little_padding():
    rows, _ = made(20_000)
    cells = sum(batch.inputs[0].numel() for batch in rows.batches(32, generator=seeded()))
    assert cells < 1.35 * len(rows.tokens)


def test_without_a_generator_rows_are_sorted_by_length():
    rows, _ = made()
    lengths = torch.cat([batch.inputs[1] for batch in rows.batches(64)])
    assert (lengths.diff() >= 0).all()


def test_batches_come_in_no_order_of_length_and_with_new_companions_every_epoch():
    rows, _ = made()
    generator = seeded()
    epochs = [list(rows.batches(50, generator=generator)) for _ in range(2)]
    widths = [batch.inputs[0].shape[1] for batch in epochs[0]]
    assert widths not in (sorted(widths), sorted(widths, reverse=True))
    companions = [{frozenset(batch.places.tolist()) for batch in epoch} for epoch in epochs]
    assert not companions[0] & companions[1]


def test_the_same_seed_deals_the_same_batches():
    rows, _ = made()
    places = [[b.places.tolist() for b in rows.batches(64, generator=seeded(3))] for _ in "ab"]
    assert places[0] == places[1]


def test_long_texts_lose_their_end():
    rows, texts = made(max_length=5)
    for batch in rows.batches(64):
        own = [texts[place][:5] for place in batch.places]
        assert batch.inputs[0].tolist() == padded(own, max(1, max(map(len, own))))


def test_an_empty_text_has_length_0_and_one_column_of_padding():
    batch = next(TextRows([], [0, 0, 0]).batches(2))
    assert batch.inputs[0].tolist() == [[0], [0]]
    assert batch.inputs[1].tolist() == [0, 0]


def test_no_texts_give_no_batches():
    rows = TextRows([], [0], [])
    assert list(rows.batches(4)) == list(rows.batches(4, generator=seeded())) == []


def test_absent_labels_are_zeros():
    assert next(TextRows([4, 5], [0, 1, 2]).batches(2)).labels.tolist() == [0, 0]


@pytest.mark.parametrize("n", [1000, 1001, 1003])
def test_two_processes_share_each_batch(n):
    rows, _ = made(n)
    alone = list(rows.batches(64, generator=seeded()))
    shared = [list(rows.batches(64, generator=seeded(), shard=(rank, 2))) for rank in (0, 1)]
    assert len(shared[0]) == len(shared[1]) == len(alone)
    for whole, one, other in zip(alone, *shared, strict=True):
        assert one.places.tolist() == whole.places[::2].tolist()
        assert other.places.tolist() == whole.places[1::2].tolist()
        assert min(len(one.places), len(other.places)) > 1


def test_in_order_processes_together_deal_every_row_once():
    rows, _ = made(101)
    parts = [b.places for rank in range(3) for b in rows.batches(25, shard=(rank, 3))]
    assert sorted(torch.cat(parts).tolist()) == list(range(101))


def test_a_device_holds_the_tokens_and_the_cpu_the_lengths():
    moved = made(100)[0].to(torch.device("meta"))
    batch = next(moved.batches(8, generator=seeded()))
    assert batch.inputs[0].device.type == batch.labels.device.type == "meta"
    assert batch.inputs[1].device.type == "cpu"


def test_size_in_bytes_counts_all_that_is_held():
    assert TextRows([1, 2, 3], [0, 1, 3]).nbytes == 8 * (3 + 2 + 2 + 2)


@pytest.mark.parametrize(
    ("tokens", "offsets", "options", "sentence"),
    [
        ([0.5], [0, 1], {}, ("tokens", "whole numbers", "got torch.float32")),
        ([[1]], [0, 1], {}, ("dimension", "got shape (1, 1)")),
        ([3, -2], [0, 2], {}, ("tokens", "at least 0", "got -2")),
        ([1, 2], [0, 1], {}, ("rise from 0", "number", "tokens, 2", "got 0 to 1")),
        ([1, 2], [0, 2, 1, 2], {}, ("offsets must rise",)),
        ([1, 2], [0.0, 2.0], {}, ("offsets", "whole numbers")),
        ([1, 2], [], {}, ("more than there are texts",)),
        ([1, 2], [0, 2], {"max_length": 0}, ("max_length", "got 0")),
        ([1, 2], [0, 2], {"labels": [1, 2]}, ("labels", "class per row", "(1,)")),
    ],
)
def test_bad_input_is_named(tokens, offsets, options, sentence):
    with refuses(InputError, *sentence):
        TextRows(tokens, offsets, **options)


def test_on_a_gpu_widths_are_few_and_never_beyond_the_longest_text(monkeypatch):
    """As if the tokens were on a GPU: a transformer may have no more positions than that."""
    lengths = [3, 10, 31, 33, 40]
    rows = TextRows(torch.arange(1, sum(lengths) + 1), [0, *np.cumsum(lengths)], [0] * 5)
    assert rows._width(33) == 33
    rows.tokens = _OnGpu()
    assert [rows._width(each) for each in (1, 32, 33, 40)] == [32, 32, 40, 40]
    assert rows.to("cpu").longest == 40


class _OnGpu:
    is_cuda = True

    def to(self, device):
        return self
