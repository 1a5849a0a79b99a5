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


def test_no_rows_have_no_logits():
    assert Explanation(np.zeros(3), ()).logits.shape == (0, 3)


@pytest.mark.parametrize("shape", [(1, 2, 2), (1, 3, 3), (2, 3)])
def test_values_of_another_shape_are_refused(shape):
    with pytest.raises(InputError, match="shape"):
        Explanation.from_array(("a", "b", "c"), np.zeros(shape), base=np.zeros(2))


def test_a_scorer_that_cannot_tell_explains_nothing():
    assert table_scorer().explain(TABLE) is None
