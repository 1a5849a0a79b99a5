import numpy as np
import pytest

from calibrant.convert import (
    ensemble_logits,
    log_odds_from_logits,
    log_probs_from_logits,
    log_sigmoid,
    logits_from_probs,
    probs_from_logits,
)
from calibrant.errors import InputError


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


def test_logits_survive_a_round_trip():
    z = np.linspace(-20, 20, 41)
    assert logits_from_probs(probs_from_logits(z)) == pytest.approx(z, rel=1e-6)


def test_exact_zero_and_one_become_infinite():
    assert logits_from_probs(np.array([0.0, 1.0])).tolist() == [-np.inf, np.inf]


def draw_members(members=4, n=60, k=5, scale=3.0):
    return list(np.random.default_rng(0).normal(0, scale, (members, n, k)))


def test_two_members_by_hand():
    # Probabilities (0.9, 0.1) and (0.5, 0.5); summed exponentials 1 and e^2.
    result = ensemble_logits([np.log([[0.9, 0.1]]), np.log([[0.5, 0.5]]) + 2.0])
    assert result[0].tolist() == pytest.approx([np.log(0.7) + 1.0, np.log(0.3) + 1.0])


def test_an_ensemble_has_the_mean_probabilities_and_the_mean_log_of_summed_exponentials():
    members = draw_members()
    result = ensemble_logits(members)
    mean = np.mean([probs_from_logits(each) for each in members], axis=0)
    assert probs_from_logits(result) == pytest.approx(mean, abs=1e-12)
    summed = np.mean([np.log(np.exp(each).sum(axis=1)) for each in members], axis=0)
    assert np.log(np.exp(result).sum(axis=1)) == pytest.approx(summed, abs=1e-12)


def test_one_member_keeps_its_logits_and_the_order_of_members_does_not_matter():
    members = draw_members()
    assert ensemble_logits(members[:1]) == pytest.approx(members[0], abs=1e-12)
    assert ensemble_logits(members[::-1]) == pytest.approx(ensemble_logits(members), abs=1e-12)
    assert ensemble_logits(np.stack(members)) == pytest.approx(ensemble_logits(members))


def test_a_constant_on_one_member_moves_all_logits_by_its_share():
    members = draw_members()
    moved = [members[0] + 8.0, *members[1:]]
    assert ensemble_logits(moved) == pytest.approx(ensemble_logits(members) + 2.0, abs=1e-12)


def test_log_odds_of_an_ensemble_are_those_of_its_two_columns():
    members = draw_members(k=2)
    odds = [each[:, 1] - each[:, 0] for each in members]
    columns = log_odds_from_logits(ensemble_logits(members))
    assert ensemble_logits(odds) == pytest.approx(columns, abs=1e-12)
    mean = np.mean([probs_from_logits(each) for each in odds], axis=0)
    assert probs_from_logits(ensemble_logits(odds)) == pytest.approx(mean, abs=1e-12)


def test_huge_and_infinite_logits_of_members_are_averaged():
    result = ensemble_logits([np.array([[1e4, -1e4, 0.0]]), np.array([[-1e4, 1e4, 0.0]])])
    assert np.isfinite(result).all()
    assert probs_from_logits(result)[0].tolist() == pytest.approx([0.5, 0.5, 0.0])
    with np.errstate(divide="ignore"):
        sure = np.log(np.array([[1.0, 0.0, 0.0]]))
    assert probs_from_logits(ensemble_logits([sure, sure]))[0].tolist() == [1.0, 0.0, 0.0]
    assert ensemble_logits([np.array([np.inf, 0.0]), np.array([np.inf, 0.0])]).tolist() == [
        np.inf,
        0.0,
    ]


def test_members_of_different_shapes_are_refused():
    for members, message in [
        ([], "at least one member, got none"),
        ([np.zeros((3, 2)), np.zeros((3, 4))], r"same shape, .* got \(3, 2\) and \(3, 4\)"),
        ([np.zeros((3, 2)), np.zeros(3)], r"same shape, .* got \(3, 2\) and \(3,\)"),
        ([np.zeros((3, 2, 1))], r"\(n, K\) or \(n,\), got \(3, 2, 1\)\.$"),
    ]:
        with pytest.raises(InputError, match=message):
            ensemble_logits(members)


@pytest.mark.parametrize("k", [3, 5, 3000])
def test_log_odds_do_not_depend_on_the_order_of_classes(k):
    logits = np.random.default_rng(0).normal(0, 3, (50, k))
    logits[:10, 1] = logits[:10].max(axis=1)  # ties at the top
    order = np.random.default_rng(1).permutation(k)
    result = log_odds_from_logits(logits)
    assert np.array_equal(log_odds_from_logits(logits[:, order]), result[:, order])
    tied = result[:10].max(axis=1)
    assert np.array_equal(result[:10, 1], tied)


def test_example_of_log_sigmoid():
    assert repr(log_sigmoid(np.array([-800.0, np.inf]))) == "array([-800.,   -0.])"
