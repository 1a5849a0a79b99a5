"""What holds for every network that reads texts; the tests of each call these."""

import pytest
import torch
import torch.nn.functional as F  # noqa: N812

from calibrant.errors import InputError


def drawn_texts(n, n_tokens=40, longest=60, seed=0):
    """Token ids with 0 beyond the end of each text, and lengths; the first text is empty."""
    draw = torch.Generator().manual_seed(seed)
    lengths = torch.randint(0, longest + 1, (n,), generator=draw)
    lengths[0], lengths[-1] = 0, longest
    tokens = torch.randint(1, n_tokens, (n, longest), generator=draw)
    return tokens * (torch.arange(longest) < lengths.unsqueeze(1)), lengths


def check_padding_and_companions_do_not_matter(model):
    """A text alone, cut to its length, has the logits that it has in any batch."""
    model = model.double().eval()
    tokens, lengths = drawn_texts(12)
    together = model(tokens, lengths)
    further = model(F.pad(tokens, (0, 30)), lengths)
    torch.testing.assert_close(further, together, rtol=0, atol=1e-12)
    filled = tokens + 7 * (torch.arange(60) >= lengths.unsqueeze(1))
    torch.testing.assert_close(model(filled, lengths), together, rtol=0, atol=1e-12)
    for row, length in enumerate(lengths.tolist()):
        alone = model(tokens[row : row + 1, : max(length, 1)], lengths[row : row + 1])
        torch.testing.assert_close(alone[0], together[row], rtol=0, atol=1e-12)


def check_every_token_counts(model):
    """Changing any one token of a text changes its logits."""
    model = model.double().eval()
    tokens, lengths = drawn_texts(1, longest=9)
    lengths[0] = 9
    tokens[0] = torch.arange(1, 10)
    before = model(tokens, lengths)
    for place in range(9):
        other = tokens.clone()
        other[0, place] = 30
        assert not torch.equal(model(other, lengths), before)


def check_an_empty_text_reads_as_padding(model):
    """An empty text has the finite logits of one padding token, in training as well."""
    model.eval()
    nothing = model(torch.zeros(1, 1, dtype=torch.int64), torch.tensor([0]))
    padding = model(torch.zeros(1, 1, dtype=torch.int64), torch.tensor([1]))
    assert nothing.isfinite().all()
    assert torch.equal(nothing, padding)
    model.train()(torch.zeros(2, 1, dtype=torch.int64), torch.tensor([0, 0])).sum().backward()
    assert all(w.grad.isfinite().all() for w in model.parameters() if w.grad is not None)


def check_it_over_fits_64_rows(model, *, steps, lr=1e-2):
    """Accuracy 1 on 64 texts with random labels."""
    tokens, lengths = drawn_texts(64, longest=24, seed=1)
    labels = torch.randint(0, 3, (64,), generator=torch.Generator().manual_seed(2))
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    model.train()
    for _ in range(steps):
        optimizer.zero_grad()
        F.cross_entropy(model(tokens, lengths), labels).backward()
        optimizer.step()
    told_apart = lengths > 0  # empty texts look alike, whatever their labels
    right = model.eval()(tokens, lengths).argmax(1) == labels
    assert told_apart.sum() >= 60
    assert right[told_apart].all()


def check_bad_texts_are_named(model):
    """Each wrong input has its own sentence."""
    tokens, lengths = torch.ones(2, 3, dtype=torch.int64), torch.tensor([3, 1])
    for bad, sentence in [
        ((tokens.float(), lengths), r"tokens must be whole numbers, got torch\.float32"),
        ((tokens, lengths.float()), r"lengths must be whole numbers, got torch\.float32"),
        ((tokens[0], lengths), r"tokens must have one row per text .* got shape \(3,\)"),
        ((tokens[:, :0], lengths), r"at least one column .* got shape \(2, 0\)"),
        ((tokens, lengths[:1]), r"lengths must hold .* \(2,\) here, got shape \(1,\)"),
        ((tokens, lengths + 1), r"lengths must lie in 0\.\.3, .* got 2 to 4"),
        ((tokens, lengths - 2), r"lengths must lie in 0\.\.3, .* got -1 to 1"),
        ((tokens + 39, lengths), r"tokens must lie in 0\.\.39 for this network, got \d+ to 40"),
    ]:
        with pytest.raises(InputError, match=sentence):
            model(*bad)
