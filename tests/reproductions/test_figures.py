"""Figures of a run: by hand, against the metrics themselves, and invariances."""

import numpy as np
import pytest
from reproductions.figures import run_figures

from calibrant.calibrators import TemperatureScaling
from calibrant.convert import probs_from_logits
from calibrant.metrics import ece, nll

pytestmark = pytest.mark.usefixtures("rough_intervals")


def world(n, seed, scale=1.0, k=4):
    """Labels drawn from the softmax of logits, which are then stretched by `scale`."""
    draw = np.random.default_rng(seed)
    logits = 2 * draw.normal(size=(n, k))
    labels = np.array([draw.choice(k, p=row) for row in probs_from_logits(logits)])
    return scale * logits, labels


def test_figures_are_those_of_the_metrics():
    calib, test = world(600, 0, 2.0), world(800, 1, 2.0)
    found = run_figures(calib, test)
    raw = probs_from_logits(test[0])
    assert found.figures["raw"]["nll"]["value"] == pytest.approx(nll(test[1], raw))
    assert found.figures["raw"]["ece_em"]["value"] == pytest.approx(
        ece(test[1], raw, scheme="mass", target="top-label")
    )
    assert found.figures["raw"]["error"]["value"] == pytest.approx(
        np.mean(test[0].argmax(1) != test[1])
    )
    scaling = TemperatureScaling().fit(*calib)
    assert found.temperature == pytest.approx(float(scaling.temperature_))
    assert found.losses["temperature"].mean() == pytest.approx(
        nll(test[1], scaling.predict_proba(test[0]))
    )


def test_a_stretched_truth_is_found_again():
    found = run_figures(world(4000, 2, 3.0), world(4000, 3, 3.0))
    assert found.temperature == pytest.approx(3.0, rel=0.1)
    floor = found.figures["temperature"]["ece_em"]["floor"]
    assert found.figures["temperature"]["ece_em"]["value"] < floor["q95"]
    assert found.figures["raw"]["ece_em"]["value"] > 3 * floor["q95"]
    assert found.figures["raw"]["error"] == found.figures["temperature"]["error"]


def test_the_order_of_test_rows_does_not_matter():
    calib, (logits, labels) = world(300, 4), world(400, 5)
    turned = np.random.default_rng(0).permutation(400)
    one, other = (
        run_figures(calib, (logits, labels)),
        run_figures(calib, (logits[turned], labels[turned])),
    )
    assert other.losses["auto"] == pytest.approx(one.losses["auto"][turned])
    for name in ("ece_em", "nll", "brier", "error"):
        assert other.figures["auto"][name]["value"] == pytest.approx(
            one.figures["auto"][name]["value"]
        )


def test_two_classes_are_judged_by_the_predicted_one():
    calib, test = world(400, 6, k=2), world(400, 7, k=2)
    found = run_figures(calib, test)
    expected = ece(test[1], probs_from_logits(test[0])[:, 1], scheme="mass", target="top-label")
    assert found.figures["raw"]["ece_em"]["value"] == pytest.approx(expected)
