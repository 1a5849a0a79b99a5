"""The loop learns, stops, keeps the best epoch, and says what went wrong."""

import copy
import math

import numpy as np
import pytest
import torch
from tests.sentences import refuses
from tests.unit.training.runs import blobs, net, options, same_weights
from torch import nn

from calibrant.errors import InputError, TrainingError
from calibrant.fitting.steer_figures import steer_figures
from calibrant.losses import FocalLoss, Loss
from calibrant.training import ArrayRows, Hook, predict_logits, train


def test_training_learns_what_can_be_learned():
    trained = train(net(), blobs(600), blobs(200, seed=1), options=options(epochs=15))
    best = trained.records[trained.best_epoch]
    assert best.accuracy > 0.8
    assert best.nll < 0.6 < math.log(3)
    assert trained.records[-1].loss < trained.records[0].loss


def test_plain_sgd_on_a_linear_model_matches_a_loop_written_out():
    rows = blobs(64)
    chosen = options(epochs=3, batch_size=64, optimizer="sgd", momentum=0.0, learning_rate=0.5)
    start = nn.Linear(3, 3)
    ours = nn.Linear(3, 3)
    ours.load_state_dict(start.state_dict())
    train(ours, rows, rows, options=chosen, hooks=(last := _LastWeights(),))
    step = torch.optim.SGD(start.parameters(), lr=0.5)
    for _ in range(3):  # one batch holds all rows, so their order does not matter
        step.zero_grad()
        nn.functional.cross_entropy(start(rows.features), rows.labels).backward()
        step.step()
    torch.testing.assert_close(last.weights["weight"], start.weight.detach(), atol=1e-6, rtol=1e-6)


class _LastWeights(Hook):
    def on_epoch_end(self, run, record):
        self.weights = {k: v.clone() for k, v in run.model.state_dict().items()}


def test_the_same_seed_gives_the_same_weights_and_another_seed_others():
    runs = [
        train(net(), blobs(200), blobs(100, seed=1), options=options(seed=seed)).model
        for seed in (3, 3, 4)
    ]
    assert same_weights(runs[0], runs[1])
    assert not same_weights(runs[0], runs[2])


def test_the_callers_random_numbers_are_left_as_they_were():
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    model, rows = nn.Linear(3, 3), blobs(50)
    torch.manual_seed(7)
    train(model, rows, rows, options=options(epochs=1))
    assert torch.equal(torch.rand(3), expected)


@pytest.mark.parametrize("choose_by", ["refinement", "nll", "f1", "last"])
def test_the_weights_of_the_best_epoch_come_back(choose_by):
    steer = blobs(100, seed=1)
    keeper = _Keeper()
    trained = train(
        net(), blobs(100), steer, hooks=[keeper],
        options=options(epochs=12, learning_rate=0.3, choose_by=choose_by, min_delta=0.0),
    )  # fmt: skip
    sign = -1 if choose_by in ("f1", "last") else 1
    figure = "epoch" if choose_by == "last" else choose_by
    values = [sign * getattr(record, figure) for record in trained.records]
    assert trained.best_epoch == int(np.argmin(values))
    assert same_weights(trained.model, keeper.seen[trained.best_epoch])
    figures = steer_figures(predict_logits(trained.model, steer), steer.labels.numpy())
    best = trained.records[trained.best_epoch]
    assert figures.nll == pytest.approx(best.nll, rel=1e-6)
    assert not trained.model.training


class _Keeper(Hook):
    def __init__(self):
        self.seen = []

    def on_epoch_end(self, run, record):
        copy = net()
        copy.load_state_dict(run.model.state_dict())
        self.seen.append(copy)


def test_patience_ends_a_run_that_no_longer_improves():
    trained = train(
        net(), blobs(60), blobs(60, seed=1), options=options(epochs=300, patience=3, min_delta=0.01)
    )
    assert trained.why == "patience"
    assert len(trained.records) == trained.best_epoch + 4
    whole = train(net(), blobs(60), blobs(60, seed=1), options=options(epochs=4, patience=None))
    assert whole.why == "epochs"
    assert len(whole.records) == 4


def test_a_steered_loss_hears_of_every_epoch_or_of_every_nth_step_in_eval_mode():
    asked = (net(dropout=0.9), blobs(320), blobs(50, seed=1))
    loss = train(*asked, loss=_Heard(), options=options(epochs=2)).loss
    assert loss.updates == [(50, False), (50, False)]
    assert loss.epochs == [0, 1]
    often, watch = _Heard(), _Modes()
    often.update_every = 4  # 20 steps; the ends of epochs are no updates of their own
    trained = train(*asked, loss=often, hooks=[watch], options=options(epochs=2))
    assert trained.loss.updates == [(50, False)] * 5
    assert watch.modes == {True}
    assert watch.scored_in_eval_mode == {True}
    assert not often.updates  # the loss that was handed in is left alone


