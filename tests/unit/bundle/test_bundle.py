"""A loaded bundle: probabilities and decisions from raw scores, exactly as points were chosen."""

import numpy as np
import pyarrow as pa
import pytest
from tests.sentences import assert_mentions, refuses
from tests.unit.bundle.parts import (
    CLASSES,
    band,
    point,
    points_of,
    rows,
    temperature,
    without_promise,
)

import calibrant
from calibrant.bundle import BundlePoint, load_bundle, pack
from calibrant.bundle.calibration import BundleCalibration
from calibrant.calibrators import PlattScaling, VectorScaling
from calibrant.convert import probs_from_logits
from calibrant.errors import InputError
from calibrant.testing import WORLDS
from calibrant.thresholds import accuracy, precision, select


@pytest.fixture
def made(tmp_path):
    def make(*points, **parts):
        return pack(tmp_path / "made", points=points, **parts)

    return make


def test_the_lazy_name_loads_what_was_packed(packed):
    loaded = calibrant.load_bundle(str(packed.path))
    assert loaded.to_dict() == packed.to_dict()
    assert loaded.path == packed.path
    assert loaded.classes == CLASSES
    assert loaded.to_dict()["scorer"] == {"kind": "none"}
    assert loaded.metrics == {}
    assert loaded.provenance["packages"]["calibrant"] == calibrant.__version__


def test_probabilities_by_hand(packed):
    """At temperature 2, logits (2, 0, 0) weigh e : 1 : 1."""
    e = np.e
    expected = np.array([[e, 1, 1]]) / (e + 2)
    assert packed.predict_proba([[2.0, 0.0, 0.0]]) == pytest.approx(expected, rel=1e-12)
    assert packed.predict_proba(logits=[[2.0, 0.0, 0.0]]) == pytest.approx(expected, rel=1e-12)
    probs = np.array([[e**2, 1, 1]]) / (e**2 + 2)
    assert packed.predict_proba(probs=probs) == pytest.approx(expected, rel=1e-12)


def test_decisions_by_hand(packed):
    """The calibrated log-odds of (z, 0, 0) are z/2 - log 2; the threshold 0.75 is log 3."""
    edge = 2 * np.log(6)
    found = packed.decide([[edge + 1e-9, 0.0, 0.0], [edge - 1e-9, 0.0, 0.0], [0.0, 9.0, 0.0]])
    assert found.decision.tolist() == ["act", "abstain", "abstain"]
    assert found.label.tolist() == ["defect", "defect", "parts"]
    assert found.acted_as.tolist() == ["defect", None, None]
    assert found.action.tolist() == ["refund", None, None]
    assert found.operating_point.tolist() == [0, -1, -1]
    assert found.probabilities == pytest.approx(packed.predict_proba([
        [edge, 0.0, 0.0], [edge, 0.0, 0.0], [0.0, 9.0, 0.0]
    ]), abs=1e-8)  # fmt: skip


def test_a_raw_point_looks_past_the_calibrator(made):
    """Raw log-odds of (z, 0, 0) are z - log 2: it acts where the calibrated one does not."""
    bundle = made(BundlePoint(point(), "raw"), calibrator=temperature())
    edge = np.log(6)
    found = bundle.decide([[edge + 1e-9, 0.0, 0.0], [edge - 1e-9, 0.0, 0.0]])
    assert found.decision.tolist() == ["act", "abstain"]
    soft = bundle.predict_proba([[edge, 0.0, 0.0]])[0, 0]
    assert soft == pytest.approx(np.sqrt(6) / (np.sqrt(6) + 2), rel=1e-12)
    assert found.probabilities[:, 0] == pytest.approx([soft, soft], abs=1e-6)


