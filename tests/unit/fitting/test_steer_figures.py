"""Figures of the steer split, against the metrics and calibrators they are made of."""

import numpy as np
import pytest

from calibrant.calibrators import TemperatureScaling
from calibrant.fitting.steer_figures import steer_figures
from calibrant.metrics import ece, f1_macro, nll
from calibrant.testing import WORLDS


def drawn():
    draw = WORLDS["multiclass"].draw(2000, 0)
    return 3 * np.log(draw.probs), draw.labels


def test_figures_are_those_of_the_metrics():
    logits, labels = drawn()
    probs = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    found = steer_figures(logits.astype(np.float32), labels)
    assert found.nll == pytest.approx(nll(labels, probs), rel=1e-5)
    assert found.ece == pytest.approx(ece(labels, probs, scheme="mass"), abs=1e-6)
    assert found.f1 == pytest.approx(f1_macro(labels, probs))
    assert found.accuracy == pytest.approx(np.mean(probs.argmax(1) == labels))


def test_refinement_does_not_depend_on_the_scale_of_the_logits_but_the_log_loss_does():
    logits, labels = drawn()
    ours, scaled = steer_figures(logits, labels), steer_figures(5 * logits, labels)
    assert ours.refinement == pytest.approx(scaled.refinement, rel=1e-6)
    assert scaled.temperature == pytest.approx(5 * ours.temperature, rel=1e-3)
    assert scaled.nll > ours.nll > ours.refinement


def test_refinement_is_the_log_loss_after_temperature_scaling():
    logits, labels = drawn()
    scaling = TemperatureScaling(smooth=True).fit(logits, labels)
    assert steer_figures(logits, labels).refinement == pytest.approx(
        nll(labels, scaling.predict_proba(logits))
    )


def test_two_classes_are_judged_by_the_predicted_one_as_more_are():
    draw = WORLDS["binary"].draw(1000, 0)
    logits = np.column_stack([np.zeros(1000), np.log(draw.probs) - np.log1p(-draw.probs)])
    top = np.maximum(draw.probs, 1 - draw.probs)
    right = (draw.probs > 0.5) == draw.labels
    found = steer_figures(logits, draw.labels)
    assert found.ece == pytest.approx(ece(right.astype(int), top, scheme="mass"), abs=1e-9)


def test_a_class_without_rows_and_one_class_alone_are_measured_too():
    logits = np.array([[2.0, 0.0, -1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])
    for labels in (np.array([0, 1, 0]), np.array([1, 1, 1])):
        found = steer_figures(logits, labels)
        assert np.isfinite([found.nll, found.refinement, found.ece, found.f1]).all()
