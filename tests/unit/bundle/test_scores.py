"""The scores that a bundle gets."""

import numpy as np
import pyarrow as pa
import pytest

from calibrant.bundle.scores import GivenScores, places_of
from calibrant.errors import InputError


def test_places_are_found_by_name_as_text():
    assert places_of(["0", "1"], [1, 0], called=("x", "y")) == [1, 0]
    with pytest.raises(InputError, match="x is about 2 classes, but y about 3: both must"):
        places_of(["a", "b"], ["a", "b", "c"], called=("x", "y"))
    with pytest.raises(InputError, match="x is about the class 'b', which y does not have: both"):
        places_of(["a", "b"], ["a", "c"], called=("x", "y"))


def test_one_column_keeps_its_very_differences():
    odds = np.random.default_rng(0).normal(0, 30, 1000)
    given = GivenScores.of(["a", "b"], logits=odds)
    both = given.matrix
    assert (both[:, 1] - both[:, 0] == odds).all()
    turned = given.in_order([1, 0]).array
    assert (turned[:, 1] - turned[:, 0] == -odds).all()
    assert given.in_order([0, 1]) is given


def test_probabilities_stay_what_they_are():
    given = GivenScores.of(["a", "b"], probs=np.array([0.25, 1.0], dtype=np.float32))
    assert given.probs.tolist() == [[0.75, 0.25], [0.0, 1.0]]
    assert given.in_order([1, 0]).array.tolist() == [[0.25, 0.75], [1.0, 0.0]]
    assert given.array.dtype == np.float64


def test_columns_that_say_they_hold_something_else_are_refused():
    table = {"prob_a": [0.5], "prob_b": [0.5]}
    with pytest.raises(InputError, match="says that it holds probs"):
        GivenScores.of(["a", "b"], logits=pa.table(table))
    assert GivenScores.of(["b", "a"], probs=pa.table(table)).array.shape == (1, 2)
