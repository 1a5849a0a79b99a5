"""The bidirectional LSTM: parity with a loop over texts, size, over-fitting, bad input."""

import torch
from tests.sentences import refuses
from tests.unit.models import text_network_checks as checks
from torch import nn

from calibrant.errors import InputError
from calibrant.models import BiLSTM


def small(**options):
    torch.manual_seed(0)
    return BiLSTM(40, 3, **{"embedding": 12, "hidden": 10, **options})


def test_number_of_weights_by_hand():
    e, h, d, v, k = 12, 10, 6, 40, 3
    first = 4 * h * e + 4 * h * h + 2 * 4 * h  # weights of input and state, two biases per gate
    second = 4 * h * 2 * h + 4 * h * h + 2 * 4 * h
    dense = (2 * h * d + d) + (d * k + k)
    n = sum(weights.numel() for weights in small(dense=6).parameters())
    assert n == v * e + 2 * first + 2 * second + dense


def test_defaults_are_those_of_the_paper():
    model = BiLSTM(10, 2)
    assert (model.embedding.embedding_dim, model.lstm.hidden_size) == (1024, 128)
    assert (model.lstm.num_layers, model.lstm.bidirectional) == (2, True)
    assert model.embedding_dropout.p == 0.1
    assert [part.p for part in model.dense if isinstance(part, nn.Dropout)] == [0.2, 0.2]
    assert sum(isinstance(part, nn.Linear) for part in model.dense) == 2


def test_packing_gives_what_reading_one_text_at_a_time_gives():
    model = small().double().eval()
    tokens, lengths = checks.drawn_texts(8)
    found = model(tokens, lengths)
    for row in range(8):
        vectors = model.embedding(tokens[row, : max(lengths[row], 1)])
        outputs, _ = model.lstm(vectors)
        # The top layer's forward direction ends at the last token, its backward at the first.
        states = torch.cat((outputs[-1, :10], outputs[0, 10:]))
        torch.testing.assert_close(found[row], model.dense(states), rtol=0, atol=1e-12)


def test_padding_and_companions_do_not_matter():
    checks.check_padding_and_companions_do_not_matter(small())


def test_every_token_counts():
    checks.check_every_token_counts(small())


def test_an_empty_text_reads_as_padding():
    checks.check_an_empty_text_reads_as_padding(small())


def test_it_over_fits_64_rows():
    model = small(embedding=32, hidden=32, embedding_dropout=0.0, dense_dropout=0.0)
    checks.check_it_over_fits_64_rows(model, steps=40)


def test_dropout_is_off_in_evaluation():
    tokens, lengths = checks.drawn_texts(4)
    model = small(embedding_dropout=0.5)
    assert not torch.equal(model(tokens, lengths), model(tokens, lengths))
    model.eval()
    assert torch.equal(model(tokens, lengths), model(tokens, lengths))


def test_bad_texts_are_named():
    checks.check_bad_texts_are_named(small())


def test_bad_sizes_are_named():
    for options, sentence in [
        ({"hidden": 0}, ("hidden", "got 0")),
        ({"layers": 1.5}, ("layers", "got 1.5")),
        ({"dense": 0}, ("dense", "got 0")),
        ({"dense_dropout": -0.1}, ("dense_dropout", "got -0.1")),
    ]:
        with refuses(InputError, *sentence):
            small(**options)
