"""Risk against coverage: by hand, against accuracy and AURC, and for saturated scores."""

import json

import numpy as np
import pytest
from tests.sentences import refuses

from calibrant.convert import probs_from_logits
from calibrant.errors import InputError
from calibrant.metrics import accuracy, aurc
from calibrant.stats import clopper_pearson
from calibrant.testing import WORLDS
from calibrant.thresholds.risk_coverage import risk_coverage

both = pytest.mark.parametrize("world", ["binary", "multiclass"])


def test_a_curve_worked_by_hand():
    found = risk_coverage([0, 1, 0, 1], [0.1, 0.9, 0.8, 0.6])
    assert found.coverage.tolist() == [0.5, 0.75, 1.0]
    assert found.risk == pytest.approx([0, 1 / 3, 1 / 4])
    assert found.threshold.tolist() == [0.9, 0.8, 0.6]
    assert found.accepted.tolist() == [2, 3, 4]
    assert found.errors.tolist() == [0, 1, 1]


@both
def test_at_full_coverage_the_risk_is_the_error_rate(world):
    draw = WORLDS[world].draw(700, 0)
    found = risk_coverage(draw.labels, draw.probs)
    assert found.coverage[-1] == 1
    assert found.risk[-1] == pytest.approx(1 - accuracy(draw.labels, draw.probs))
    assert (np.diff(found.coverage) > 0).all()
    assert (np.diff(found.threshold) < 0).all()


@both
@pytest.mark.parametrize("weighted", [False, True])
def test_the_area_is_that_of_the_metric(world, weighted):
    draw = WORLDS[world].draw(700, 0)
    weights = np.random.default_rng(0).choice([1.0, 3.0], 700) if weighted else None
    found = risk_coverage(draw.labels, draw.probs, weights=weights)
    assert found.aurc == pytest.approx(aurc(draw.labels, draw.probs, weights=weights))
    assert found.weighted == weighted


@both
def test_the_mean_risk_over_rows_is_the_area(world):
    """Without ties the curve has one point for each row, and AURC is their plain mean."""
    draw = WORLDS[world].draw(700, 0)
    found = risk_coverage(draw.labels, draw.probs)
    assert len(found.risk) == 700
    assert found.risk.mean() == pytest.approx(found.aurc)


def test_the_band_is_the_exact_interval_of_the_errors():
    draw = WORLDS["multiclass"].draw(300, 0)
    found = risk_coverage(draw.labels, draw.probs, confidence=0.8)
    for k in (0, 10, 150, 299):
        exact = clopper_pearson(found.errors[k], found.accepted[k], confidence=0.8)
        assert (found.low[k], found.high[k]) == pytest.approx((exact.low, exact.high))


def test_logits_tell_apart_what_probabilities_have_rounded():
    rng = np.random.default_rng(0)
    logits = rng.normal(0, 80, 400)
    labels = (rng.random(400) < probs_from_logits(logits / 40)).astype(int)
    exact, rounded = (
        risk_coverage(labels, logits=logits),
        risk_coverage(labels, probs_from_logits(logits)),
    )
    assert len(exact.risk) == 400 > len(rounded.risk)
    assert exact.aurc < rounded.aurc  # the order among the surest is right
    matrix = np.column_stack([np.zeros(400), logits])
    assert risk_coverage(labels, logits=matrix).risk == pytest.approx(exact.risk)


def test_names_of_classes_and_thinning():
    draw = WORLDS["binary"].draw(5000, 0)
    names = np.array(["no", "yes"])
    found = risk_coverage(names[draw.labels], draw.probs, classes=["no", "yes"], points=200)
    assert len(found.risk) <= 205
    assert found.aurc == pytest.approx(aurc(draw.labels, draw.probs))


def test_it_becomes_json():
    saved = risk_coverage([0, 1, 1], [0.2, 0.9, 0.4]).to_dict()
    assert json.loads(json.dumps(saved, allow_nan=False)) == saved


def test_bad_input_is_refused():
    with refuses(InputError, "give either probs or logits"):
        risk_coverage([0, 1])
