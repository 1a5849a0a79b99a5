from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest
from reproductions.ood_figures import doubt, ood_figures
from reproductions.parts import Part, Parts
from sklearn.metrics import roc_auc_score

from calibrant.calibrators import TemperatureScaling
from calibrant.convert import probs_from_logits
from calibrant.ood import entropy

K = 4


def _rows(n, sure, seed):
    draw = np.random.default_rng(seed)
    labels = draw.integers(0, K, n)
    return sure * np.eye(K)[labels] + draw.normal(0, 1.5, (n, K)), labels


@pytest.fixture
def fitted():
    """A stand-in for a run: rows of known classes, and two data sets outside."""
    parts, logits = {}, {}
    for seed, name in enumerate(("train", "steer", "calib", "test")):
        scores, labels = _rows(300, 4.0, seed)
        parts[name] = Part(scores, labels)
        logits[name] = 3.0 * scores  # over-confident
    outside = {"svhn": _rows(200, 0.0, 9)[0], "noise": _rows(250, 2.0, 10)[0]}
    logits |= {name: 3.0 * scores for name, scores in outside.items()}
    classes = tuple("abcd")
    return SimpleNamespace(parts=Parts(**parts, classes=classes, outside=outside), logits=logits)


def test_entropy_separates_as_scikit_learn_counts_it(fitted):
    found = ood_figures(fitted)

    scaling = TemperatureScaling().fit(fitted.logits["calib"], fitted.parts.calib.labels)
    temperature = scaling.temperature_
    assert temperature > 1.5
    for name in ("svhn", "noise"):
        inside, outside = fitted.logits["test"], fitted.logits[name]
        truth = np.r_[np.zeros(len(inside)), np.ones(len(outside))]
        both = np.concatenate([inside, outside])
        for way, divisor in (("raw", 1.0), ("temperature", temperature)):
            expected = roc_auc_score(truth, entropy(both / divisor))
            assert found[name]["entropy"][way] == pytest.approx(expected, abs=1e-12)
            probs = probs_from_logits(both / divisor)
            expected = roc_auc_score(truth, -probs.max(axis=1))
            assert found[name]["max_prob"][way] == pytest.approx(expected, abs=1e-6)
    assert found["svhn"]["entropy"]["raw"] > found["noise"]["entropy"]["raw"] > 0.5
    assert found["svhn"]["entropy"]["raw"] != found["svhn"]["entropy"]["temperature"]


def test_the_record_can_hold_it(fitted):
    found = json.loads(json.dumps(ood_figures(fitted)))

    assert list(found) == ["svhn", "noise"]
    assert list(found["svhn"]) == ["entropy", "max_prob", "energy"]
    assert all(0 <= each <= 1 for one in found.values() for ways in one.values()
               for each in ways.values())  # fmt: skip


def test_the_temperature_is_that_of_the_rows_of_calibration(fitted):
    before = ood_figures(fitted)
    fitted.logits["calib"] = fitted.logits["calib"] / 3
    after = ood_figures(fitted)

    assert before["noise"]["entropy"]["raw"] == after["noise"]["entropy"]["raw"]
    assert before["noise"]["entropy"]["temperature"] != after["noise"]["entropy"]["temperature"]


def test_without_data_sets_outside_there_is_nothing_to_tell(fitted):
    fitted.parts = SimpleNamespace(calib=fitted.parts.calib, outside={})

    assert ood_figures(fitted) == {}


def test_doubt_orders_rows_as_the_largest_probability_does_and_never_rounds_to_one_number():
    logits = _rows(500, 3.0, 0)[0]
    by_hand = np.log1p(-probs_from_logits(logits).max(axis=1))
    np.testing.assert_allclose(doubt(logits), by_hand, rtol=1e-6)
    sure = doubt(np.array([[50.0, 0.0, -1.0], [60.0, 0.0, -1.0]]))
    assert sure[0] > sure[1]
    np.testing.assert_allclose(doubt(logits + 1e3), doubt(logits), rtol=1e-9)
