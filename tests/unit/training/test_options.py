"""Options are checked when they are made."""

import dataclasses
import json

import numpy as np
import pytest
from tests.sentences import refuses

from calibrant.errors import InputError
from calibrant.training import TabularClassifier, TrainingOptions

OUT_OF_RANGE = [
    ({"epochs": 0}, ("epochs", "whole number", "at least 1", "got 0")),
    ({"epochs": 2.5}, ("epochs", "whole number")),
    ({"batch_size": True}, ("batch_size", "whole number")),
    ({"patience": 0}, ("patience", "whole number", "at least 1")),
    ({"learning_rate": 0.0}, ("learning_rate", "finite number above 0")),
    ({"learning_rate": float("nan")}, ("learning_rate", "finite number")),
    ({"weight_decay": -1.0}, ("weight_decay", "finite number", "at least 0")),
    ({"clip": 0.0}, ("clip", "finite number above 0")),
    ({"warmup": 1.0}, ("warmup", "[0, 1)")),
    ({"momentum": -0.1}, ("momentum", "[0, 1)")),
    ({"optimizer": "lion"}, ("optimizer", "'adam'", "'adamw'", "'sgd'", "got 'lion'")),
    ({"schedule": "steps"}, ("needs milestones",)),
    ({"choose_by": "accuracy"}, ("choose_by", "'refinement'", "'nll'", "'f1'")),
    ({"precision": "8-bit"}, ("precision",)),
    ({"epochs": "ten"}, ("epochs", "whole number", "at least 1", "got 'ten'")),
    ({"epochs": None}, ("epochs", "whole number")),
    ({"epochs": float("inf")}, ("epochs", "whole number")),
    ({"learning_rate": "0.1"}, ("learning_rate", "finite number above 0", "got '0.1'")),
    ({"clip": "a"}, ("clip", "finite number")),
    ({"warmup": "x"}, ("warmup",)),
    ({"drop": -3}, ("drop", "finite number above 0")),
    ({"milestones": 5}, ("milestones", "epochs", "whole numbers")),
    ({"milestones": ("a",)}, ("milestones", "epochs", "whole numbers")),
    ({"device": 3}, ("device", "name like 'cpu'")),
    ({"schedule": None}, ("schedule",)),
    ({"seed": -1}, ("seed", "whole number", "at least 0")),
    ({"seed": 2**32}, ("seed", "whole number", "at most 4294967295", "got 4294967296")),
    ({"seed": 2**70}, ("seed", "whole number", "at most 4294967295")),
]


def test_an_option_out_of_range_is_refused_in_one_sentence(subtests):
    for change, sentence in OUT_OF_RANGE:
        with subtests.test(f"{change}"), refuses(InputError, *sentence):
            TrainingOptions(**change)


@pytest.mark.parametrize("seed", [0, 2**32 - 1, 2**32, 2**63 - 1, 2**70])
def test_an_estimator_takes_a_seed_or_refuses_it_before_it_trains(seed):
    told = []
    model = TabularClassifier(
        seed=seed, epochs=1, hidden=(4,), dropout=(0.0,), progress=told.append, resample="smote"
    )
    features = np.random.default_rng(0).normal(size=(60, 2))
    labels = np.arange(60) % 3 == 0
    if seed < 2**32:
        model.fit(features, labels)
        return
    with refuses(InputError, "seed", "whole number", "at most 4294967295"):
        model.fit(features, labels)
    assert told == []


def test_numbers_of_numpy_become_plain_ones():
    options = TrainingOptions(
        epochs=np.int64(3),
        seed=np.int64(7),
        learning_rate=np.float32(0.5),
        milestones=[np.int32(2)],
    )
    assert options == TrainingOptions(epochs=3, seed=7, learning_rate=0.5, milestones=(2,))
    assert (type(options.epochs), type(options.learning_rate)) == (int, float)
    json.dumps(options.to_dict())


def test_options_are_frozen_and_plain():
    options = TrainingOptions(schedule="steps", milestones=(3, 5))
    with pytest.raises(dataclasses.FrozenInstanceError):
        options.epochs = 3
    assert json.loads(json.dumps(options.to_dict()))["milestones"] == [3, 5]
