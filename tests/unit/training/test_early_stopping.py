"""Early stopping counts what it should."""

from dataclasses import replace

import pytest

from calibrant.training import EpochRecord, TrainingOptions
from calibrant.training.job import Stopping

RECORD = EpochRecord(0, 1.0, 1.0, 1.0, 1.0, 0.1, 0.5, 0.5, 1e-3, 0.1)


def seen(stopping, name, values):
    return [
        stopping.note(replace(RECORD, epoch=i, **{name: value})) for i, value in enumerate(values)
    ]


def test_an_improvement_must_be_larger_than_min_delta():
    stopping = Stopping(TrainingOptions(min_delta=0.1, patience=2))
    assert seen(stopping, "refinement", [1.0, 0.95, 0.85, 0.8]) == [True, False, True, False]
    assert (stopping.best_epoch, stopping.waited, stopping.enough) == (2, 1, False)
    stopping.note(replace(RECORD, epoch=4, refinement=0.79))
    assert stopping.enough


def test_f1_must_rise_where_losses_must_fall():
    rising = [0.1, 0.5, 0.4]
    assert seen(Stopping(TrainingOptions(choose_by="f1")), "f1", rising) == [True, True, False]
    assert seen(Stopping(TrainingOptions(choose_by="nll")), "nll", rising) == [True, False, False]


def test_the_first_epoch_is_kept_whatever_it_is():
    assert Stopping(TrainingOptions()).note(replace(RECORD, refinement=float("inf")))


def test_without_patience_it_is_never_enough():
    stopping = Stopping(TrainingOptions(patience=None))
    seen(stopping, "refinement", [1.0] * 50)
    assert not stopping.enough


def test_its_state_takes_another_to_the_same_place():
    one, other = Stopping(TrainingOptions()), Stopping(TrainingOptions())
    seen(one, "refinement", [1.0, 0.5, 0.6])
    other.load(one.state())
    assert other.state() == one.state() == {"best_epoch": 1, "best_value": 0.5, "waited": 1}
    assert one.best_value == pytest.approx(0.5)
