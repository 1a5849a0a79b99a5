"""Examples of thresholds.scores."""

import numpy as np

from calibrant.thresholds.scores import predict_classes, row_scores


def test_example_of_row_scores():
    probs = np.array([[0.1, 0.7, 0.2]])
    assert repr(row_scores(probs, on="probs", of="b", classes="abc")) == "array([0.7])"
    assert (
        repr(row_scores(np.array([40.0, -60.0]), on="logits", of=None, classes="ab"))
        == "array([40., 60.])"
    )


def test_example_of_predict_classes():
    assert repr(predict_classes(np.array([0.2, 0.7]), "probs")) == "array([0, 1])"
    assert repr(predict_classes(np.array([[3.0, 1.0, 2.0]]), "logits")) == "array([0])"
