"""Encoded rows through a network: as the training loop scores them, in the order they came in."""

import numpy as np
import pytest
import torch

from calibrant.models import MLP, BiLSTM, TextCNN
from calibrant.models.scoring import AT_A_TIME, array_logits, device_of, text_logits
from calibrant.models.text_batch import padded
from calibrant.training import ArrayRows, predict_logits
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
