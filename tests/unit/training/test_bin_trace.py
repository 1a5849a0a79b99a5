"""BinTrace: numbers by hand and by plain loops, any loss, and a run that it does not change."""

import math

import numpy as np
import pytest
import torch
from tests.sentences import refuses
from tests.unit.training.runs import blobs, net, options, same_weights
from torch import nn

from calibrant.errors import InputError
from calibrant.losses import CrossEntropyLoss, LossSum
from calibrant.losses.adafocal import AdaFocalLoss
from calibrant.training import Hook, Run, train
from calibrant.training.bin_trace import BinTrace


def a_run(loss=None, epoch=0):
    return Run(nn.Identity(), CrossEntropyLoss() if loss is None else loss, None, epoch=epoch)


def two_classes(true, labels):
    """Logits of two classes that give each row's label the probability `true`."""
    true = torch.tensor(true, dtype=torch.float64)
    labels = torch.tensor(labels)
    probs = torch.stack([true, 1 - true], -1)
    return probs.gather(-1, torch.stack([labels, 1 - labels], -1)).log(), labels


def test_one_epoch_by_hand():
    trace, run = BinTrace(n_bins=3), a_run(epoch=2)
    trace.on_train_start(run)
    trace.on_epoch_start(run)
    trace.on_batch_end(run, *two_classes([0.3, 0.65], [0, 1]))
    trace.on_batch_end(run, *two_classes([0.75, 0.95], [1, 0]))
    # Steer: sure by 0.6, 0.65, 0.7, 0.75, 0.8, 0.9; the first and the fourth are wrong.
    trace.on_steer(run, *two_classes([0.4, 0.65, 0.7, 0.25, 0.8, 0.9], [0, 1, 0, 1, 0, 1]))
    trace.on_epoch_end(run, None)
    found = trace.history
    assert found.epoch.tolist() == [2]
    np.testing.assert_allclose(found.edges, [[0.7, 0.8]], rtol=1e-14)
    np.testing.assert_allclose(found.confidence, [[0.625, 0.725, 0.85]], rtol=1e-14)
    np.testing.assert_allclose(found.accuracy, [[0.5, 0.5, 1.0]])
    np.testing.assert_allclose(found.error, [[0.125, 0.225, -0.15]], rtol=1e-13)
    np.testing.assert_allclose(found.ece, [0.5 / 3], rtol=1e-13)
    assert found.train_count.tolist() == [[2, 1, 1]]
    np.testing.assert_allclose(found.train_confidence, [[0.475, 0.75, 0.95]], rtol=1e-14)
    np.testing.assert_allclose(found.train_top, [[0.675, 0.75, 0.95]], rtol=1e-14)
    np.testing.assert_allclose(found.train_accuracy, [0.75])
    np.testing.assert_allclose(found.own_confidence, [[0.475, 0.75, 0.95]], rtol=1e-14)
    assert found.own_count.tolist() == [[2, 1, 1]]


def plainly(logits, labels):
    """True-class and top-class probability and correctness of each row, one row at a time."""
    rows = []
    for row, label in zip(logits.tolist(), labels.tolist(), strict=True):
        largest = max(row)
        parts = [math.exp(value - largest) for value in row]
        probs = [part / math.fsum(parts) for part in parts]
        rows.append((probs[label], max(probs), row.index(largest) == label))
    return rows


def mean_by_bin(keys, values, starts):
    """Mean of values in bins that begin at `starts`, by comparing row with edge."""
    bins = [[] for _ in range(len(starts) + 1)]
    for key, value in zip(keys, values, strict=True):
        bins[sum(key >= start for start in starts)].append(value)
    return [math.fsum(part) / len(part) if part else math.nan for part in bins]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_the_numbers_are_those_of_plain_loops(dtype):
    draw = torch.Generator().manual_seed(1)
    steer = (3 * torch.randn(90, 4, generator=draw)).to(dtype)
    seen = [(3 * torch.randn(n, 4, generator=draw)).to(dtype) for n in (64, 64, 22)]
    labels = [torch.randint(0, 4, (len(part),), generator=draw) for part in (steer, *seen)]
    trace, run = BinTrace(n_bins=6), a_run()
    trace.on_epoch_start(run)
    for part, of_part in zip(seen, labels[1:], strict=True):
        trace.on_batch_end(run, part, of_part)
    trace.on_steer(run, steer, labels[0])
    trace.on_epoch_end(run, None)
    found = trace.history

    _, top, right = zip(*plainly(steer.double(), labels[0]), strict=True)
    true, train_top, train_right = zip(
        *plainly(torch.cat(seen).double(), torch.cat(labels[1:])), strict=True
    )
    starts, own = sorted(top)[15::15], sorted(true)[25::25]
    expected = {
        "edges": starts,
        "confidence": mean_by_bin(top, top, starts),
        "accuracy": mean_by_bin(top, right, starts),
        "train_confidence": mean_by_bin(true, true, starts),
        "train_top": mean_by_bin(true, train_top, starts),
        "own_edges": own,
        "own_confidence": mean_by_bin(true, true, own),
        "own_top": mean_by_bin(true, train_top, own),
    }
    for name, values in expected.items():
        np.testing.assert_allclose(getattr(found, name)[0], values, rtol=1e-12, err_msg=name)
    assert found.train_accuracy[0] == pytest.approx(sum(train_right) / 150)