class _Heard(Loss):
    steered = True

    def __init__(self):
        super().__init__()
        self.updates, self.epochs = [], []

    def forward(self, logits, labels):
        return nn.functional.cross_entropy(logits, labels)

    def set_epoch(self, epoch):
        self.epochs.append(epoch)

    def update(self, logits, labels):
        self.updates.append((len(labels), logits.requires_grad))


class _Modes(Hook):
    def __init__(self):
        self.modes, self.scored_in_eval_mode = set(), set()

    def on_steer(self, run, logits, labels):
        expected = predict_logits(copy.deepcopy(run.model.module), blobs(50, seed=1))
        self.scored_in_eval_mode.add(np.allclose(logits.numpy(), expected, atol=1e-6))

    def on_batch_end(self, run, logits, labels):
        self.modes.add(run.model.training)


def test_hooks_are_called_in_order_with_what_they_need():
    calls = []

    class Note(Hook):
        def on_train_start(self, run):
            calls.append("start")

        def on_epoch_start(self, run):
            calls.append(f"epoch {run.epoch}")

        def on_batch_end(self, run, logits, labels):
            assert logits.shape == (len(labels), 3)
            assert not logits.requires_grad
            calls.append("batch")

        def on_steer(self, run, logits, labels):
            calls.append(f"steer {len(labels)}")

        def on_epoch_end(self, run, record):
            assert run.records[-1] is record
            calls.append("end")

        def on_train_end(self, run):
            calls.append("done")

        def close(self):
            calls.append("closed")

    train(net(), blobs(64), blobs(9, seed=1), hooks=[Note()], options=options(epochs=2))
    epoch = ["batch", "batch", "steer 9", "end"]
    assert calls == ["start", "epoch 0", *epoch, "epoch 1", *epoch, "done", "closed"]


def test_gradients_are_clipped():
    rows = blobs(64)
    far = ArrayRows(1e4 * nn.functional.one_hot(rows.labels).float(), rows.labels.roll(1))
    model = nn.Linear(3, 3)
    start = torch.cat([part.detach().flatten() for part in model.parameters()])
    chosen = options(
        epochs=1, batch_size=64, optimizer="sgd", momentum=0.0, learning_rate=1.0, clip=0.01
    )
    train(model, far, rows, options=chosen)
    end = torch.cat([part.detach().flatten() for part in model.parameters()])
    assert float((end - start).norm()) == pytest.approx(0.01, rel=1e-3)


def test_mixed_and_double_precision_learn_too():
    for precision in ("bf16-mixed", "64-true"):
        trained = train(
            net(), blobs(300), blobs(100, seed=1), options=options(epochs=8, precision=precision)
        )
        assert trained.records[trained.best_epoch].accuracy > 0.75


def test_a_loss_by_name_gets_the_counts_of_the_train_split():
    rows = blobs(300)
    trained = train(net(), rows, blobs(90, seed=1), loss="ce:weight=balanced", options=options())
    counts = torch.bincount(rows.labels).double()
    torch.testing.assert_close(trained.loss.weight.double(), 300 / (3 * counts), rtol=1e-6, atol=0)


def test_a_users_function_and_a_module_train_like_a_name():
    chosen = options(epochs=2)
    runs = [
        train(net(), blobs(100), blobs(60, seed=1), loss=loss, options=chosen).model
        for loss in ("focal:gamma=2", FocalLoss(2), lambda z, y: FocalLoss(2)(z, y))
    ]
    assert same_weights(runs[0], runs[1])
    assert same_weights(runs[0], runs[2])


def test_a_diverging_run_says_so_and_keeps_what_was_saved(tmp_path):
    class Burst(Hook):
        def on_epoch_start(self, run):
            if run.epoch == 2:
                with torch.no_grad():
                    next(run.model.parameters()).fill_(float("inf"))

    with refuses(TrainingError, "diverged", "epoch 2", "learning_rate"):
        train(
            net(), blobs(60), blobs(60, seed=1), loss=nn.CrossEntropyLoss(), hooks=[Burst()],
            folder=tmp_path, options=options(),
        )  # fmt: skip
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names[-2:] == ["epoch-0000.safetensors", "epoch-0001.safetensors"]
    again = train(
        net(), blobs(60), blobs(60, seed=1), loss=nn.CrossEntropyLoss(), folder=tmp_path,
        options=options(),
    )  # fmt: skip
    assert len(again.records) == 5


