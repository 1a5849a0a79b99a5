"""Classes that tie: their order does not matter, to any method."""

import numpy as np
import pytest

from calibrant.calibrators import SplineCalibration, list_methods
from calibrant.calibrators.base.registry import find_method

METHODS = [name for name in list_methods() if name not in ("auto", "chain")]


def test_the_order_of_columns_does_not_matter_where_logits_tie(subtests):
    """Logits of few bits tie within rows and between them."""
    for method in METHODS:
        for seed in range(3):
            with subtests.test(f"{method}, seed {seed}"):
                rng = np.random.default_rng(seed)
                logits = rng.normal(0, 1.5, (150, 3)).round()
                top = np.sort(logits, axis=1)
                assert (top[:, -1] == top[:, -2]).sum() > 5
                probs = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
                labels = (rng.random((150, 1)) > probs.cumsum(axis=1)).sum(axis=1)
                turned = [2, 0, 1]
                there = find_method(method)().fit(logits, labels).predict_proba(logits)
                moved = find_method(method)().fit(logits[:, turned], np.argsort(turned)[labels])
                assert moved.predict_proba(logits[:, turned]) == pytest.approx(
                    there[:, turned], abs=1e-6
                )


def test_a_tie_at_the_top_counts_for_each_class_and_stays_one():
    """Of three classes that are all alike, each is right in a third of its predictions."""
    fitted = SplineCalibration().fit(np.zeros((4, 3)), [0, 1, 2, 2])
    assert fitted.values_ == pytest.approx([1 / 3])
    pair = np.log([[0.4, 0.4, 0.2]] * 4)
    found = SplineCalibration().fit(pair, [0, 1, 0, 2]).predict_proba(pair[:1])[0]
    assert found[0] == found[1]
    # 3 of 4 labels are among the two, so each of them is right 3/8 of the time.
    assert found == pytest.approx([0.375, 0.375, 0.25])
