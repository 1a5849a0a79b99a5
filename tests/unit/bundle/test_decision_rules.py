"""Where the threshold of a rule lies on the calibrated scale, and where it lies nowhere."""

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.bundle.parts import CLASSES, band, point, points_of, rows, temperature

from calibrant.bundle import BundlePoint
from calibrant.bundle.calibration import BundleCalibration
from calibrant.bundle.decision_rules import calibrate_threshold, decision_rules, describe_rule
from calibrant.calibrators import (
    BetaCalibration,
    EnsembleTemperatureScaling,
    Identity,
    IsotonicCalibration,
    PlattScaling,
    PriorCorrection,
    QuadraticScaling,
    StrictIsotonic,
    TemperatureScaling,
)
from calibrant.convert import log_odds_of

TWO = ("no", "yes")
ORDERLY = [TemperatureScaling, PlattScaling, BetaCalibration, StrictIsotonic, QuadraticScaling,
           EnsembleTemperatureScaling, Identity]  # fmt: skip


def fitted(calibrator, k=2, n=400, seed=0):
    logits = rows(n, k, seed)
    labels = (0.4 * logits + np.random.default_rng(seed + 1).gumbel(size=(n, k))).argmax(axis=1)
    names = list(TWO if k == 2 else CLASSES)
    calibrator.fit(logits, [names[i] for i in labels], classes=names)
    return BundleCalibration.from_dict(calibrator.to_dict())


def rules_of(chosen, calibration, classes, side="raw"):
    return decision_rules([BundlePoint(chosen, side)], calibration, classes, [False])


def test_a_temperature_of_two_by_hand():
    # Log-odds of 3/4 are log 3; halved, they are those of sqrt(3) / (1 + sqrt(3)).
    chosen = point("yes", 0.75, classes=TWO)
    found = calibrate_threshold(temperature(2.0, TWO), chosen, TWO)
    assert found.prob == pytest.approx(math.sqrt(3) / (1 + math.sqrt(3)))
    assert found.logit == pytest.approx(math.log(3) / 2)
    first = calibrate_threshold(temperature(2.0, TWO), point("no", 0.75, classes=TWO), TWO)
    assert first.prob == pytest.approx(found.prob)


def test_with_three_classes_a_temperature_moves_one_probability_to_many():
    assert calibrate_threshold(temperature(2.0), point(), CLASSES) is None
    # Rows on either side of any calibrated threshold, at the same probability of the model.
    probs = np.exp(temperature(2.0).log_probs(np.log([[0.5, 0.499, 0.001], [0.5, 0.25, 0.25]])))
    assert abs(probs[0, 0] - probs[1, 0]) > 0.05


def test_with_three_classes_a_prior_of_one_class_moves_its_threshold():
    prior = PriorCorrection(source=[0.2, 0.4, 0.4], target=[0.6, 0.2, 0.2])
    calibration = fitted(prior, k=3)
    # The odds of 0.5 are 1; the prior makes them 3 / 0.5 = 6 times as large.
    moved = calibrate_threshold(calibration, point("defect", 0.5), CLASSES)
    assert moved.prob == pytest.approx(6 / 7)
    assert calibrate_threshold(calibration, point("parts", 0.5), CLASSES) is None
    assert calibrate_threshold(calibration, point(None, 0.5), CLASSES) is None


def test_predictions_of_any_class():
    both = point(None, 0.75, classes=TWO)
    assert calibrate_threshold(temperature(2.0, TWO), both, TWO).prob == pytest.approx(0.6339746)
    # Platt's intercept moves the two classes to different sides.
    assert calibrate_threshold(fitted(PlattScaling()), both, TWO) is None
    same = calibrate_threshold(fitted(Identity(), k=3), point(None, 0.75), CLASSES)
    assert same.prob == pytest.approx(0.75)


def test_ties_of_the_calibrator_leave_no_place():
    chosen = point("yes", 0.75, classes=TWO)
    assert calibrate_threshold(fitted(IsotonicCalibration()), chosen, TWO) is None


def test_thresholds_that_act_on_all_or_none_have_no_place():
    for threshold, logit in ((0.0, -math.inf), (1.0, math.inf)):
        chosen = point("yes", 0.5, classes=TWO)
        ends = type(chosen)(**{**vars(chosen), "threshold": threshold, "logit": logit})
        (rule,) = rules_of(ends, temperature(2.0, TWO), TWO)
        assert rule.calibrated is None
        assert json.loads(json.dumps(rule.to_dict()))["calibrated_threshold"] is None