def test_logits_that_are_not_finite_are_named_by_our_own_losses():
    class Broken(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(3))

        def forward(self, x):
            return x * self.weight * (float("nan") if self.training else 1.0)

    with refuses(InputError, "logits must be finite", "diverged"):
        train(Broken(), blobs(60), blobs(60, seed=1), loss="focal", options=options())


def test_an_interrupted_run_says_how_to_go_on_and_closes_its_hooks(tmp_path):
    closed = []

    class Stop(Hook):
        def on_batch_end(self, run, logits, labels):
            if run.epoch == 1:
                raise KeyboardInterrupt

        def close(self):
            closed.append(True)

    with refuses(KeyboardInterrupt, "interrupted", "epoch 1", "call again", "folder"):
        train(
            net(), blobs(60), blobs(60, seed=1), hooks=[Stop()], folder=tmp_path, options=options()
        )
    assert closed == [True]
    with refuses(KeyboardInterrupt, "epoch 1", "no checkpoint", "no folder"):
        train(net(), blobs(60), blobs(60, seed=1), hooks=[Stop()], options=options())


def test_running_out_of_memory_names_the_batch_size_to_try():
    class Huge(nn.Module):
        def __init__(self):
            super().__init__()
            self.line = nn.Linear(3, 3)

        def forward(self, x):
            if self.training:
                torch.empty(2**55)
            return self.line(x)

    with refuses(TrainingError, "ran", "memory", "batches of 32", "batch_size=16"):
        train(Huge(), blobs(60), blobs(60, seed=1), options=options())


def test_other_errors_of_a_model_are_passed_on():
    class Wrong(nn.Linear):
        def forward(self, x):
            if self.training:
                raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")
            return super().forward(x)

    with pytest.raises(RuntimeError, match="mat1 and mat2"):
        train(Wrong(3, 3), blobs(60), blobs(60, seed=1), options=options())


def test_an_epoch_is_judged_by_probabilities_for_the_frequencies_of_the_data():
    steer = blobs(400, seed=1, k=2)
    rare = torch.cat([torch.where(steer.labels == 0)[0], torch.where(steer.labels == 1)[0][:20]])
    steer = ArrayRows(steer.features[rare], steer.labels[rare])
    found = {
        loss: train(net(2), steer, steer, loss=loss, options=options(epochs=30, patience=None))
        for loss in ("ce", "balanced_softmax", "ce:weight=balanced")
    }
    plain = found["ce"].records[-1].nll
    for trained in found.values():
        last = trained.records[-1]
        assert last.nll == pytest.approx(plain, abs=0.05)
        assert last.refinement < 0.35  # the log loss of the frequencies alone is 0.30
    shifted = found["balanced_softmax"]
    raw = predict_logits(shifted.model, steer)
    best = shifted.records[shifted.best_epoch]
    truth = steer_figures(raw - shifted.loss.log_shift().numpy(), steer.labels.numpy())
    assert best.nll == pytest.approx(truth.nll, rel=1e-5)
    assert steer_figures(raw, steer.labels.numpy()).nll > best.nll + 0.05


def test_parts_that_come_in_eval_mode_stay_in_it():
    model = net()
    model[1].eval()
    before = model[1].running_mean.clone()
    watch = _Frozen()
    train(model, blobs(100), blobs(50, seed=1), hooks=[watch], options=options(epochs=2))
    assert torch.equal(model[1].running_mean, before)
    assert watch.modes == {(True, False)}
    whole = net().eval()  # a model that was used for scoring before is trained as a whole
    before = whole[1].running_mean.clone()
    train(whole, blobs(100), blobs(50, seed=1), options=options(epochs=2))
    assert not torch.equal(whole[1].running_mean, before)


class _Frozen(Hook):
    def __init__(self):
        self.modes = set()

    def on_batch_end(self, run, logits, labels):
        layers = run.model.module
        self.modes.add((layers[3].training, layers[1].training))


def test_a_hook_can_end_the_run():
    class Enough(Hook):
        def on_epoch_end(self, run, record):
            run.stop = record.epoch == 2

    asked = {"hooks": [Enough()], "options": options(epochs=9)}
    trained = train(net(), blobs(60), blobs(60, seed=1), **asked)
    assert len(trained.records) == 3
    assert trained.why == "hook"


def test_all_hooks_are_closed_though_one_fails_to_and_the_first_error_is_not_lost():
    closed = []

    class Bad(Hook):
        def on_epoch_end(self, run, record):
            raise ValueError("the first error")

        def close(self):
            closed.append("bad")
            raise OSError("the second")

    class Good(Hook):
        def close(self):
            closed.append("good")

    with pytest.raises(OSError, match="the second") as caught:
        train(net(), blobs(60), blobs(60, seed=1), hooks=[Good(), Bad()], options=options())
    assert closed == ["bad", "good"]
    assert "the first error" in str(caught.value.__context__)