@pytest.mark.parametrize("on", ["logits", "probs"])
def test_without_a_calibrator_the_model_is_taken_as_it_is(made, on):
    bundle = made(point(on=on))
    logits = rows()
    probs = probs_from_logits(logits)
    assert bundle.predict_proba(logits) == pytest.approx(probs)
    for found in (bundle.decide(logits), bundle.decide(probs=probs)):
        assert ((found.decision == "act") == (probs[:, 0] >= 0.75)).all()


def test_two_classes_may_come_as_one_column(made):
    bundle = made(BundlePoint(point("yes", classes=("no", "yes")), "calibrated"),
                  calibrator=temperature(classes=("no", "yes")))  # fmt: skip
    odds = rows(k=1).ravel()
    one, two = bundle.decide(odds), bundle.decide(np.column_stack([-odds / 2, odds / 2]))
    assert (one.decision == two.decision).all()
    assert (one.probabilities == two.probabilities).all()
    assert one.probabilities.shape == (200, 2)
    assert ((one.decision == "act") == (odds / 2 >= np.log(3))).all()
    first = made_again(bundle, point("no", classes=("no", "yes")))
    assert ((first.decide(odds).decision == "act") == (-odds / 2 >= np.log(3))).all()


def made_again(bundle, chosen):
    parts = {"calibrator": bundle.calibration, "points": [BundlePoint(chosen, "calibrated")]}
    return pack(bundle.path, **parts, force=True)


@pytest.mark.parametrize("side", ["raw", "calibrated"])
def test_a_point_may_have_its_classes_in_another_order(made, side):
    turned = point(classes=("other", "defect", "parts"))
    bundle = made(BundlePoint(turned, side), calibrator=temperature())
    straight = pack(bundle.path, calibrator=temperature(), points=[BundlePoint(point(), side)],
                    force=True)  # fmt: skip
    logits = rows()
    assert (bundle.decide(logits).decision == straight.decide(logits).decision).all()
    top = pack(bundle.path, calibrator=temperature(), force=True, points=[
        BundlePoint(point(None, classes=("other", "defect", "parts")), side)])  # fmt: skip
    found = top.decide(logits)
    acted = found.decision == "act"
    assert 20 < acted.sum() < 180
    assert (found.acted_as[acted] == found.label[acted]).all()
    two = [point("no", classes=("no", "yes")), point("yes", 0.9, classes=("yes", "no"))]
    swapped = pack(bundle.path, points=two, force=True)
    odds = np.array([-3.0, 0.0, 3.0])
    assert swapped.decide(odds).acted_as.tolist() == ["no", None, "yes"]
    assert swapped.decide(probs=probs_from_logits(odds)).acted_as.tolist() == ["no", None, "yes"]


@pytest.mark.parametrize("kind", ["logit", "prob"])
def test_named_columns_may_come_in_any_order(packed, kind):
    logits = rows()
    values = logits if kind == "logit" else probs_from_logits(logits)
    names = [f"{kind}_{name}" for name in CLASSES]
    turned = pa.table({names[k]: values[:, k] for k in (2, 0, 1)})
    found = packed.decide(**{f"{kind}s": turned})
    straight = packed.decide(**{f"{kind}s": values})
    assert (found.probabilities == straight.probabilities).all()
    assert (found.decision == straight.decision).all()
    with refuses(InputError, "'other'", "the table"):
        packed.decide(**{f"{kind}s": turned.rename_columns([f"{kind}_x", *names[:2]])})


def test_what_was_acted_on_when_choosing_is_acted_on_by_the_bundle(tmp_path):
    """The very rows that chose the point, on scores of a calibrator that changes ranks."""
    draw = WORLDS["multiclass"].draw(3000, 0)
    logits = np.log(draw.probs)
    fitted = VectorScaling().fit(logits[:1000], draw.labels[:1000])
    log_probs = fitted.predict_log_proba(logits[1000:])
    for hold, positive in ((precision >= 0.6, 1), (accuracy >= 0.8, None)):
        chosen = select(draw.labels[1000:], logits=log_probs, hold=hold, positive=positive)
        bundle = pack(tmp_path / "b", calibrator=fitted, force=True,
                      points=[BundlePoint(chosen, "calibrated")])  # fmt: skip
        found = load_bundle(tmp_path / "b").decide(logits[1000:])
        acted = int((found.decision == "act").sum())
        assert acted == round(chosen["coverage"].value * 2000)
        assert 0 < acted < 2000
        assert (found.decision == bundle.decide(logits[1000:]).decision).all()