def test_the_newest_scores_of_the_steer_split_count():
    trace, run = BinTrace(n_bins=1), a_run()
    trace.on_epoch_start(run)
    trace.on_steer(run, *two_classes([0.9, 0.9], [0, 1]))
    trace.on_steer(run, *two_classes([0.6, 0.8], [0, 1]))
    trace.on_epoch_end(run, None)
    np.testing.assert_allclose(trace.history.confidence, [[0.7]])
    assert trace.history.count.tolist() == [[2]]


@pytest.mark.parametrize(
    ("loss", "ignored"),
    [
        (CrossEntropyLoss(), -100),
        (CrossEntropyLoss(ignore_index=1), 1),
        (0.5 * CrossEntropyLoss(ignore_index=-1) + 0.5 * CrossEntropyLoss(ignore_index=-1), -1),
        (nn.CrossEntropyLoss(), -100),
    ],
)
def test_ignored_rows_do_not_count(loss, ignored):
    assert isinstance(loss, nn.Module | LossSum)
    trace, run = BinTrace(n_bins=1), a_run(loss)
    logits, labels = two_classes([0.6, 0.7, 0.8], [0, 0, 0])
    labels[1] = ignored
    trace.on_batch_end(run, logits, labels)
    trace.on_steer(run, logits, labels)
    trace.on_epoch_end(run, None)
    assert trace.history.count.tolist() == [[2]]
    assert trace.history.train_count.tolist() == [[2]]
    np.testing.assert_allclose(trace.history.train_confidence, [[0.7]])


def test_rows_of_pixels_count_one_by_one():
    logits, labels = two_classes([0.6, 0.7, 0.8, 0.9], [0, 1, 1, 0])
    trace, run = BinTrace(n_bins=2), a_run()
    trace.on_steer(run, logits.T.reshape(1, 2, 2, 2), labels.reshape(1, 2, 2))
    trace.on_epoch_end(run, None)
    np.testing.assert_allclose(trace.history.confidence, [[0.65, 0.85]])


def test_saturated_confidences_share_a_bin():
    sure = torch.tensor([[100.0, 0.0]]).expand(20, 2)
    unsure = torch.tensor([[1.0, 0.0]]).expand(4, 2)
    trace, run = BinTrace(n_bins=4), a_run()
    labels = torch.zeros(24, dtype=torch.long)
    trace.on_batch_end(run, sure, labels[:20])
    trace.on_steer(run, torch.cat([sure, unsure]), labels)
    trace.on_epoch_end(run, None)
    assert trace.history.count.tolist() == [[24, 0, 0, 0]]
    assert trace.history.train_count.tolist() == [[20, 0, 0, 0]]


def test_it_keeps_no_graph_and_only_rows():
    trace, run = BinTrace(), a_run()
    logits = torch.randn(8, 5, requires_grad=True)
    trace.on_batch_end(run, logits * 2, torch.zeros(8, dtype=torch.long))
    for kept in trace._train[0]:
        assert kept.shape == (8,)
        assert not kept.requires_grad
    trace.on_steer(run, logits, torch.zeros(8, dtype=torch.long))
    trace.on_epoch_end(run, None)
    assert not trace._train
    assert not trace._steer


