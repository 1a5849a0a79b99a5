"""Runs at a time: the same figures, nothing half done, and no process that stays behind."""

import json
import multiprocessing
import os
import signal
import threading
import time
import warnings
from dataclasses import replace

import pytest
import torch
from reproductions.fitting import fit
from reproductions.summary import summarise
from reproductions.summary_words import called

from calibrant.errors import InputError, TrainingError
from calibrant.models.cores import use_threads
from calibrant.training.hooks import Hook
from reproductions import RunRequest, experiment_named, reproduce

ONE = experiment_named("long-tail-mammography")
ASKED = {"size": "toy", "seeds": [0, 1], "methods": [ONE.at("toy").methods[-1].name]}
LONGER = {**ASKED, "seeds": [0], "overrides": {"epochs": 4}}
CHANGING = ("seconds", "seconds_of_an_epoch", "date", "history")


@pytest.fixture(autouse=True)
def half_of_the_cores():
    """Each of two processes has half of the cores, and sums depend on how many there are."""
    before = torch.get_num_threads()
    use_threads(max(1, len(os.sched_getaffinity(0)) // 2))
    yield
    use_threads(before)


def figures_of(paths):
    read = [json.loads(path.read_text()) for path in paths]
    return [{name: value for name, value in one.items() if name not in CHANGING} for one in read]


def test_two_at_a_time_have_the_figures_of_one_after_the_other(tmp_path):
    told = []
    together = reproduce(
        ONE, tmp_path / "together", RunRequest(**ASKED, jobs=3), progress=told.append
    )
    alone = reproduce(ONE, tmp_path / "alone", RunRequest(**{**ASKED, "seeds": [1]}))
    assert figures_of(together[1:]) == figures_of(alone)
    assert [path.name for path in together[1:]] == [path.name for path in alone]
    assert told[1] == "long-tail-mammography: 2 of 2 runs at a time"
    assert sum("is done" in each for each in told) == 2
    assert told[-1].endswith("is done (2 of 2)")
    assert multiprocessing.active_children() == []


def test_what_training_warned_of_is_told_with_the_method_and_printed_nowhere(
    tmp_path, monkeypatch, recwarn
):
    def warning(*args, **options):
        for _ in range(2):
            warnings.warn("weights move these probabilities", UserWarning, stacklevel=2)
        return fit(*args, **options)

    monkeypatch.setattr("reproductions.fitting.fit", warning)
    [path] = reproduce(ONE, tmp_path, RunRequest(**{**ASKED, "seeds": [0]}))
    record = json.loads(path.read_text())
    assert record["warnings"].count("weights move these probabilities") == 1
    assert not recwarn.list
    notes = summarise(ONE.at("toy"), [record]).notes
    assert f"{called(record['label'])}: weights move these probabilities." in notes


def test_the_sentence_of_a_run_that_fails_is_raised(tmp_path):
    asked = RunRequest(**ASKED, jobs=2, overrides={"device": "nowhere"})
    with pytest.raises(InputError, match="nowhere"):
        reproduce(ONE, tmp_path, asked)
    assert multiprocessing.active_children() == []


def test_a_process_that_is_killed_is_told_of(tmp_path):
    """As the system does where memory runs out."""

    def kill_one():
        while not (found := multiprocessing.active_children()):
            time.sleep(0.05)
        os.kill(found[0].pid, signal.SIGKILL)

    killer = threading.Thread(target=kill_one, daemon=True)
    killer.start()
    with pytest.raises(TrainingError, match="--jobs 1; runs that are finished are kept"):
        reproduce(ONE, tmp_path, RunRequest(**ASKED, jobs=2))
    killer.join()
    assert multiprocessing.active_children() == []


class Cut(Hook):
    """Ends a run after so many epochs, as Ctrl-C would."""

    def __init__(self, *asked, **named):
        super().__init__()

    def on_epoch_end(self, run, record):
        if run.epoch == 2:
            raise KeyboardInterrupt


def test_an_interrupted_run_goes_on_where_it_was(tmp_path, monkeypatch):
    whole = reproduce(ONE, tmp_path / "whole", RunRequest(**LONGER))
    with monkeypatch.context() as cut:
        cut.setattr("calibrant.study.candidates.epoch_messages.EpochMessages", Cut)
        with pytest.raises(KeyboardInterrupt):
            reproduce(ONE, tmp_path / "cut", RunRequest(**LONGER), progress=print)
    left = next((tmp_path / "cut" / ONE.name).glob(".*"))
    assert sorted(path.name for path in left.glob("epoch-*"))[-1] == "epoch-0001.safetensors"
    told = []
    again = reproduce(ONE, tmp_path / "cut", RunRequest(**LONGER), progress=told.append)
    assert [line.split("epoch ")[1][:6] for line in told if "epoch" in line] == ["3 of 4", "4 of 4"]
    assert figures_of(again) == figures_of(whole)
    assert len(figures_of(again)[0]["test_history"]) == 4
    assert not left.exists()


def test_what_a_run_of_another_setting_left_is_not_gone_on_with(tmp_path, monkeypatch):
    with monkeypatch.context() as cut:
        cut.setattr("calibrant.study.candidates.epoch_messages.EpochMessages", Cut)
        with pytest.raises(KeyboardInterrupt):
            reproduce(ONE, tmp_path, RunRequest(**LONGER), progress=print)
    told = []
    reproduce(
        ONE, tmp_path, RunRequest(**{**LONGER, "overrides": {"epochs": 3}}), progress=told.append
    )
    assert sum("epoch" in line for line in told) == 3


def test_test_rows_are_looked_at_every_few_epochs_and_at_the_end(tmp_path):
    some = replace(ONE, look_every=3)
    [path] = reproduce(some, tmp_path, RunRequest(**{**LONGER, "overrides": {"epochs": 6}}))
    found = json.loads(path.read_text())["test_history"]
    assert [each["epoch"] for each in found] == [0, 3, 5]
