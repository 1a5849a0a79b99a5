"""The learning rate follows its schedule."""

import math

import pytest
import torch
from torch import nn

from calibrant.training import TrainingOptions
from calibrant.training.optimisers import learning_rate_at, make_optimizer, set_learning_rate


def test_schedules_by_hand():
    cosine = TrainingOptions(epochs=10, learning_rate=2.0, schedule="cosine")
    assert learning_rate_at(cosine, 0) == 2.0
    assert learning_rate_at(cosine, 5) == pytest.approx(1.0)
    assert learning_rate_at(cosine, 2.5) == pytest.approx(1 + math.cos(math.pi / 4))
    linear = TrainingOptions(epochs=10, learning_rate=2.0, schedule="linear")
    assert learning_rate_at(linear, 7.5) == pytest.approx(0.5)
    steps = TrainingOptions(
        epochs=10, learning_rate=1.0, schedule="steps", milestones=(4, 8), drop=0.5
    )
    assert [learning_rate_at(steps, done) for done in (3.9, 4, 8)] == [1.0, 0.5, 0.25]
    assert learning_rate_at(TrainingOptions(learning_rate=3.0), 99) == 3.0


def test_warm_up_rises_from_nothing_and_then_the_schedule_begins():
    options = TrainingOptions(epochs=10, learning_rate=1.0, schedule="linear", warmup=0.2)
    assert [learning_rate_at(options, done) for done in (0, 1, 2)] == pytest.approx([0, 0.5, 1])
    assert learning_rate_at(options, 6) == pytest.approx(0.5)
    assert learning_rate_at(options, 0, 0.1) == pytest.approx(0.05)  # no step is wasted at rate 0
    assert learning_rate_at(options, 1.9, 0.1) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("name", "kind"),
    [("adam", torch.optim.Adam), ("adamw", torch.optim.AdamW), ("sgd", torch.optim.SGD)],
)
def test_each_name_is_its_optimiser(name, kind):
    options = TrainingOptions(optimizer=name, learning_rate=0.3, weight_decay=0.1, momentum=0.7)
    made = make_optimizer(nn.Linear(2, 2).parameters(), options)
    assert type(made) is kind
    group = made.param_groups[0]
    assert (group["lr"], group["weight_decay"], group["fused"]) == (0.3, 0.1, True)
    assert group.get("momentum", 0.7) == 0.7
    set_learning_rate(made, 0.5)
    assert made.param_groups[0]["lr"] == 0.5
