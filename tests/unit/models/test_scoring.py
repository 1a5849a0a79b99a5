"""Encoded rows through a network: as the training loop scores them, in the order they came in."""

import numpy as np
import pytest
import torch

from calibrant.data.encoders.image_encoder import ImageEncoder
from calibrant.models import MLP, BiLSTM, ResNet50, TextCNN
from calibrant.models.scoring import (
    AT_A_TIME,
    array_logits,
    device_of,
    image_logits,
    images_at_a_time,
    lay_out,
    text_logits,
)
from calibrant.models.text_batch import padded
from calibrant.training import ArrayRows, predict_logits
from calibrant.training.image_rows import ImageRows
from calibrant.training.text_rows import TextRows


def texts(n, seed=0):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, 30, n)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    return rng.integers(1, 50, offsets[-1]), offsets


@pytest.mark.parametrize("network", [BiLSTM(50, 3, embedding=8, hidden=8), TextCNN(50, 3, 8, 8)])
def test_texts_are_scored_as_the_training_loop_scores_them(network):
    tokens, offsets = texts(700)
    found = text_logits(network.eval(), tokens, offsets)
    expected = predict_logits(network, TextRows(tokens, offsets))
    assert found.dtype == np.float32
    assert found == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("n", [1, AT_A_TIME, AT_A_TIME + 1, 1000])
def test_rows_are_scored_as_the_training_loop_scores_them(n):
    features = np.random.default_rng(0).normal(size=(n, 6)).astype(np.float32)
    network = MLP(6, 4).eval()
    found = array_logits(network, features)
    assert found == pytest.approx(predict_logits(network, ArrayRows(features)), abs=1e-6)
    assert found.shape == (n, 4)


def test_a_row_does_not_depend_on_those_it_comes_with():
    features = np.random.default_rng(0).normal(size=(600, 6)).astype(np.float32)
    network = MLP(6, 4).eval()
    whole = array_logits(network, features)
    assert (array_logits(network, features[17:18]) == whole[17]).all()
    assert (array_logits(network, features[::-1]) == whole[::-1]).all()


class Counting(torch.nn.Module):
    """Remembers the shapes of its batches, and tells the sum of the tokens of each text."""

    def __init__(self):
        super().__init__()
        self.shapes = []

    def forward(self, tokens, lengths):
        assert tokens.shape[1] == max(int(lengths.max()), 1)
        self.shapes.append(tuple(tokens.shape))
        return torch.stack([tokens.sum(dim=1), lengths], dim=1).float()


@pytest.mark.parametrize(("deep", "most"), [(False, 256 * 400), (True, 4096)])
def test_a_batch_of_a_deep_network_is_bounded_by_its_tokens(deep, most):
    rng = np.random.default_rng(0)
    lengths = np.concatenate([rng.integers(0, 60, 2000), rng.integers(300, 400, 30), [9000]])
    lengths = lengths if deep else lengths[:-1]
    rng.shuffle(lengths)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    tokens = rng.integers(1, 50, offsets[-1])
    network = Counting()
    found = text_logits(network, tokens, offsets, deep=deep)
    sums = np.concatenate([[0], np.cumsum(tokens)])[offsets]
    assert (found == np.stack([np.diff(sums), lengths], axis=1)).all()
    assert max(rows for rows, _ in network.shapes) <= AT_A_TIME
    assert all(rows * columns <= most or rows == 1 for rows, columns in network.shapes)
    assert ((1, 9000) in network.shapes) == deep


class Watched(torch.nn.Module):
    """Remembers the batches that it was called with, and gives the mean of each channel."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def forward(self, images):
        self.seen.append(images)
        return images.mean(dim=(2, 3))


def photos(n, size=(16, 16), seed=0):
    return np.random.default_rng(seed).integers(0, 256, (n, *size, 3), dtype=np.uint8)


@pytest.mark.parametrize("n", [1, 63, 130])
def test_images_are_scored_as_the_training_loop_scores_them(n):
    images = photos(n)
    encoder = ImageEncoder().fit(images)
    told = {"mean": encoder.mean_, "std": encoder.std_}
    torch.manual_seed(0)
    network = ResNet50(3, 4, width=1).eval()
    found = image_logits(network, images, **told)
    assert found.dtype == np.float32
    assert found == pytest.approx(predict_logits(network, ImageRows(images, **told)), abs=1e-5)


def test_images_are_normalised_as_the_encoder_does():
    images, network = photos(5), Watched()
    encoder = ImageEncoder().fit(images)
    found = image_logits(network, images, mean=encoder.mean_, std=encoder.std_)
    assert network.seen[0].numpy() == pytest.approx(encoder.transform(images), abs=1e-6)
    assert found == pytest.approx(encoder.transform(images).mean(axis=(2, 3)), abs=1e-5)
    assert network.seen[0].is_contiguous(memory_format=torch.channels_last)


def test_few_images_are_numbers_at_a_time():
    images, network = photos(700), Watched()
    encoder = ImageEncoder().fit(images[:9])
    image_logits(network, images, mean=encoder.mean_, std=encoder.std_)
    assert [len(batch) for batch in network.seen] == [256, 256, 188]
    assert images_at_a_time("cpu", 16, 16) == 256
    assert images_at_a_time("cpu", 224, 224) == 1
    assert images_at_a_time("cuda", 224, 224) == 20
    assert images_at_a_time("cpu", 3000, 4000) == 1


def test_networks_are_laid_out_alike_however_they_come():
    torch.manual_seed(0)
    one = ResNet50(3, 4, width=1)
    other = ResNet50(3, 4, width=1)
    for part in other.parameters():
        part.data = part.data.contiguous()
    other.load_state_dict(one.state_dict())
    for network in (one, other):
        lay_out(network)
    for mine, theirs in zip(one.parameters(), other.parameters(), strict=True):
        assert mine.stride() == theirs.stride()
        assert (mine == theirs).all()


def test_images_that_must_not_be_written_into_are_read_without_a_warning(recwarn):
    images = photos(3)
    images.flags.writeable = False
    image_logits(Watched(), images[::2], mean=np.full(3, 0.5), std=np.full(3, 0.5))
    assert not recwarn.list


def test_texts_that_are_all_empty():
    network = BiLSTM(50, 3, embedding=8, hidden=8).eval()
    found = text_logits(network, np.array([], dtype=np.int64), np.zeros(4, dtype=np.int64))
    assert found.shape == (3, 3)
    assert (found == found[0]).all()


def test_padding_by_hand():
    ids = torch.tensor([5, 6, 7, 8])
    found = padded(ids, torch.tensor([0, 3, 4]), torch.tensor([2, 1, 0]), 3)
    assert found.tolist() == [[5, 6, 0], [8, 0, 0], [0, 0, 0]]
    assert padded(ids[:0], torch.tensor([0]), torch.tensor([0]), 2).tolist() == [[0, 0]]


def test_a_network_without_weights_is_on_the_cpu():
    assert device_of(torch.nn.ReLU()).type == "cpu"
