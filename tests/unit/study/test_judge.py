"""Logits are evaluated as probabilities are; the log loss of absurd ones is finite."""

from types import SimpleNamespace

import numpy as np
import pytest

from calibrant.convert import probs_from_logits
from calibrant.metrics import evaluate
from calibrant.study.judge import _find_usual, evaluate_logits, has_learned
from calibrant.study.result import CandidateResult


class Rows(dict):
    classes = ("a", "b", "c")


def rows(n, weights=None):
    codes = np.random.default_rng(0).integers(0, 3, n)
    part = SimpleNamespace(inside=np.ones(n, dtype=bool), codes_and_weights=(codes, weights))
    return Rows(test=part), codes


def test_figures_are_those_of_the_probabilities():
    known, codes = rows(200)
    logits = np.random.default_rng(1).normal(size=(200, 3))
    found = evaluate_logits(known, "test", logits, temperature=2.0).to_dict()
    expected = evaluate(codes, probs_from_logits(logits / 2)).with_classes(known.classes)
    assert found == expected.to_dict()


@pytest.mark.parametrize("weighted", [False, True])
def test_the_log_loss_of_absurd_logits_is_finite(weighted):
    weights = np.random.default_rng(2).uniform(1, 2, 50) if weighted else None
    known, codes = rows(50, weights)
    logits = np.random.default_rng(1).normal(size=(50, 3)) * 1e5
    found = evaluate_logits(known, "test", logits)["nll"]
    # So far apart, a row's log loss is the gap between the largest logit and that of its label.
    gaps = logits.max(axis=1) - logits[np.arange(50), codes]
    assert found.value == pytest.approx(np.average(gaps, weights=weights))
    assert found.interval.low < found.value < found.interval.high
    assert found.why is None


def study_of(train, choice):
    parts = {
        name: SimpleNamespace(codes_and_weights=(np.array(codes), None))
        for name, codes in (("train", train), ("choice", choice))
    }
    known = Rows(parts)
    known.compared_on = "choice"
    return known


def test_a_constant_has_learned_nothing_and_a_gain_beyond_chance_is_learned():
    known = study_of([0] * 500 + [1] * 300 + [2] * 200, [0] * 250 + [1] * 150 + [2] * 100)
    base = -(0.5 * np.log(0.5) + 0.3 * np.log(0.3) + 0.2 * np.log(0.2))
    assert not has_learned(known, base)
    assert not has_learned(known, base - 2 / 500)  # 2 log-likelihood ratio of 4: chance
    assert has_learned(known, base - 4 / 500)
    assert not has_learned(known, base + 0.1)


def a_result(model, seed=0, loss="ce", way="one"):
    return CandidateResult(loss, seed, model=model, raced=True, way=way)


def test_the_choice_is_compared_with_cross_entropy_of_its_own_model_and_seed():
    names = [("mlp", 0, "ce"), ("boosting", 0, "ce"), ("boosting", 1, "ce"), ("boosting", 1, "nu")]
    results = [a_result(*name) for name in names]
    results.append(a_result("mlp", way="weighted"))
    assert _find_usual(results, "boosting", 3) == 2
    assert _find_usual(results, "boosting", 0) == 0  # an MLP is not compared with boosting
    assert _find_usual(results, "some/boosting", 4) == 1  # the winner, named by its folder
