import numpy as np
import pytest

from calibrant.convert import log_probs_from_logits, logits_from_probs, probs_from_logits


def test_logistic_by_hand():
    assert probs_from_logits(np.array([0.0, np.log(3)])).tolist() == pytest.approx([0.5, 0.75])


def test_softmax_by_hand():
    rows = probs_from_logits(np.log(np.array([[1.0, 2.0, 1.0]])))
    assert rows[0].tolist() == pytest.approx([0.25, 0.5, 0.25])


def test_huge_logits_neither_overflow_nor_lose_their_log():
    assert log_probs_from_logits(np.array([-1000.0]))[0] == -1000.0
    assert log_probs_from_logits(np.array([[0.0, 1000.0]]))[0].tolist() == [-1000.0, 0.0]


def test_rows_sum_to_one_and_shifts_do_not_matter():
    z = np.random.default_rng(0).normal(0, 30, (100, 7))
    p = probs_from_logits(z)
    assert p.sum(axis=1) == pytest.approx(np.ones(100))
    assert probs_from_logits(z + 500.0) == pytest.approx(p)


def test_two_columns_agree_with_their_difference():
    z = np.random.default_rng(0).normal(0, 5, (50, 2))
    assert probs_from_logits(z)[:, 1] == pytest.approx(probs_from_logits(z[:, 1] - z[:, 0]))


def test_there_and_back():
    z = np.linspace(-20, 20, 41)
    assert logits_from_probs(probs_from_logits(z)) == pytest.approx(z, rel=1e-6)


def test_exact_zero_and_one_become_infinite_not_something_made_up():
    assert logits_from_probs(np.array([0.0, 1.0])).tolist() == [-np.inf, np.inf]
