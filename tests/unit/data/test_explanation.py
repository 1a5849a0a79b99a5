"""Explanation: base and contributions add up to logits, by row and by class."""

import json

import numpy as np
import pytest
from tests.unit.bundle.model_parts import TABLE, table_scorer

from calibrant.data.explanation import Explanation, RowExplanation
from calibrant.errors import InputError


def test_base_and_contributions_add_up():
    values = np.array([[[1.0, 2.0, 3.0], [-1.0, 0.0, 0.5]], [[0.0, 0.0, 0.0], [4.0, -4.0, 1.0]]])
    found = Explanation.from_array(("a", "b", "c"), values, base=np.array([10.0, 20.0]))
    assert len(found) == 2
    assert found.logits.tolist() == [[16.0, 19.5], [10.0, 21.0]]
    assert found.rows[0].strongest(0, most=2) == [("c", 3.0), ("b", 2.0)]
    assert json.loads(json.dumps(found.to_dict()))["rows"][1]["values"][1] == [4.0, -4.0, 1.0]


def test_rows_may_have_different_parts():
    rows = (RowExplanation(("too", "small"), np.array([[1.0, 2.0], [0.0, -1.0]])),
            RowExplanation((), np.empty((2, 0))))  # fmt: skip
    found = Explanation(np.array([0.5, 0.0]), rows)
    assert found.logits.tolist() == [[3.5, -1.0], [0.5, 0.0]]
    assert found.rows[1].strongest(1) == []


def test_reasons_compare_a_class_with_the_others():
    # By hand, for three classes: b adds 3 to the last and 0 to the others, so 3 - (0 + 0) / 2.
    row = RowExplanation(("a", "b", "c", "d"),
                         np.array([[1.0, 0.0, 5.0, 0.0], [2.0, 0.0, 5.0, 0.0],
                                   [1.5, 3.0, 5.0, 0.0]]))  # fmt: skip
    assert row.reasons(2) == [("b", 3.0)]  # a is as large as the mean of the others
    assert row.reasons(0) == [("b", -1.5), ("a", -0.75)]
    assert row.reasons(1, most=1) == [("b", -1.5)]
    assert row.reasons(0)[1].part == "a"
    assert row.reasons(0)[1].contribution == -0.75


def test_reasons_for_two_classes_are_of_the_log_odds():
    row = RowExplanation(("a", "b"), np.array([[0.5, -1.0], [-0.5, 1.0]]))
    assert row.reasons(1) == [("b", 2.0), ("a", -1.0)]
    assert row.reasons(0) == [("b", -2.0), ("a", 1.0)]
    moved = RowExplanation(row.parts, row.values + np.array([7.0, -3.0]))
    assert moved.reasons(1) == row.reasons(1)  # what both classes get alike cancels


def test_no_rows_have_no_logits():
    assert Explanation(np.zeros(3), ()).logits.shape == (0, 3)


@pytest.mark.parametrize("shape", [(1, 2, 2), (1, 3, 3), (2, 3)])
def test_values_of_another_shape_are_refused(shape):
    with pytest.raises(InputError, match="shape"):
        Explanation.from_array(("a", "b", "c"), np.zeros(shape), base=np.zeros(2))


def test_a_scorer_that_cannot_tell_explains_nothing():
    assert table_scorer().explain(TABLE) is None
