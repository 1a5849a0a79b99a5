"""Verdicts of degenerate scores: all 0 or 1, or all equal."""

import numpy as np
import pytest
from tests.few_draws import few_draws

from calibrant.metrics import ece, evaluate

N = 2000


@pytest.fixture(autouse=True)
def _quick():
    with few_draws():
        yield


def rows(right, k=2, seed=0):
    """Labels of k even classes, and predictions that are right with a given chance."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, k, N)
    wrong = (labels + rng.integers(1, k, N)) % k
    return labels, np.where(rng.random(N) < right, labels, wrong)


def points(text):
    return float(text.split("by about ")[1].split(" ")[0])


@pytest.mark.parametrize("target", ["positive", "top-label"])
@pytest.mark.parametrize("weighted", [False, True])
def test_certain_scores_that_are_often_wrong_are_over_confident(target, weighted):
    labels, predicted = rows(0.7)
    scores = predicted.astype(float)
    weights = np.random.default_rng(1).uniform(1, 5, N) if weighted else None
    text = evaluate(labels, scores, target=target, weights=weights).verdict.text
    assert text.startswith("over-confident by about ")
    assert points(text) == pytest.approx(100 * ece(labels, scores, weights=weights), abs=0.06)


def test_almost_certain_scores_get_the_same_verdict():
    labels, predicted = rows(0.7)
    scores = predicted.astype(float)
    certain, near = (
        evaluate(labels, s).verdict.text for s in (scores, np.clip(scores, 1e-9, 1 - 1e-9))
    )
    assert certain == near


def test_one_hot_rows_of_more_classes():
    labels, predicted = rows(0.7, k=3)
    text = evaluate(labels, np.eye(3)[predicted]).verdict.text
    accuracy = np.mean(labels == predicted)
    assert text.startswith("over-confident by about ")
    assert f"mean confidence 100.0%, accuracy {accuracy:.1%}" in text


def test_certain_scores_that_err_on_one_side_are_too_low_on_average():
    labels = (np.arange(N) % 10 == 0).astype(int)
    scores = labels * (np.arange(N) % 3 != 0)  # a third of the events got the score 0
    text = evaluate(labels, scores.astype(float)).verdict.text
    assert text.startswith("probabilities too low by about 3.")


@pytest.mark.parametrize("k", [2, 3])
def test_certain_scores_that_are_all_right_could_still_err_in_few_rows(k):
    labels, _ = rows(0.7, k)
    scores = labels.astype(float) if k == 2 else np.eye(3)[labels]
    result = evaluate(labels, scores).verdict
    assert result.miscalibrated is False
    # Of an error in 3 rows among n, n rows would show none once in e^3 = 20 times.
    assert "a constant error of about 0.15 percentage points would probably" in result.text


def test_few_certain_rows_are_too_few():
    assert evaluate([0, 1] * 10, [0.0, 1.0] * 10).verdict.miscalibrated is None


def test_a_single_wrong_row_refutes_certain_scores():
    labels, _ = rows(0.7)
    scores = labels.astype(float)
    scores[0] = 1 - scores[0]
    assert evaluate(labels, scores).verdict.miscalibrated is True


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("score", [0.0, 0.1, 0.3, 0.7, 0.9, 1.0])
def test_a_constant_score_errs_on_average_and_never_in_slope(score, dtype):
    labels, _ = rows(0.7)
    text = evaluate(labels, np.full(N, score, dtype)).verdict.text
    assert text.startswith(f"probabilities too {'low' if score < 0.5 else 'high'} by about ")
    assert points(text) == pytest.approx(100 * abs(score - labels.mean()), abs=0.06)


@pytest.mark.parametrize("score", [0.181, 0.362, 0.651])  # 1999 * score / 1999 is another number
def test_rounding_of_the_mean_is_not_a_slope(score):
    labels, scores = rows(0.7)[0][1:], np.full(N - 1, score)
    assert evaluate(labels, scores).verdict.text.startswith("probabilities too")


def test_scores_whose_squared_differences_underflow_have_no_slope():
    labels, _ = rows(0.7)
    text = evaluate(labels, np.where(labels == 1, 2e-300, 1e-300)).verdict.text
    assert text.startswith("probabilities too low by about ")