def test_dropout_differs_from_epoch_to_epoch():
    class Draws(Hook):
        def __init__(self):
            self.seen = []

        def on_batch_end(self, run, logits, labels):
            if run.step % 2 == 1:  # the first of two batches
                self.seen.append(tuple(torch.rand(4).tolist()))

    draws = Draws()
    train(net(), blobs(64), blobs(60, seed=1), hooks=[draws], options=options(epochs=3))
    assert len(set(draws.seen)) == len(draws.seen) == 3


def test_a_model_keeps_state_that_is_no_tensor(tmp_path):
    class Counting(nn.Linear):
        calls = 0

        def get_extra_state(self):
            return {"calls": self.calls}

        def set_extra_state(self, state):
            self.calls = state["calls"]

        def forward(self, x):
            self.calls += 1
            return super().forward(x)

    asked = {"options": options(patience=None), "folder": tmp_path}
    start = Counting(3, 3)
    trained = train(copy.deepcopy(start), blobs(60), blobs(60, seed=1), **asked)
    assert trained.model.calls >= 3
    again = train(copy.deepcopy(start), blobs(60), blobs(60, seed=1), **asked)
    assert again.model.calls == trained.model.calls


def test_a_model_of_another_precision_is_trained_in_its_own():
    model = nn.Linear(3, 3).double()
    trained = train(model, blobs(60), blobs(60, seed=1), options=options())
    assert trained.model.weight.dtype == torch.float64


@pytest.mark.parametrize(
    ("loss", "sentence"),
    [
        ("ce:reduction=none", "one number"),
        (lambda z, y: nn.functional.cross_entropy(z, y, reduction="none"), "one number"),
        (lambda z, y: torch.tensor(1.0), "weights"),
        (lambda z, y: 1.0, "torch tensor"),
    ],
)
def test_a_loss_that_cannot_be_learned_from_is_named(loss, sentence):
    with pytest.raises(InputError, match=sentence):
        train(net(), blobs(60), blobs(60, seed=1), loss=loss, options=options())


def test_a_steer_split_scored_as_nan_is_a_diverged_run():
    class Broken(nn.Linear):
        seen = 0

        def forward(self, x):
            self.seen += not self.training
            found = super().forward(x)
            return found * float("nan") if self.seen > 1 else found

    with refuses(TrainingError, "diverged", "epoch 0", "logits", "steer split"):
        train(Broken(3, 3), blobs(60), blobs(60, seed=1), options=options())


@pytest.mark.parametrize("schedule", ["linear", "cosine"])
def test_the_schedule_counts_the_steps_that_are_taken(schedule):
    def rates(rows):
        chosen = options(epochs=3, batch_size=32, schedule=schedule, warmup=0.5)
        done = train(net(), blobs(rows), blobs(30, seed=1), options=chosen)
        return [record.learning_rate for record in done.records]

    assert rates(65) == rates(64)  # the row left over went into the second batch
    assert rates(66) != rates(64)


def noise(n, seed, k=3):
    draw = torch.Generator().manual_seed(seed)
    return ArrayRows(torch.randn(n, k, generator=draw), torch.randint(0, k, (n,), generator=draw))


def test_a_network_that_learned_nothing_is_warned_of():
    with pytest.warns(UserWarning, match=r"learned nothing.*1\.\d+.*frequencies alone 1\.\d+"):
        train(net(), noise(60, 0), noise(200, 1), options=options(epochs=3, learning_rate=0.3))


def test_a_network_that_learned_something_is_not_warned_of(recwarn):
    train(net(), blobs(200), blobs(100, seed=1), options=options())
    rare = blobs(300, k=2)
    keep = (rare.labels == 0) | (torch.arange(300) % 10 == 0)
    rows = ArrayRows(rare.features[keep], rare.labels[keep])
    # The frequencies are those before resampling: few rows of class 1.
    shift = torch.tensor([-2.0, 0.3])
    train(net(2), blobs(200, k=2), rows, log_shift=shift, options=options())
    assert not [each for each in recwarn if "nothing" in str(each.message)]


def test_logits_that_are_absurd_but_finite_have_finite_figures():
    class Absurd(nn.Linear):
        def forward(self, x):
            return 1e30 * super().forward(x)

    torch.manual_seed(0)
    chosen = options(epochs=1, learning_rate=1e-3)
    with pytest.warns(UserWarning, match="learned nothing"):
        trained = train(Absurd(3, 3), noise(99, 0), noise(99, 1), options=chosen)
    record = trained.records[0]
    assert math.isfinite(record.nll)
    assert record.nll > record.refinement > math.log(3)