def test_a_saturated_threshold_is_told_in_log_odds():
    chosen = point("yes", 0.5, classes=TWO)
    changes = {"threshold": 1.0, "logit": 60.0, "both_kinds": False}
    (rule,) = rules_of(type(chosen)(**{**vars(chosen), **changes}), temperature(1.5, TWO), TWO)
    saved = rule.to_dict()
    assert (saved["scale"], saved["threshold"]) == ("log-odds", 60.0)
    assert saved["rule"] == "act on 'yes' by log-odds"
    assert rule.calibrated.logit == pytest.approx(40.0)


def test_a_point_on_calibrated_scores_is_on_that_scale_already():
    (rule,) = rules_of(point(), temperature(2.0), CLASSES, side="calibrated")
    assert rule.calibrated.prob == rule.rule.point.threshold == 0.75
    assert rule.moved is None


def test_without_a_calibrator_there_is_no_calibrated_scale():
    (rule,) = rules_of(point(), None, CLASSES)
    assert rule.calibrated is None
    assert rule.to_dict() == {
        "operating_point": 0,
        "rule": "act on 'defect'",
        "class": "defect",
        "clears": False,
        "decides_on": "raw",
        "scale": "probability",
        "threshold": 0.75,
        "calibrated_threshold": None,
        "same_scale": True,
        "alternative": False,
    }


def test_the_identity_moves_nothing():
    (rule,) = rules_of(point(), fitted(Identity(), k=3), CLASSES)
    assert rule.calibrated.prob == pytest.approx(0.75)
    assert rule.moved is None


def test_every_rule_of_a_band_and_of_several_classes():
    upper, lower = rules_of(band(), temperature(2.0, TWO), TWO)
    assert upper.moved.prob > lower.moved.prob
    assert [upper.rule.clears, lower.rule.clears] == [False, True]
    assert len(rules_of(points_of(point(), point("parts")), None, CLASSES)) == 2


@pytest.mark.parametrize("method", ORDERLY, ids=lambda method: method.method)
@settings(max_examples=40, deadline=None)
@given(
    threshold=st.floats(0.01, 0.99),
    of=st.sampled_from(TWO),
    on=st.sampled_from(["probs", "logits"]),
    seed=st.integers(0, 3),
)
def test_both_scales_decide_the_same_rows(method, threshold, of, on, seed):
    calibration = fitted(method(), seed=seed)
    chosen = point(of, threshold, on=on, classes=TWO)
    place = calibrate_threshold(calibration, chosen, TWO)
    logits = rows(500, 2, seed + 10)
    scores = chosen.decision_scores(logits=logits)
    acts = chosen.act(logits=logits)
    assert ((scores >= chosen.decision_threshold) == acts).all()
    calibrated = calibration.log_probs(logits)[:, TWO.index(of)]
    odds = log_odds_of(np.exp(calibrated))
    # Rows within rounding of the threshold may round to either side of its image.
    clear = np.abs(odds - place.logit) > 1e-9
    assert clear.sum() > 490
    assert ((odds >= place.logit) == acts)[clear].all()


@settings(max_examples=60, deadline=None)
@given(
    threshold=st.floats(0.02, 0.98),
    shares=st.tuples(*[st.floats(0.05, 1.0)] * 2),
    seed=st.integers(0, 9),
)
def test_both_scales_decide_the_same_rows_of_three_classes(threshold, shares, seed):
    own, rest = shares
    prior = PriorCorrection(source=[own, 1.0, 1.0], target=[1.0, rest, rest])
    calibration = fitted(prior, k=3)
    chosen = point("defect", threshold)
    place = calibrate_threshold(calibration, chosen, CLASSES)
    logits = rows(500, 3, seed)
    odds = log_odds_of(np.exp(calibration.log_probs(logits)[:, 0]))
    clear = np.abs(odds - place.logit) > 1e-9
    assert ((odds >= place.logit) == chosen.act(logits=logits))[clear].all()


def test_a_rule_is_described_with_its_threshold_on_both_scales():
    rule = {"rule": "act on 'defect'", "clears": False, "scale": "probability", "threshold": 0.465}
    rule |= {"same_scale": False, "calibrated_threshold": 0.71042}
    words = "Act on 'defect' from a decision score of 0.465"
    assert describe_rule(rule) == f"{words} (calibrated probability 0.7104)"
    assert describe_rule({**rule, "same_scale": True}) == words
    assert describe_rule({**rule, "calibrated_threshold": None}) == words
    assert describe_rule({**rule, "clears": True}).startswith("Act on 'defect' below a decision")
    assert describe_rule({**rule, "threshold": None}) == "Act on 'defect': never"
