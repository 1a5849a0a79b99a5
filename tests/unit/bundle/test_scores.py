"""The scores that a bundle gets."""

import numpy as np
import pyarrow as pa
from tests.sentences import refuses

from calibrant.bundle.scores import ModelScores, class_positions
from calibrant.errors import InputError


def test_places_are_found_by_name_as_text():
    assert class_positions(["0", "1"], [1, 0], owners=("x", "y")) == [1, 0]
    with refuses(InputError, "x has 2 classes", "y has 3"):
        class_positions(["a", "b"], ["a", "b", "c"], owners=("x", "y"))
    with refuses(InputError, "x has", "class 'b'", "y does not"):
        class_positions(["a", "b"], ["a", "c"], owners=("x", "y"))


def test_one_column_keeps_its_very_differences():
    odds = np.random.default_rng(0).normal(0, 30, 1000)
    given = ModelScores.from_input(["a", "b"], logits=odds)
    both = given.matrix
    assert (both[:, 1] - both[:, 0] == odds).all()
    turned = given.reorder_columns([1, 0]).array
    assert (turned[:, 1] - turned[:, 0] == -odds).all()
    assert given.reorder_columns([0, 1]) is given


def test_probabilities_stay_what_they_are():
    given = ModelScores.from_input(["a", "b"], probs=np.array([0.25, 1.0], dtype=np.float32))
    assert given.probs.tolist() == [[0.75, 0.25], [0.0, 1.0]]
    assert given.reorder_columns([1, 0]).array.tolist() == [[0.25, 0.75], [1.0, 0.0]]
    assert given.array.dtype == np.float64


def test_columns_that_say_they_hold_something_else_are_refused():
    table = {"prob_a": [0.5], "prob_b": [0.5]}
    with refuses(InputError, "'prob_a'", "holds probs", "logits_from_probs"):
        ModelScores.from_input(["a", "b"], logits=pa.table(table))
    assert ModelScores.from_input(["b", "a"], probs=pa.table(table)).array.shape == (1, 2)
