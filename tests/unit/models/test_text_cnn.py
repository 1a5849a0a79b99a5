"""The text CNN: parity with loops, size, over-fitting, given vectors, bad input."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from tests.sentences import refuses
from tests.unit.models import text_network_checks as checks
from torch import nn

from calibrant.errors import InputError
from calibrant.models import TextCNN


def small(**options):
    torch.manual_seed(0)
    return TextCNN(40, 3, **{"embedding": 12, "filters": 10, **options})


def test_number_of_weights_by_hand():
    e, f, w, v, k = 12, 10, 5, 40, 3
    expected = v * e + (e * f * w + f) + 2 * (f * f * w + f) + (f * f + f) + (f * k + k)
    assert sum(weights.numel() for weights in small().parameters()) == expected


def test_defaults_are_those_of_the_paper():
    model = TextCNN(10, 20)
    assert (model.embedding.embedding_dim, model.width, model.sees) == (100, 5, 21)
    shapes = [tuple(conv.weight.shape) for conv in (model.first, model.second, model.third)]
    assert shapes == [(128, 100, 5), (128, 128, 5), (128, 128, 5)]
    assert [part.p for part in model.dense if isinstance(part, nn.Dropout)] == [0.3]


def sliding(values, width, work):
    """Apply `work` to every run of `width` columns of a (channels, places) array."""
    places = range(values.shape[1] - width + 1)
    return torch.stack([work(values[:, place : place + width]) for place in places], dim=1)


def convolved(values, layer):
    def at_one_place(window):
        return (layer.weight * window).sum(dim=(1, 2)) + layer.bias

    return sliding(values, layer.weight.shape[2], at_one_place).clamp(min=0)


@pytest.mark.parametrize("length", [21, 30])
def test_logits_equal_the_layers_written_as_loops(length):
    model = small().double().eval()
    tokens = torch.randint(1, 40, (1, length), generator=torch.Generator().manual_seed(0))
    x = model.embedding(tokens)[0].T
    for layer in (model.first, model.second):
        x = sliding(convolved(x, layer), 5, lambda window: window.amax(dim=1))
    x = convolved(x, model.third).amax(dim=1)
    expected = model.dense[3](model.dense[0](x).clamp(min=0))
    found = model(tokens, torch.tensor([length]))[0]
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)


def test_a_short_text_is_filled_up_with_padding():
    model = small().eval()
    tokens, lengths = torch.tensor([[5, 6, 7]]), torch.tensor([3])
    filled = F.pad(tokens, (0, 18))
    expected = model(filled, torch.tensor([21]))
    assert torch.equal(model(tokens, lengths), expected)


def test_padding_and_companions_do_not_matter():
    checks.check_padding_and_companions_do_not_matter(small())


def test_without_the_mask_padding_would_matter():
    model = small().double().eval()
    tokens, lengths = checks.drawn_texts(12)
    unmasked = model(tokens, torch.full_like(lengths, 60))
    assert not torch.allclose(unmasked, model(tokens, lengths))


def test_every_token_counts():
    checks.check_every_token_counts(small(filters=32))


def test_an_empty_text_reads_as_padding():
    checks.check_an_empty_text_reads_as_padding(small())


def test_it_over_fits_64_rows():
    model = small(embedding=32, filters=32, dropout=0.0)
    checks.check_it_over_fits_64_rows(model, steps=60, lr=5e-3)


def test_given_vectors_are_taken_over_and_stay():
    vectors = np.random.default_rng(0).normal(size=(40, 12))
    model = small(vectors=vectors)
    np.testing.assert_array_equal(model.embedding.weight, vectors.astype(np.float32))
    tokens, lengths = checks.drawn_texts(4)
    model(tokens, lengths).sum().backward()
    assert model.embedding.weight.grad is None
    assert model.first.weight.grad is not None
    assert model.config["frozen"]
    assert small(vectors=vectors, frozen=False).embedding.weight.requires_grad


def test_bad_texts_are_named():
    checks.check_bad_texts_are_named(small())


def test_bad_sizes_and_vectors_are_named():
    for options, sentence in [
        ({"filters": 0}, ("filters", "got 0")),
        ({"dropout": 1}, ("dropout", "got 1")),
        ({"vectors": np.zeros((40, 11))}, ("vectors must have shape", "got (40, 11)")),
        ({"vectors": np.full((40, 12), np.nan)}, ("vectors must be finite",)),
    ]:
        with refuses(InputError, *sentence):
            small(**options)
