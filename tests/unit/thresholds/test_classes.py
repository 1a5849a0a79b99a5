"""Thresholds of several classes under one confidence."""

import numpy as np
import pytest
from tests.sentences import refuses

from calibrant.errors import InputError
from calibrant.testing import WORLDS
from calibrant.thresholds import TargetUnreachable, accuracy, precision, recall, select, select_each


@pytest.fixture(scope="module")
def draw():
    return WORLDS["multiclass"].draw(6000, 1)


def test_each_class_gets_its_share_of_the_allowed_error(draw):
    found = select_each(draw.labels, draw.probs, hold={0: precision >= 0.7, 1: precision >= 0.6})
    for name, target in ((0, precision >= 0.7), (1, precision >= 0.6)):
        alone = select(draw.labels, draw.probs, hold=target, positive=name, confidence=0.975)
        assert found[name].threshold == alone.threshold
        assert found[name].confidence == 0.95


def test_a_class_that_cannot_be_promised_is_reported(draw):
    labels = np.where(draw.labels == 4, 3, draw.labels)  # the last class has no labels at all
    found = select_each(labels, draw.probs, hold=recall >= 0.8, maximise=precision)
    assert set(found.points) == {0, 1, 2, 3}
    assert set(found.unreachable) == {4}
    with pytest.raises(TargetUnreachable, match="0 positive"):
        found[4]
    assert found.to_dict()["reached"] is False


def test_flags_are_those_of_the_points(draw):
    found = select_each(draw.labels, draw.probs, hold=recall >= 0.9)
    flags = found.act(draw.probs)
    twice = np.sum([*flags.values()], axis=0) > 1
    assert found.flagged_twice == twice.sum() > 0
    for name, point in found.points.items():
        assert np.array_equal(flags[name], draw.probs[:, name] >= point.threshold)


def test_names_are_kept(draw):
    names = np.array(["a", "b", "c", "d", "e"])
    found = select_each(
        names[draw.labels], draw.probs, hold={"b": precision >= 0.6}, classes=list(names)
    )
    assert list(found.points) == ["b"]
    assert found["b"].of == "b"


@pytest.mark.parametrize(
    ("hold", "message"),
    [
        ({9: precision >= 0.7}, ("not among", "classes")),
        ({}, ("hold is empty",)),
        ({0: accuracy >= 0.7}, ("predictions of any class",)),
        ({0: 0.7}, ("targets such as",)),
    ],
)
def test_bad_holds_get_one_sentence(draw, hold, message):
    with refuses(InputError, *message):
        select_each(draw.labels, draw.probs, hold=hold)
