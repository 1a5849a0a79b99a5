"""Logits are evaluated as probabilities are; the log loss of absurd ones is finite."""

from types import SimpleNamespace

import numpy as np
import pytest

from calibrant.convert import probs_from_logits
from calibrant.metrics import evaluate
from calibrant.study.judge import evaluate_logits


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