def test_rows_of_an_epoch_that_was_broken_off_do_not_count():
    trace, run = BinTrace(n_bins=1), a_run()
    trace.on_batch_end(run, *two_classes([0.1, 0.1], [0, 1]))
    trace.on_train_start(run)
    trace.on_epoch_start(run)
    trace.on_batch_end(run, *two_classes([0.6, 0.8], [0, 1]))
    trace.on_steer(run, *two_classes([0.6, 0.8], [0, 1]))
    trace.on_epoch_end(run, None)
    np.testing.assert_allclose(trace.history.train_confidence, [[0.7]])


def test_an_epoch_without_train_rows_has_no_train_figures():
    trace, run = BinTrace(n_bins=2), a_run()
    trace.on_steer(run, *two_classes([0.6, 0.8], [0, 1]))
    trace.on_epoch_end(run, None)
    assert np.isnan(trace.history.train_confidence).all()
    assert np.isnan(trace.history.train_accuracy).all()


def test_shares_of_classes_and_logits_that_are_not_finite_are_refused():
    trace, run = BinTrace(), a_run()
    with refuses(InputError, "BinTrace needs", "class per row"):
        trace.on_batch_end(run, torch.zeros(2, 3), torch.full((2, 3), 1 / 3))
    trace.on_steer(run, torch.tensor([[0.0, math.nan]]), torch.tensor([0]))
    with refuses(InputError, "confidence", "diverged"):
        trace.on_epoch_end(run, None)
    with refuses(InputError, "n_bins", "whole number"):
        BinTrace(n_bins=0)


@pytest.mark.parametrize("loss", ["ce", "focal:gamma=3", nn.functional.cross_entropy])
def test_any_loss_can_be_watched_and_nothing_changes(loss):
    rows, steer = blobs(150), blobs(120, seed=1)
    trace = BinTrace(n_bins=4)
    watched = train(net(), rows, steer, loss=loss, options=options(), hooks=[trace])
    alone = train(net(), rows, steer, loss=loss, options=options())
    assert same_weights(watched.model, alone.model)
    history = trace.history
    assert history.epoch.tolist() == [record.epoch for record in watched.records]
    assert (history.count.sum(1) == 120).all()
    assert (history.train_count.sum(1) == 150).all()
    accuracy = (history.count * history.accuracy).sum(1) / 120
    np.testing.assert_allclose(accuracy, [record.accuracy for record in watched.records])


def test_with_15_bins_the_error_is_that_of_the_records():
    trace = BinTrace()
    trained = train(net(), blobs(150), blobs(200, seed=1), options=options(), hooks=[trace])
    found = [record.ece for record in trained.records]
    np.testing.assert_allclose(trace.history.ece, found, atol=1e-6)


def test_bins_are_those_by_which_adafocal_steers():
    loss, trace = AdaFocalLoss(n_bins=5), BinTrace(n_bins=5)
    asked = {"loss": loss, "options": options(), "hooks": [trace]}
    loss = train(net(), blobs(150), blobs(200, seed=1), **asked).loss
    np.testing.assert_array_equal(trace.history.count, loss.history.count)
    np.testing.assert_allclose(trace.history.error, loss.history.error, atol=1e-6)
    np.testing.assert_allclose(trace.history.edges, loss.history.edges, atol=1e-6)


class Stop(Hook):
    """Ends a run after its second epoch, as a power cut would."""

    def on_epoch_end(self, run, record):
        if run.epoch == 1:
            raise RuntimeError("power cut")


def test_a_resumed_run_goes_on_with_its_epochs(tmp_path):
    rows, steer = blobs(100), blobs(100, seed=1)
    first, fresh, late, whole = BinTrace(), BinTrace(), BinTrace(), BinTrace()
    with pytest.raises(RuntimeError, match="power cut"):
        train(net(), rows, steer, options=options(), hooks=[first, Stop()], folder=tmp_path)
    assert first.history.epoch.tolist() == [0, 1]
    train(net(), rows, steer, options=options(), hooks=[fresh, late], folder=tmp_path)
    train(net(), rows, steer, options=options(), hooks=[whole])
    for name in ("epoch", "train_confidence", "confidence", "own_edges"):
        np.testing.assert_array_equal(getattr(fresh.history, name), getattr(whole.history, name))
    assert late.history.epoch.tolist() == [1, 2, 3, 4]  # the run had one such hook when it was cut


def test_a_second_run_begins_anew():
    trace = BinTrace()
    for _ in range(2):
        train(net(), blobs(60), blobs(60, seed=1), options=options(epochs=2), hooks=[trace])
    assert trace.history.epoch.tolist() == [0, 1]
