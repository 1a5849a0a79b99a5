"""Runs that average their weights: what is averaged, what is kept, what stays the same."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.sentences import refuses
from tests.unit.training.runs import blobs, net, options, same_weights
from torch import nn

from calibrant import TabularClassifier
from calibrant.errors import InputError
from calibrant.fitting.steer_figures import compare_steer, steer_figures
from calibrant.losses import AdaFocalLoss
from calibrant.metrics import compare, f1_macro, nll
from calibrant.testing import WORLDS
from calibrant.training import Hook, predict_logits, train
from calibrant.training.weight_average import decay_between

ROWS, STEER = blobs(320), blobs(100, seed=1)


class Walk(Hook):
    """Keeps the weights after every step."""

    def __init__(self):
        self.weights = []

    def on_batch_end(self, run, logits, labels):
        self.weights.append({k: v.double() for k, v in copy_of(run.model.module).items()})


def copy_of(model):
    return {name: v.detach().clone() for name, v in model.named_parameters()}


def records_of(trained):
    return [replace(record, seconds=0.0) for record in trained.records]


@pytest.mark.parametrize("decay", [0.9, 0.5])
def test_the_average_of_a_run_is_that_of_its_steps(decay):
    walk = Walk()
    trained = train(
        net(), ROWS, STEER, hooks=[walk], options=options(average=decay, choose_by="last")
    )
    slow = walk.weights[0]
    for step in range(2, 51):
        keep = decay_between(step - 1, step, decay)
        now = walk.weights[step - 1]
        slow = {name: keep * value + (1 - keep) * now[name] for name, value in slow.items()}
    for name, value in trained.model.named_parameters():
        torch.testing.assert_close(value.double(), slow[name], rtol=1e-5, atol=1e-6)
    assert trained.average.taken
    assert trained.average.decay == decay


def test_its_batch_norm_has_statistics_of_its_own():
    trained = train(net(dropout=0.0), ROWS, STEER, options=options(average=0.9, choose_by="last"))
    model = copy.deepcopy(trained.model)
    before = model[0](ROWS.features).detach()
    np.testing.assert_allclose(model[1].running_mean, before.mean(0), rtol=1e-4, atol=1e-4)
    # Variances within batches of 32, their mean against that of all rows.
    np.testing.assert_allclose(model[1].running_var, before.var(0), rtol=0.02)


@pytest.mark.parametrize("average", ["auto", 0.9])
def test_averaging_changes_neither_the_epochs_nor_the_random_numbers(average):
    def run(**changes):
        return train(net(), ROWS, STEER, loss="adafocal", options=options(epochs=8, **changes))

    plain, averaged = run(), run(average=average)
    assert records_of(plain) == records_of(averaged)
    assert (plain.best_epoch, plain.average) == (averaged.best_epoch, None)
    assert same_weights(plain.model, averaged.model) is not averaged.average.taken


def test_what_is_kept_is_what_the_steer_rows_say():
    seen = set()
    for rate in (0.3, 0.1, 0.003):
        chosen = options(epochs=6, learning_rate=rate, min_delta=0.0, average=0.9)
        trained = train(net(), ROWS, STEER, options=chosen)
        found, best = trained.average, trained.records[trained.best_epoch]
        assert found.figure == "refinement"
        assert found.best == pytest.approx(best.refinement, abs=1e-7)
        figures = steer_figures(predict_logits(trained.model, STEER), STEER.labels.numpy())
        kept = found.averaged if found.taken else found.best
        assert figures.refinement == pytest.approx(kept, abs=1e-6)
        assert found.taken == (found.averaged < found.best)
        seen.add(found.taken)
    assert seen == {True, False}


def test_auto_takes_only_what_is_better_by_more_than_noise():
    for rate in (0.3, 0.1, 0.03):
        asked = {"epochs": 6, "learning_rate": rate, "min_delta": 0.0}
        auto = train(net(), ROWS, STEER, options=options(**asked, average="auto")).average
        assert auto.taken == (auto.best - auto.averaged > 1.645 * auto.error)
        assert auto.decay == 0.996


def test_the_last_epoch_stays_the_last_with_auto_and_a_number_averages_all_the_same():
    last = options(choose_by="last")
    plain = train(net(), ROWS, STEER, options=last)
    auto = train(net(), ROWS, STEER, options=replace(last, average="auto"))
    assert auto.average is None
    assert same_weights(plain.model, auto.model)
    number = train(net(), ROWS, STEER, options=replace(last, average=0.99))
    assert number.average.taken
    assert number.average.figure == "refinement"
    assert not same_weights(plain.model, number.model)


@pytest.mark.parametrize("choose_by", ["nll", "f1"])
def test_it_is_judged_by_what_chooses_the_epoch(choose_by):
    trained = train(net(), ROWS, STEER, options=options(average=0.5, choose_by=choose_by))
    best = trained.records[trained.best_epoch]
    assert trained.average.figure == choose_by
    assert trained.average.best == pytest.approx(getattr(best, choose_by), abs=1e-6)


class PowerCut(Hook):
    def __init__(self, step):
        self.step = step

    def on_batch_end(self, run, logits, labels):
        if run.step == self.step:
            raise RuntimeError("power cut")


@pytest.mark.parametrize("step", [3, 17, 44])
def test_a_resumed_run_ends_with_the_same_average_to_the_bit(tmp_path, step):
    chosen = options(average=0.9, choose_by="last", schedule="cosine", patience=None)
    asked = {"loss": AdaFocalLoss(n_bins=4, update_every=7), "options": chosen}
    whole = train(net(), ROWS, STEER, **asked)
    with pytest.raises(RuntimeError, match="power cut"):
        train(net(), ROWS, STEER, **asked, folder=tmp_path, hooks=[PowerCut(step)])
    resumed = train(net(), ROWS, STEER, **asked, folder=tmp_path)
    read = train(net(), ROWS, STEER, **asked, folder=tmp_path)  # a finished run
    for other in (resumed, read):
        assert same_weights(whole.model, other.model)
        assert whole.average == other.average
    with refuses(InputError, "average 0.9", "not None", "another folder"):
        again = {**asked, "options": replace(chosen, average=None)}
        train(net(), ROWS, STEER, **again, folder=tmp_path)


def test_a_run_that_stops_early_is_averaged_up_to_its_end():
    walk = Walk()
    chosen = options(epochs=300, patience=2, min_delta=0.01, average=0.5)
    trained = train(net(), ROWS, STEER, hooks=[walk], options=chosen)
    assert trained.why == "patience"
    assert len(walk.weights) == 10 * len(trained.records)
    assert trained.average is not None


def test_frozen_parts_stay_as_they_are():
    model = net()
    model[0].requires_grad_(False)
    model[1].eval()
    start = copy.deepcopy(model)
    trained = train(model, ROWS, STEER, options=options(average=0.9, choose_by="last"))
    assert same_weights(trained.model[0], start[0])
    assert torch.equal(trained.model[1].running_mean, start[1].running_mean)
    assert not torch.equal(trained.model[4].weight, start[4].weight)


@pytest.mark.parametrize(
    "changes",
    [{"accumulate": 3}, {"precision": "bf16-mixed"}, {"precision": "bf16-true"},
     {"precision": "64-true"}],
)  # fmt: skip
def test_it_works_in_parts_and_in_every_precision(changes):
    chosen = options(epochs=8, average=0.99, choose_by="last", **changes)
    trained = train(net(), ROWS, STEER, options=chosen)
    assert trained.average.averaged < 0.7 < np.log(3)
    assert all(value.isfinite().all() for value in trained.model.state_dict().values())


def test_a_model_without_batch_norm_is_averaged_too():
    trained = train(nn.Linear(3, 3), ROWS, STEER, options=options(average=0.9, choose_by="last"))
    assert trained.average.averaged < 0.8


def test_an_average_that_is_not_finite_is_not_taken(monkeypatch):
    def spoil(self):
        next(iter(self._trained.values())).data.fill_(float("nan"))

    monkeypatch.setattr("calibrant.training.weight_average.WeightAverage.copy_to_model", spoil)
    trained = train(net(), ROWS, STEER, options=options(average=0.9))
    assert not trained.average.taken
    assert np.isfinite(predict_logits(trained.model, STEER)).all()


def test_an_estimator_takes_it_and_tells_what_was_kept():
    features = np.random.default_rng(0).normal(size=(300, 3))
    labels = features[:, 0] + features[:, 1] > 0
    fitted = TabularClassifier(epochs=3, average=0.9, seed=1).fit(features, labels)
    assert fitted.options_.average == 0.9
    assert fitted.average_.taken in (True, False)
    assert fitted.average_.to_dict()["figure"] == "refinement"
    assert TabularClassifier(epochs=1, average=None).fit(features, labels).average_ is None


def test_the_error_of_a_difference_is_that_of_the_paired_comparison():
    draw = WORLDS["multiclass"].draw(1500, 0)
    first = np.log(draw.probs)
    second = 0.7 * first + np.random.default_rng(1).normal(size=first.shape) * 0.3
    classes = range(first.shape[1])
    softmax = [np.exp(z) / np.exp(z).sum(1, keepdims=True) for z in (first, second)]
    by_name = compare(draw.labels, *softmax, classes=classes)
    for figure, name, metric in (("nll", "nll", nll), ("f1", "f1_macro", f1_macro)):
        found = compare_steer(first, second, draw.labels, figure)
        assert found.first == pytest.approx(metric(draw.labels, softmax[0], classes=classes))
        assert found.second - found.first == pytest.approx(by_name[name].value)
        interval = by_name[name].interval
        assert found.error == pytest.approx((interval.high - interval.low) / 2 / 1.96, rel=0.02)
    refined = compare_steer(first, 5 * first, draw.labels, "refinement")
    assert refined.first == pytest.approx(refined.second, abs=1e-9)
    assert refined.error == pytest.approx(0, abs=1e-9)
