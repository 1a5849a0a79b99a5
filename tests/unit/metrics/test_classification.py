import numpy as np
import pytest

from calibrant.metrics import (
    accuracy,
    confusion_matrix,
    evaluate,
    f1,
    f1_macro,
    matthews,
    precision,
    precision_macro,
    recall,
    recall_macro,
)
from calibrant.metrics.influence_figures import add_pseudocounts, macro_influences
from calibrant.metrics.summary import Confusion
from calibrant.testing import WORLDS

PROBS = np.array([[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.1, 0.6, 0.3], [0.5, 0.4, 0.1]])
LABELS = [0, 1, 2, 1]


def test_confusion_has_labels_in_rows_and_predictions_in_columns():
    assert confusion_matrix(LABELS, PROBS).tolist() == [[1, 0, 0], [1, 1, 0], [0, 1, 0]]


def test_per_class_figures_by_hand():
    assert precision(LABELS, PROBS)[:2].tolist() == [0.5, 0.5]
    assert np.isnan(precision(LABELS, PROBS)[2])  # never predicted
    assert recall(LABELS, PROBS).tolist() == [1.0, 0.5, 0.0]
    assert f1(LABELS, PROBS).tolist() == pytest.approx([2 / 3, 0.5, 0.0])


def test_macro_figures_count_a_class_never_predicted_as_zero():
    assert precision_macro(LABELS, PROBS) == pytest.approx(1 / 3)
    assert recall_macro(LABELS, PROBS) == pytest.approx(0.5)
    assert f1_macro(LABELS, PROBS) == pytest.approx((2 / 3 + 0.5) / 3)
    assert accuracy(LABELS, PROBS) == 0.5


def test_a_class_in_neither_labels_nor_predictions_is_left_out():
    probs = np.array([[0.8, 0.1, 0.1], [0.2, 0.7, 0.1]])
    assert recall_macro([0, 1], probs) == 1.0


def test_one_half_predicts_the_first_class():
    assert accuracy([0], [0.5]) == 1.0
    assert accuracy([0], [[0.5, 0.5]]) == 1.0


def test_matthews_ends_and_chance():
    assert matthews([0, 1, 1], [0.1, 0.9, 0.8]) == pytest.approx(1.0)
    assert matthews([1, 0, 0], [0.1, 0.9, 0.8]) == pytest.approx(-1.0)
    assert matthews([0, 1, 1], [0.9, 0.9, 0.8]) == 0.0


def test_the_influence_is_the_derivative_with_respect_to_a_rows_weight():
    draw = WORLDS["multiclass"].draw(500, 0)
    base = confusion_matrix(draw.labels, draw.probs)
    for name, value, influence in macro_influences(base):
        for cell in ((0, 0), (1, 3), (4, 2)):
            step = np.zeros_like(base)
            step[cell] = 1e-4
            up = next(v for n, v, _ in macro_influences(base + step) if n == name)
            slope = (up - value) / 1e-4 * base.sum()
            assert slope == pytest.approx(influence[cell], rel=1e-3, abs=1e-6), name


def test_pseudocounts_of_sparse_classes_by_hand():
    # The last class was predicted once, and correctly; the others have enough rows.
    count = np.array([[50.0, 40.0, 0.0], [30.0, 60.0, 0.0], [9.0, 10.0, 1.0]])
    result = add_pseudocounts(Confusion(count, 2 * count, 4 * count))
    more = np.array([[0.0, 0.0, 0.5], [0.0, 0.0, 0.5], [0.5, 0.5, 1.0]])
    np.testing.assert_allclose(result.count, count + more)
    np.testing.assert_allclose(result.weight, 2 * (count + more))
    np.testing.assert_allclose(result.square, 4 * (count + 3 * more))


def test_classes_with_enough_rows_get_no_pseudocounts():
    count = np.array([[90.0, 10.0], [20.0, 30.0]])
    confusion = Confusion(count, count, count)
    assert add_pseudocounts(confusion) is confusion
    alone = Confusion(np.array([[5.0]]), np.array([[5.0]]), np.array([[5.0]]))
    assert add_pseudocounts(alone) is alone


def test_the_largest_calibration_error_is_at_most_1():
    labels, probs = np.array([0, 1] * 30), np.array([0.99, 0.01] * 30)
    assert evaluate(labels, probs)["mce"].interval.high <= 1.0