def test_accepted_predictions_are_those_the_promise_is_about(made):
    """A calibrator that changes the most probable class changes nothing for a raw point."""
    params = {"weight": [1.0, 1.0, 1.0], "intercept": [0.0, 0.0, 9.0]}
    saved = {"format": 1, "method": "vector", "classes": list(CLASSES), "params": params}
    bundle = made(BundlePoint(point(None), "raw"), calibrator=BundleCalibration.from_dict(saved))
    found = bundle.decide([[5.0, 0.0, 0.0]])
    assert found.label.tolist() == ["other"]
    assert found.acted_as.tolist() == ["defect"]


def test_the_first_point_of_each_class_has_a_say(made):
    strict, loose = point(threshold=0.9), point(threshold=0.5)
    bundle = made(strict, loose, point("parts", 0.6))
    logits = rows()
    probs = probs_from_logits(logits)
    found = bundle.decide(logits)
    assert ((found.acted_as == "defect") == (probs[:, 0] >= 0.9)).all()
    assert ((found.acted_as == "parts") == (probs[:, 1] >= 0.6)).all()
    assert set(found.operating_point.tolist()) == {-1, 0, 2}
    assert [bundle.is_alternative(i) for i in range(3)] == [False, True, False]
    other = bundle.decide(logits, point=1)
    assert ((other.decision == "act") == (probs[:, 0] >= 0.5)).all()
    assert set(other.operating_point.tolist()) == {-1, 1}
    assert found.rules == ("act on 'defect'", "act on 'parts'")
    assert (found.acts == (probs[:, [0, 1]] >= [0.9, 0.6])).all()
    assert (other.acts == (probs[:, [0]] >= 0.5)).all()


def test_of_several_that_act_the_most_probable_decides(made):
    bundle = made(points_of(point("defect", 0.2), point("parts", 0.2), unreachable=["other"]))
    found = bundle.decide(probs=[[0.3, 0.6, 0.1], [0.6, 0.3, 0.1], [0.25, 0.05, 0.7]])
    assert found.acted_as.tolist() == ["parts", "defect", "defect"]
    assert found.label.tolist() == ["parts", "defect", "other"]
    assert found.acts.tolist() == [[True, True], [True, True], [True, False]]
    assert found.operating_point.tolist() == [0, 0, 0]


def test_a_band_acts_clears_and_abstains(made):
    bundle = made(band(), actions={"yes": "block", "no": "nothing"})
    found = bundle.decide(probs=[0.1, 0.5, 0.9])
    assert found.decision.tolist() == ["clear", "abstain", "act"]
    assert found.acted_as.tolist() == [None, None, "yes"]
    assert found.action.tolist() == [None, None, "block"]
    assert found.operating_point.tolist() == [0, -1, 0]
    assert found.rules == ("act on 'yes'", "clear of 'yes'")
    assert str(found) == "3 rows: 1 act, 1 clear, 1 abstain."


def test_a_row_is_cleared_only_where_nothing_acts_on_it(made):
    bundle = made(band("defect", classes=CLASSES), point("parts"))
    found = bundle.decide(probs=[[0.1, 0.8, 0.1], [0.1, 0.5, 0.4]])
    assert found.decision.tolist() == ["act", "clear"]
    assert found.acted_as.tolist() == ["parts", None]


