"""A killed run goes on to the same bit; a wrong or damaged checkpoint is refused."""

import os
import random
import signal
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.sentences import refuses
from tests.unit.training import resumed_run
from tests.unit.training.runs import blobs, net, options, same_weights

from calibrant.errors import InputError, TrainingError
from calibrant.files.lock import LOCK
from calibrant.training import Hook, train
from calibrant.training.checkpoints import read_state, write_state

KILLED_AT = random.Random(5).sample(range(1, resumed_run.EPOCHS * resumed_run.STEPS), 5)


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    return resumed_run.run(tmp_path_factory.mktemp("unbroken"))


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """How each run ended; what it left is in the folder named after its step."""
    folder = tmp_path_factory.mktemp("killed")
    module = "tests.unit.training.resumed_run"
    command = [sys.executable, "-m", module, str(folder), *map(str, KILLED_AT)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    ends = dict(map(int, line.split()) for line in done.stdout.splitlines())
    return folder, ends, done.stderr


@pytest.mark.verify
@pytest.mark.parametrize("step", KILLED_AT)
def test_a_run_killed_at_any_step_ends_with_the_same_weights_to_the_bit(killed, unbroken, step):
    folder, ends, told = killed
    assert ends[step] == -signal.SIGKILL, told
    resumed = resumed_run.run(folder / str(step))
    assert same_weights(resumed.model, unbroken.model)
    assert torch.equal(resumed.loss.gammas, unbroken.loss.gammas)
    assert np.array_equal(resumed.loss.history.gamma, unbroken.loss.history.gamma)
    assert resumed.best_epoch == unbroken.best_epoch
    kept = [replace(record, seconds=0.0) for record in resumed.records]
    assert kept == [replace(record, seconds=0.0) for record in unbroken.records]


class Count(Hook):
    """Counts the epochs of a run, those before a power cut too."""

    def __init__(self, until=None):
        self.epochs, self.until = 0, until

    def on_epoch_start(self, run):
        if run.epoch == self.until:
            raise RuntimeError("power cut")

    def on_epoch_end(self, run, record):
        self.epochs += 1

    def state_dict(self):
        return {"epochs": self.epochs, "last": torch.tensor([self.epochs])}

    def load_state_dict(self, state):
        assert state["last"].tolist() == [state["epochs"]]
        self.epochs = state["epochs"]


def test_a_hook_goes_on_with_what_it_told_the_checkpoint(tmp_path):
    rows = (blobs(64), blobs(30, seed=1))
    with pytest.raises(RuntimeError, match="power cut"):
        train(net(), *rows, hooks=[Count(until=3)], folder=tmp_path, options=options())
    first, second = Count(), Count()
    train(net(), *rows, hooks=[Hook(), first, second], folder=tmp_path, options=options())
    assert first.epochs == 5  # of five, three were counted before the cut
    assert second.epochs == 2  # the run had only one of its kind


@pytest.mark.parametrize(("took", "saved"), [(0.3, [0, 4]), (0.2, [0, 1, 2, 3, 4])])
def test_where_saving_takes_long_some_epochs_are_left_out(tmp_path, monkeypatch, took, saved):
    clock, written = [0.0], []

    class Epoch(Hook):
        def on_epoch_start(self, run):
            clock[0] += 1.0

    def slowly(path, state):
        clock[0] += took / 2  # a checkpoint, and the best weights before it
        write_state(path, state)
        if path.name.startswith("epoch"):
            written.append(state["epoch"])

    monkeypatch.setattr("calibrant.training.checkpoints.time.monotonic", lambda: clock[0])
    monkeypatch.setattr("calibrant.training.checkpoints.write_state", slowly)
    chosen = options(choose_by="last", patience=None)
    whole = train(
        net(), blobs(64), blobs(30, seed=1), hooks=[Epoch()], folder=tmp_path, options=chosen
    )
    assert written == saved  # the last one in any case
    (tmp_path / "epoch-0004.safetensors").unlink()
    again = train(net(), blobs(64), blobs(30, seed=1), folder=tmp_path, options=chosen)
    assert same_weights(again.model, whole.model)


def test_a_finished_run_is_read_not_trained_again(tmp_path, unbroken):
    resumed_run.run(tmp_path)
    seen = []

    class Count(Hook):
        def on_batch_end(self, run, logits, labels):
            seen.append(1)

    chosen = options(epochs=resumed_run.EPOCHS, schedule="cosine", patience=None, clip=1.0)
    again = train(
        net(), blobs(320), blobs(100, seed=1), loss=resumed_run.loss(), hooks=[Count()],
        folder=tmp_path, options=chosen,
    )  # fmt: skip
    assert not seen
    assert same_weights(again.model, unbroken.model)


def test_the_two_newest_checkpoints_and_the_best_weights_are_kept(tmp_path):
    folder = tmp_path / "a" / "b"
    trained = train(net(), blobs(64), blobs(30, seed=1), folder=folder, options=options())
    names = sorted(path.name for path in folder.iterdir())
    assert names[-2:] == ["epoch-0003.safetensors", "epoch-0004.safetensors"]
    assert f"best-{trained.best_epoch:04d}.safetensors" in names
    assert len(names) <= 4  # two checkpoints, and the best epochs that they name


def test_every_checkpoint_finds_the_best_weights_that_it_names(tmp_path, monkeypatch):
    written = []

    def watched(path, state):
        write_state(path, state)
        named = [read_state(one)["stopping"]["best_epoch"] for one in tmp_path.glob("epoch-*")]
        found = {int(one.stem[5:]) for one in tmp_path.glob("best-*")}
        written.append((set(named) <= found, len(found)))

    monkeypatch.setattr("calibrant.training.checkpoints.write_state", watched)
    chosen = options(epochs=12, learning_rate=0.003, min_delta=0.0, patience=None)
    train(net(), blobs(64), blobs(60, seed=1), folder=tmp_path, options=chosen)
    assert all(whole for whole, _ in written)  # whenever a run may be killed
    assert max(many for _, many in written) <= 3
    assert len(written) > 15  # checkpoints, and some new best epochs


@pytest.mark.parametrize(
    ("change", "mentions"),
    [
        ({"options": options(learning_rate=0.5)}, ("learning_rate 0.01", "not 0.5")),
        ({"loss": "focal:gamma=3"}, ("loss", "CrossEntropyLoss(", "not", "FocalLoss(gamma=3")),
        ({"loss": "ce:reduction=sum"}, ("loss", "reduction='mean'", "not", "reduction='sum'")),
        ({"loss": "ce:weight=balanced"}, ("loss", "weight=None", "not", "weight=(3,)")),
        (
            {"loss": lambda z, y: torch.nn.functional.cross_entropy(z, y)},
            ("loss", "not 'calibrant", "<lambda>"),
        ),
        ({"model": net(dropout=0.9)}, ("model 'Sequential ", "not 'Sequential ")),
        ({"train_rows": blobs(65)}, ("train rows '64 ", "not '65 ")),
        ({"train_rows": blobs(64, seed=3)}, ("train rows '64 ", "not '64 ")),
        ({"steer_rows": blobs(31, seed=1)}, ("steer rows '30 ", "not '31 ")),
        ({"model": torch.nn.Linear(3, 3)}, ("model 'Sequential ", "not 'Linear ")),
    ],
)
def test_the_folder_of_another_run_is_refused(tmp_path, change, mentions):
    asked = {"train_rows": blobs(64), "steer_rows": blobs(30, seed=1)}
    train(net(), **asked, folder=tmp_path, options=options())
    asked["model"] = net()
    with refuses(InputError, "a run with", *mentions, "choose another folder"):
        train(**{**asked, "folder": tmp_path, "options": options(), **change})


def test_a_damaged_checkpoint_is_named_and_the_one_before_still_serves(tmp_path):
    asked = (net(), blobs(64), blobs(30, seed=1))
    whole = train(*asked, folder=tmp_path, options=options())
    newest = tmp_path / "epoch-0004.safetensors"
    newest.write_bytes(newest.read_bytes()[:-100])
    with refuses(TrainingError, "epoch-0004.safetensors", "damaged", "delete"):
        train(net(), *asked[1:], folder=tmp_path, options=options())
    newest.unlink()
    again = train(net(), *asked[1:], folder=tmp_path, options=options())
    assert same_weights(again.model, whole.model)


def test_other_first_weights_are_warned_of_and_the_saved_run_goes_on(tmp_path):
    rows, steer = blobs(64), blobs(30, seed=1)
    whole = train(net(), rows, steer, folder=tmp_path, options=options())
    with pytest.warns(UserWarning, match="other weights.*model has now"):
        again = train(net(seed=5), rows, steer, folder=tmp_path, options=options())
    assert same_weights(again.model, whole.model)


def test_a_damaged_best_file_has_its_own_remedy(tmp_path):
    rows, steer = blobs(64), blobs(30, seed=1)
    trained = train(net(), rows, steer, folder=tmp_path, options=options())
    best = tmp_path / f"best-{trained.best_epoch:04d}.safetensors"
    best.write_bytes(best.read_bytes()[:-9])
    for _ in range(2):  # damaged, then missing
        with refuses(TrainingError, "best-", "damaged", "delete the folder"):
            train(net(), rows, steer, folder=tmp_path, options=options())
        best.unlink(missing_ok=True)


def test_other_files_in_the_folder_are_left_alone(tmp_path):
    for name in ("epoch-0002 (copy).safetensors", "notes.txt", "best-x.safetensors"):
        (tmp_path / name).write_text("mine")
    train(net(), blobs(64), blobs(30, seed=1), folder=tmp_path, options=options())
    assert (tmp_path / "epoch-0002 (copy).safetensors").read_text() == "mine"


def test_a_second_run_in_the_folder_is_refused_and_the_first_goes_on(tmp_path):
    refused = []

    class Twice(Hook):
        def on_epoch_end(self, run, record):
            with refuses(InputError, "another run", "using", "another folder"):
                train(net(), blobs(64), blobs(30, seed=1), folder=tmp_path, options=options())
            refused.append(record.epoch)

    train(net(), blobs(64), blobs(30, seed=1), folder=tmp_path, hooks=[Twice()], options=options())
    assert refused == [0, 1, 2, 3, 4]
    assert not (tmp_path / LOCK).exists()


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file", tmp_path / "file" / "below"):
        with refuses(InputError, "cannot be created", "choose another"):
            train(net(), blobs(64), blobs(30, seed=1), folder=place, options=options())


def test_a_full_disk_is_one_sentence_and_earlier_checkpoints_stay(tmp_path, monkeypatch):
    class Fill(Hook):
        def on_epoch_start(self, run):
            if run.epoch == 2:
                monkeypatch.setattr("calibrant.training.checkpoints.save_file", _no_space)

    with refuses(InputError, "checkpoint", "cannot be written", "No space left"):
        train(
            net(), blobs(64), blobs(30, seed=1), folder=tmp_path, hooks=[Fill()], options=options()
        )
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names[-1] == "epoch-0001.safetensors"


def _no_space(*_, **__):
    raise OSError(28, "No space left on device")


def own_net(act):
    class Own(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = net()

        def forward(self, rows):
            return act(self.inner(rows))

    torch.manual_seed(0)
    return Own()


def test_a_network_whose_code_has_changed_is_refused(tmp_path):
    rows = blobs(64), blobs(30, seed=1)
    train(own_net(torch.tanh), *rows, folder=tmp_path, options=options())
    again = train(own_net(torch.tanh), *rows, folder=tmp_path, options=options())
    assert len(again.records) == 5
    with refuses(InputError, "run", "code", "model", "Own"):
        train(own_net(torch.relu), *rows, folder=tmp_path, options=options())


def test_a_run_that_a_hook_stopped_stays_stopped(tmp_path):
    class Stop(Hook):
        def on_epoch_end(self, run, record):
            run.stop = record.epoch == 1

    rows = blobs(64), blobs(30, seed=1)
    first = train(net(), *rows, folder=tmp_path, options=options(), hooks=[Stop()])
    again = train(net(), *rows, folder=tmp_path, options=options())
    assert (len(first.records), first.why) == (len(again.records), again.why) == (2, "hook")
    assert same_weights(first.model, again.model)
