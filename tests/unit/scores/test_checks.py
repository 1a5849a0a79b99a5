"""Examples of scores.checks."""

import numpy as np
from tests.sentences import assert_mentions

from calibrant.scores.checks import floor_note, zero_replacement


def test_example_of_zero_replacement():
    assert zero_replacement(np.array([[0.0, 1.0], [0.02, 0.98]])) == 0.01


def test_a_note_counts_the_replaced_probabilities():
    assert_mentions(floor_note(3), "3 probabilities", "1e-12")
    assert_mentions(floor_note(1, 0.005), "1 probability", "0.005")
