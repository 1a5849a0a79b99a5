"""The choice of a calibrator on draws of worlds whose truth is known."""

import numpy as np
import pytest

from calibrant.calibrators import AutoCalibrator


def drawn(seed, n=600, k=5, sharper=1.0):
    """Draw labels of a softmax of normal logits, and return these made too sharp."""
    rng = np.random.default_rng(seed)
    logits = 2.0 * rng.normal(size=(n, k))
    return sharper * logits, (logits + rng.gumbel(size=(n, k))).argmax(axis=1)


def test_a_slight_sharpness_is_taken_off_where_the_cautious_rule_leaves_it():
    usual, cautious = [], []
    for seed in range(12):
        logits, labels = drawn(seed, n=1500, sharper=1.1)
        usual.append(AutoCalibrator().fit(logits, labels).chosen_.method)
        cautious.append(AutoCalibrator(tolerance=1.0).fit(logits, labels).chosen_.method)
    assert usual.count("temperature") >= 9
    assert cautious.count("temperature") < usual.count("temperature")


def test_a_temperature_put_on_a_calibrated_model_is_next_to_none():
    found = [AutoCalibrator().fit(*drawn(seed)).chosen_ for seed in range(12)]
    assert {each.method for each in found} <= {"identity", "temperature"}
    for each in found:
        if each.method == "temperature":
            assert each.temperature_ == pytest.approx(1.0, abs=0.12)