def test_saturated_scores_stay_apart_where_logits_are_given(made):
    sure = point("yes", 1 - 1e-16, classes=("no", "yes"), logit=40.0, both_kinds=False)
    bundle = made(sure)
    assert bundle.decide([39.0, 41.0]).decision.tolist() == ["abstain", "act"]
    with refuses(InputError, "give logits"):
        bundle.decide(probs=[0.5, 1.0])
    both = pack(bundle.path, points=[point("yes", classes=("no", "yes")), sure], force=True)
    assert both.decide(probs=[0.5, 1.0]).decision.tolist() == ["abstain", "act"]


def test_zero_in_a_file_means_what_it_meant_when_fitting(made):
    """With zero_as 0.01 a probability of 0 has log-odds of log(0.01 / 0.99)."""
    bundle = made(calibrator=temperature(1.0, classes=("no", "yes"), zero_as=0.01))
    assert bundle.predict_proba(probs=[0.0, 0.5])[:, 1] == pytest.approx([0.01, 0.5])
    assert bundle.manifest["calibrator"]["zero_as"] == 0.01


def test_the_identity_leaves_a_zero_a_zero(made):
    saved = {"format": 1, "method": "identity", "classes": ["no", "yes"], "params": {}}
    bundle = made(calibrator=BundleCalibration.from_dict(saved))
    assert bundle.predict_proba(probs=[0.0, 0.25]).tolist() == [[1.0, 0.0], [0.75, 0.25]]


def test_without_a_point_there_are_probabilities_and_no_decisions(made):
    bundle = made(calibrator=temperature())
    assert bundle.predict_proba([[0.0, 0.0, 0.0]]) == pytest.approx(np.full((1, 3), 1 / 3))
    with refuses(InputError, "no operating point"):
        bundle.decide([[0.0, 0.0, 0.0]])


@pytest.mark.parametrize(
    ("given", "mentions"),
    [
        ({}, ("logits or probs",)),
        ({"logits": [[0, 0, 0]], "probs": [[1, 0, 0]]}, ("logits or probs",)),
        ({"inputs": [[0, 0, 0]], "probs": [[1, 0, 0]]}, ("only one", "inputs")),
        ({"inputs": [[0, 0]]}, ("3 classes", "logits have shape", "(1, 2)")),
        ({"inputs": [0.0]}, ("3 classes", "logits have shape", "(1,)")),
        ({"inputs": [[0, float("nan"), 0]]}, ("must be finite",)),
        ({"inputs": []}, ("at least one row",)),
        ({"probs": [[0.5, 0.5, 0.5]]}, ("sums to 1.5",)),
    ],
)
def test_scores_that_do_not_fit_are_refused(packed, given, mentions):
    for ask in (packed.predict_proba, packed.decide):
        with refuses(InputError, *mentions):
            ask(**given)


@pytest.mark.parametrize("position", [1, -1, "defect"])
def test_a_position_without_a_point_is_refused(packed, position):
    with refuses(InputError, "position from 0 to 0"):
        packed.decide([[0.0, 0.0, 0.0]], point=position)


def test_classes_keep_their_type(tmp_path):
    fitted = PlattScaling().fit([-1.0, 2.0, 1.0, -2.0, 0.5, -0.5], [0, 1, 0, 0, 1, 1])
    chosen = point(1, 0.1, classes=(0, 1))
    bundle = pack(tmp_path / "b", calibrator=fitted, points=[BundlePoint(chosen, "calibrated")],
                  actions={1: "call"})  # fmt: skip
    (row,) = load_bundle(tmp_path / "b").decide([3.0]).to_rows()
    assert (row["label"], row["acted_as"], row["action"]) == (1, 1, "call")
    assert bundle.classes == (0, 1)


def test_it_tells_in_words_what_it_is(packed, made):
    assert_mentions(packed, "3 classes", "temperature", "0. On calibrated scores: Prec")
    said = str(made(without_promise()))
    assert "no calibrator" in said
    assert_mentions(said, "0. On raw scores:", "No promise:", "trained on")
    assert packed._repr_html_().startswith("<pre>Bundle of 3")
