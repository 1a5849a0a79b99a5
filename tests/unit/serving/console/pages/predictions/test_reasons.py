"""Why a prediction was decided: the rule that did, and those that did not."""

from dataclasses import replace

import numpy as np
import pytest
from tests.sentences import assert_mentions
from tests.unit.bundle.parts import band, point, points_of, temperature, without_promise
from tests.unit.serving.bundles import logits_bundle
from tests.unit.serving.console.predictions_log import START, make_prediction

from calibrant.bundle import BundlePoint
from calibrant.serving.console.pages.predictions.reasons import explain, format_distinct
from calibrant.store import BundleRecord


def record(*points, ood=None, calibrator=None, classes=("defect", "parts", "other")):
    manifest = {
        "operating_points": [each.to_dict() for each in points],
        "ood": ood,
        "calibrator": calibrator,
    }
    return BundleRecord("3f0a", "returns", list(classes), manifest, START)


def raw(*results):
    return record(*(BundlePoint(each, "raw") for each in results))


def acted(place=0, **changes):
    return make_prediction(
        "3f0a", decision="act", acted_as="defect", operating_point=place, **changes
    )


def test_the_rule_that_acted():
    explanation = explain(acted(logits=[3.0, 0.0, 0.0]), raw(point("defect", 0.75)))
    prob = np.exp(3) / (np.exp(3) + 2)
    assert explanation.sentences == (
        f"Its decision score, the probability of defect, was {prob:.4g}, at or above the threshold "
        "0.75 of operating point 0, so it was acted on.",
    )
    (rule,) = explanation.rules
    assert rule.decided
    assert rule.holds
    assert_mentions(rule.promise, "Precision is at least 85 %", "class 'defect'", "95 % confidence")


def test_a_threshold_that_was_not_reached():
    explanation = explain(
        make_prediction("3f0a", logits=[0.5, 0.0, 0.0]), raw(point("defect", 0.75))
    )
    assert "the probability of defect, was 0.4519, below the " in explanation.sentences[0]
    assert explanation.sentences[0].endswith("threshold 0.75, so it was left to a person.")
    assert not explanation.rules[0].holds


def test_calibrated_points_compare_calibrated_probabilities():
    saved = record(BundlePoint(point("defect", 0.75), "calibrated"), calibrator={"method": "x"})
    explanation = explain(acted(logits=[0.0, 0.0, 0.0], probs=[0.8, 0.1, 0.1]), saved)
    said = explanation.sentences[0]
    assert_mentions(said, "decision score, the calibrated probability of defect, was 0.8")
    both = record(BundlePoint(point("defect", 0.75), "raw"), calibrator={"method": "x"})
    own = explain(acted(logits=[3.0, 0.0, 0.0], probs=[0.8, 0.1, 0.1]), both)
    assert "decision score, the model’s own probability of defect, was 0." in own.sentences[0]


def test_of_several_rules_the_deciding_one_is_named():
    saved = raw(point("parts", 0.2), point("defect", 0.5), point("defect", 0.1))
    explanation = explain(acted(1, logits=[2.0, 1.0, 0.0]), saved)
    assert [(rule.point, rule.decided, rule.holds) for rule in explanation.rules] == [
        (0, False, True), (1, True, True)
    ]  # fmt: skip
    assert explanation.sentences[1].startswith("Several rules would act")
    nobody = explain(make_prediction("3f0a", logits=[0.0, -5.0, 0.0]), saved)
    assert nobody.sentences == ("No rule would act on it, so it was left to a person.",)
    requested = explain(acted(2, logits=[0.0, 0.0, 0.0], asked_point=2), saved)
    assert [rule.point for rule in requested.rules] == [2]
    assert requested.sentences[-1] == "The request named operating point 2."


def test_points_of_several_classes_are_rules_of_one_point():
    saved = record(BundlePoint(points_of(point("parts", 0.3), point("defect", 0.3)), "raw"))
    explanation = explain(acted(logits=[3.0, 0.0, 0.0]), saved)
    assert [(rule.of, rule.decided) for rule in explanation.rules] == [
        ("parts", False),
        ("defect", True),
    ]


def test_any_class():
    explanation = explain(acted(logits=[3.0, 0.0, 0.0]), raw(point(None, 0.6)))
    assert explanation.rules[0].does == "accept predictions of any class"
    assert "the probability of the predicted class, was 0.9094" in explanation.sentences[0]


@pytest.mark.parametrize(
    ("logit", "decision", "sentence"),
    [(3.0, "act", "so it was acted on."), (-3.0, "clear", "so it was cleared."),
     (0.0, "abstain", "so it was left to a person.")],
)  # fmt: skip
def test_a_band(logit, decision, sentence):
    saved = record(BundlePoint(band(), "raw"), classes=("no", "yes"))
    decided = {"act": ("yes", 0), "clear": (None, 0), "abstain": (None, None)}[decision]
    prediction = make_prediction(
        "3f0a", logits=[0.0, logit], probs=[0.5, 0.5], label="yes", decision=decision,
        acted_as=decided[0], operating_point=decided[1],
    )  # fmt: skip
    explanation = explain(prediction, saved)
    assert explanation.sentences[0].endswith(sentence)
    upper, lower = explanation.rules
    assert (upper.decided, lower.decided) == (decision == "act", decision == "clear")
    assert (upper.holds, lower.holds) == (decision == "act", decision == "clear")
    assert lower.does == "clear of yes"
    assert upper.promise == lower.promise
    assert upper.promise.startswith("Above the band precision is at least 85 %, and below it")


