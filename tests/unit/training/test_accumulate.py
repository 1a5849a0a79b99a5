"""A batch in parts takes the same steps as a whole one."""

import pytest
import torch
from tests.sentences import refuses
from tests.unit.training.runs import blobs, net, options
from torch import nn

from calibrant.errors import InputError
from calibrant.losses import FocalLoss, FunctionLoss
from calibrant.training import Hook, TextRows, train


class Watch(Hook):
    def __init__(self):
        self.logits, self.labels, self.parts = [], [], []

    def on_train_start(self, run):
        run.model.register_forward_hook(lambda _, inputs, __: self.parts.append(len(inputs[0])))

    def on_batch_end(self, run, logits, labels):
        self.logits.append(logits)
        self.labels.append(labels)


def line(seed=0):
    torch.manual_seed(seed)
    return nn.Linear(3, 3).double()


def trained(accumulate, loss="ce", rows=203, **changes):
    watch = Watch()
    chosen = options(
        epochs=3, batch_size=32, optimizer="sgd", learning_rate=0.1, accumulate=accumulate,
        precision="64-true", **changes,
    )  # fmt: skip
    done = train(line(), blobs(rows), blobs(100, seed=1), loss=loss, options=chosen, hooks=[watch])
    return done, watch


@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("parts", [2, 3, 5])
def test_parts_take_the_steps_of_the_whole_batch(parts, reduction):
    rate = 0.1 if reduction == "mean" else 0.1 / 32
    whole, seen = trained(1, FocalLoss(2.0, reduction=reduction), clip=rate)
    cut, seen_cut = trained(parts, FocalLoss(2.0, reduction=reduction), clip=rate)
    torch.testing.assert_close(cut.model.weight, whole.model.weight, rtol=1e-10, atol=1e-12)
    ours, theirs = ([record.loss for record in run.records] for run in (cut, whole))
    assert ours == pytest.approx(theirs, rel=1e-6)
    assert [len(each) for each in seen_cut.logits] == [len(each) for each in seen.logits]
    for own, other in zip(seen_cut.labels, seen.labels, strict=True):
        assert torch.equal(own, other)


WEIGHT = [1.0, 4.0, 0.25]
SAME = {
    "weights": lambda: FocalLoss(1.0, weight=WEIGHT),
    "weights that balance": lambda: "ce:weight=balanced",
    "torch's weights": lambda: nn.CrossEntropyLoss(weight=torch.tensor(WEIGHT)),
    "weights that torch averages over rows": lambda: nn.MultiMarginLoss(
        weight=torch.tensor(WEIGHT)
    ),
    "rows ignored": lambda: FocalLoss(1.0, ignore_index=2),
    "torch's smoothing": lambda: nn.CrossEntropyLoss(label_smoothing=0.1),
    "a function": lambda: nn.functional.cross_entropy,
    "weights of a function": lambda: FunctionLoss(
        nn.functional.cross_entropy, weight=torch.tensor(WEIGHT)
    ),
    "the sum of a function": lambda: (
        FunctionLoss(nn.functional.cross_entropy, reduction="sum") * (1 / 32)
    ),
    "terms": lambda: "0.5*ce + 0.5*focal:gamma=2",
}


@pytest.mark.parametrize("kind", SAME)
def test_parts_count_by_what_the_loss_divides_by(kind):
    whole, _ = trained(1, SAME[kind]())
    cut, _ = trained(4, SAME[kind]())
    torch.testing.assert_close(cut.model.weight, whole.model.weight, rtol=1e-6, atol=1e-8)
    ours, theirs = ([record.loss for record in run.records] for run in (cut, whole))
    assert ours == pytest.approx(theirs, rel=1e-5)


@pytest.mark.parametrize(
    ("loss", "why"),
    [
        ("ce + 0.01*focal:reduction=sum", ("all means", "all sums", "batch", "split")),
        ("ce + focal:weight=[1,2,3]", ("weight classes", "ignore rows alike", "batch")),
    ],
)
def test_terms_that_divide_by_different_things_are_refused_in_parts(loss, why):
    trained(1, loss)
    with refuses(InputError, *why):
        trained(2, loss)


def test_no_part_is_larger_than_its_share_and_none_has_a_single_row():
    chosen = options(epochs=1, batch_size=32, accumulate=4, precision="bf16-mixed")
    train(net(), blobs(32 * 3 + 5), blobs(100, seed=1), options=chosen, hooks=[watch := Watch()])
    steps = watch.parts[:-1] if watch.parts[-1] > 8 else watch.parts
    assert max(steps) == 8
    assert min(steps) >= 2
    assert sum(steps) == 101


def test_texts_are_cut_with_their_lengths():
    from calibrant.models import BiLSTM

    draw = torch.Generator().manual_seed(0)
    lengths = torch.randint(1, 9, (80,), generator=draw)
    offsets = torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)])
    tokens = torch.randint(1, 30, (int(lengths.sum()),), generator=draw)
    rows = TextRows(tokens, offsets, torch.arange(80) % 3)
    found = []
    for accumulate in (1, 3):
        torch.manual_seed(0)
        model = BiLSTM(30, 3, embedding=8, hidden=4, embedding_dropout=0.0, dense_dropout=0.0)
        chosen = options(epochs=2, batch_size=20, optimizer="sgd", accumulate=accumulate)
        found.append(train(model, rows, rows, options=chosen).model.state_dict())
    for name, value in found[0].items():
        torch.testing.assert_close(found[1][name], value, rtol=1e-4, atol=1e-6)


def test_more_parts_than_rows_are_refused():
    with refuses(InputError, "batch_size", "at least 8", "accumulate=4 with ba"):
        train(net(), blobs(99), blobs(99), options=options(batch_size=7, accumulate=4))
    rows, seen = blobs(60), Watch()
    chosen = options(batch_size=4, accumulate=4, precision="bf16-mixed")
    train(line().float(), rows, rows, options=chosen, hooks=[seen])
    assert min(seen.parts) == 1  # nothing here needs two rows
    with refuses(InputError, "accumulate", "whole number", "at least 1", "got 0"):
        options(accumulate=0)
