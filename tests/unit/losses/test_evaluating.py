"""Eval mode for a moment."""

import pytest
from torch import nn

from calibrant.losses import eval_mode


def modes(model):
    return [part.training for part in model.modules()]


def model_with_a_frozen_part():
    return nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.BatchNorm1d(2).eval(), nn.Dropout()))


def test_all_parts_are_in_eval_mode_inside_and_in_their_own_afterwards():
    model = model_with_a_frozen_part()
    before = modes(model)
    assert before == [True, True, True, False, True]
    with eval_mode(model) as same:
        assert same is model
        assert not any(modes(model))
    assert modes(model) == before


def test_modes_come_back_after_an_error():
    model = model_with_a_frozen_part()
    before = modes(model)
    with pytest.raises(RuntimeError, match="out of memory"), eval_mode(model):
        raise RuntimeError("out of memory")
    assert modes(model) == before


def test_a_model_in_eval_mode_stays_there():
    model = model_with_a_frozen_part().eval()
    with eval_mode(model):
        pass
    assert not any(modes(model))