def test_a_missing_promise_is_stated():
    explanation = explain(acted(logits=[3.0, 0.0, 0.0]), raw(without_promise()))
    assert explanation.rules[0].promise.startswith(
        "No promise: the model was trained on these very rows"
    )


def test_saturated_thresholds_are_shown_as_log_odds():
    near_one = point("defect", 1 - 1e-16, logit=40.0, both_kinds=False)
    explanation = explain(acted(logits=[41.0, 0.0, -99.0]), raw(near_one))
    assert "the log-odds of defect, was 41, at or above the" in explanation.sentences[0]


def test_columns_in_another_order():
    other_order = point("defect", 0.75, classes=("other", "parts", "defect"))
    explanation = explain(acted(logits=[3.0, 0.0, 0.0]), raw(other_order))
    assert explanation.rules[0].score == "0.9094"


@pytest.mark.parametrize("by_class", [None, [-3.0, -9.0, -9.0]])
def test_out_of_scope(by_class):
    rule = {"format": 1, "score": "max_logit", "threshold": -3.0, "quantile": 0.95, "n": 1600}
    saved = record(BundlePoint(point(), "raw"), ood={**rule, "by_class": by_class})
    prediction = make_prediction(
        "3f0a", decision="out_of_scope", out_of_scope=True, logits=[2.5, 0.0, 0.0]
    )
    explanation = explain(prediction, saved)
    assert_mentions(
        explanation.sentences[0], "is -2.5", "above", "limit -3", "95 %", "1,600 rows", "not exceed"
    )
    assert len(explanation.sentences) == 1
    assert not explanation.rules[0].holds
    silent = explain(replace(prediction, decision=None), replace(saved, manifest={
        **saved.manifest, "operating_points": []}))  # fmt: skip
    assert [sentence[:10] for sentence in silent.sentences] == ["It is unli", "Its bundle"]


def test_a_row_that_the_model_cannot_judge():
    rule = {"format": 1, "score": "energy", "threshold": 9.0, "quantile": 0.95, "n": 1600}
    saved = record(BundlePoint(point(), "raw"), ood={**rule, "equal": True})
    prediction = make_prediction(
        "3f0a", decision="out_of_scope", out_of_scope=True, logits=[0.0, 0.0, 0.0]
    )
    (explanation,) = explain(prediction, saved).sentences
    assert explanation.startswith(
        "The model cannot judge it: its logits are the same for every class"
    )


@pytest.mark.parametrize(
    "manifest",
    [{}, {"operating_points": [{"format": 99}]}, {"operating_points": None},
     {"operating_points": [{}], "ood": None}],
)  # fmt: skip
def test_a_manifest_that_cannot_be_read(manifest):
    explanation = explain(
        acted(), BundleRecord("3f0a", "x", ["defect", "parts", "other"], manifest, START)
    )
    assert explanation.rules == ()
    assert_mentions(explanation.sentences[0], "cannot read", "operating points")


def test_numbers_differ_where_they_are_different():
    assert format_distinct(0.62661, 0.6266, above=True) == ("0.62661", "0.6266")
    assert format_distinct(0.75, 0.75, above=True) == ("0.75", "0.75")
    assert format_distinct(0.75, 0.7500000000000001, above=False) == ("0.75", "0.7500000000000001")


def test_explanations_agree_with_decisions(tmp_path):
    """The rule that is said to hold, for many rows, is the one that the bundle's decision has."""
    bundle = logits_bundle(tmp_path / "b")
    saved = BundleRecord(
        "3f0a", "b", [str(each) for each in bundle.classes], dict(bundle.manifest), START
    )
    logits = np.random.default_rng(0).normal(0, 3, (300, 3))
    decided = bundle.decide(logits=logits)
    seen = set()
    for own, row, acts in zip(logits.tolist(), decided.to_rows(), decided.acts, strict=True):
        prediction = make_prediction(
            "3f0a", logits=own, probs=list(row["probabilities"].values()), label=row["label"],
            decision=row["decision"], acted_as=row["acted_as"],
            operating_point=row["operating_point"],
        )  # fmt: skip
        explanation = explain(prediction, saved)
        assert [rule.holds for rule in explanation.rules] == acts.tolist()
        assert sum(rule.decided for rule in explanation.rules) == (row["decision"] == "act")
        seen.add(row["decision"])
    assert seen == {"act", "abstain"}


def test_the_place_of_the_threshold_is_told_where_the_calibrator_keeps_the_order():
    classes = ("no", "yes")
    chosen = BundlePoint(point("yes", 0.75, classes=classes), "raw")
    two = record(chosen, calibrator=temperature(0.5, classes).to_dict(), classes=classes)
    left = make_prediction("3f0a", logits=[0.0, 0.85], probs=[0.15, 0.85], label="yes")
    explanation = explain(left, two)
    # Log-odds of 3/4 are log 3; doubled, they are those of 9/10.
    assert_mentions(explanation.sentences[0], "model’s own", "was 0.7006, below", "0.75")
    assert_mentions(explanation.sentences[1], "decision score of 0.75", "calibrated", "of 0.9.")
    (rule,) = explanation.rules
    assert (rule.calibrated, rule.same_scale) == ("0.9", False)
    three = record(BundlePoint(point("defect", 0.75), "raw"), calibrator=temperature().to_dict())
    explanation = explain(make_prediction("3f0a", logits=[0.5, 0.0, 0.0]), three)
    assert len(explanation.sentences) == 1
    assert explanation.rules[0].calibrated == ""
