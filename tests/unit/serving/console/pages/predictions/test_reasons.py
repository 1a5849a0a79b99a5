"""Why a prediction was decided: the rule that did, and those that did not."""

from dataclasses import replace

import numpy as np
import pytest
from tests.unit.bundle.parts import band, point, points_of, without_promise
from tests.unit.serving.bundles import logits_bundle
from tests.unit.serving.console.predictions_log import START, made

from calibrant.bundle import BundlePoint
from calibrant.serving.console.pages.predictions.reasons import apart, why
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
    return made("3f0a", decision="act", acted_as="defect", operating_point=place, **changes)


def test_the_rule_that_acted():
    told = why(acted(logits=[3.0, 0.0, 0.0]), raw(point("defect", 0.75)))
    prob = np.exp(3) / (np.exp(3) + 2)
    assert told.sentences == (
        f"Probability of defect was {prob:.4g}, at or above the threshold 0.75 of operating "
        "point 0, so it was acted on.",
    )
    (rule,) = told.rules
    assert rule.decided
    assert rule.holds
    assert rule.promise == "Precision is at least 85 % for class 'defect', with 95 % confidence."


def test_a_threshold_that_was_not_reached():
    told = why(made("3f0a", logits=[0.5, 0.0, 0.0]), raw(point("defect", 0.75)))
    assert told.sentences[0].startswith("Probability of defect was 0.4519, below the ")
    assert told.sentences[0].endswith("threshold 0.75, so it was left to a person.")
    assert not told.rules[0].holds


def test_calibrated_points_look_at_calibrated_probabilities():
    saved = record(BundlePoint(point("defect", 0.75), "calibrated"), calibrator={"method": "x"})
    told = why(acted(logits=[0.0, 0.0, 0.0], probs=[0.8, 0.1, 0.1]), saved)
    assert told.sentences[0].startswith("Calibrated probability of defect was 0.8, at or above")
    both = record(BundlePoint(point("defect", 0.75), "raw"), calibrator={"method": "x"})
    own = why(acted(logits=[3.0, 0.0, 0.0], probs=[0.8, 0.1, 0.1]), both)
    assert own.sentences[0].startswith("The model’s own, uncalibrated probability of defect was 0.")


def test_of_several_rules_the_one_that_decided_is_told():
    saved = raw(point("parts", 0.2), point("defect", 0.5), point("defect", 0.1))
    told = why(acted(1, logits=[2.0, 1.0, 0.0]), saved)
    assert [(rule.point, rule.decided, rule.holds) for rule in told.rules] == [
        (0, False, True), (1, True, True)
    ]  # fmt: skip
    assert told.sentences[1].startswith("Several rules are for acting")
    nobody = why(made("3f0a", logits=[0.0, -5.0, 0.0]), saved)
    assert nobody.sentences == ("No rule is for acting on it, so it was left to a person.",)
    asked = why(acted(2, logits=[0.0, 0.0, 0.0], asked_point=2), saved)
    assert [rule.point for rule in asked.rules] == [2]
    assert asked.sentences[-1] == "The request asked for operating point 2."


def test_points_of_several_classes_are_rules_of_one_point():
    saved = record(BundlePoint(points_of(point("parts", 0.3), point("defect", 0.3)), "raw"))
    told = why(acted(logits=[3.0, 0.0, 0.0]), saved)
    assert [(rule.of, rule.decided) for rule in told.rules] == [("parts", False), ("defect", True)]


def test_any_class():
    told = why(acted(logits=[3.0, 0.0, 0.0]), raw(point(None, 0.6)))
    assert told.rules[0].does == "accept predictions of any class"
    assert told.sentences[0].startswith("Probability of the predicted class was 0.9094")


@pytest.mark.parametrize(
    ("logit", "decision", "said"),
    [(3.0, "act", "so it was acted on."), (-3.0, "clear", "so it was cleared."),
     (0.0, "abstain", "so it was left to a person.")],
)  # fmt: skip
def test_a_band(logit, decision, said):
    saved = record(BundlePoint(band(), "raw"), classes=("no", "yes"))
    decided = {"act": ("yes", 0), "clear": (None, 0), "abstain": (None, None)}[decision]
    found = made(
        "3f0a", logits=[0.0, logit], probs=[0.5, 0.5], label="yes", decision=decision,
        acted_as=decided[0], operating_point=decided[1],
    )  # fmt: skip
    told = why(found, saved)
    assert told.sentences[0].endswith(said)
    upper, lower = told.rules
    assert (upper.decided, lower.decided) == (decision == "act", decision == "clear")
    assert (upper.holds, lower.holds) == (decision == "act", decision == "clear")
    assert lower.does == "clear of yes"
    assert upper.promise == lower.promise
    assert upper.promise.startswith("Above the band precision is at least 85 %, and below it")


def test_no_promise_is_said():
    told = why(acted(logits=[3.0, 0.0, 0.0]), raw(without_promise()))
    assert told.rules[0].promise.startswith("No promise: the model was trained on these very rows")


def test_thresholds_that_only_log_odds_can_tell():
    near_one = point("defect", 1 - 1e-16, logit=40.0, both_kinds=False)
    told = why(acted(logits=[41.0, 0.0, -99.0]), raw(near_one))
    assert told.sentences[0].startswith("Log-odds of defect were 41, at or above the")


def test_columns_in_another_order():
    other_order = point("defect", 0.75, classes=("other", "parts", "defect"))
    told = why(acted(logits=[3.0, 0.0, 0.0]), raw(other_order))
    assert told.rules[0].score == "0.9094"


@pytest.mark.parametrize("by_class", [None, [-3.0, -9.0, -9.0]])
def test_out_of_scope(by_class):
    rule = {"format": 1, "score": "max_logit", "threshold": -3.0, "quantile": 0.95, "n": 1600}
    saved = record(BundlePoint(point(), "raw"), ood={**rule, "by_class": by_class})
    found = made("3f0a", decision="out_of_scope", out_of_scope=True, logits=[2.5, 0.0, 0.0])
    told = why(found, saved)
    assert "is -2.5, above -3, which 95 % of 1,600 known rows stay below" in told.sentences[0]
    assert len(told.sentences) == 1
    assert not told.rules[0].holds
    silent = why(replace(found, decision=None), replace(saved, manifest={
        **saved.manifest, "operating_points": []}))  # fmt: skip
    assert [said[:10] for said in silent.sentences] == ["It is unli", "Its bundle"]


def test_a_row_that_the_model_cannot_judge():
    rule = {"format": 1, "score": "energy", "threshold": 9.0, "quantile": 0.95, "n": 1600}
    saved = record(BundlePoint(point(), "raw"), ood={**rule, "equal": True})
    found = made("3f0a", decision="out_of_scope", out_of_scope=True, logits=[0.0, 0.0, 0.0])
    (told,) = why(found, saved).sentences
    assert told.startswith("The model cannot judge it: it has the same logit for every class")


@pytest.mark.parametrize(
    "manifest",
    [{}, {"operating_points": [{"format": 99}]}, {"operating_points": None},
     {"operating_points": [{}], "ood": None}],
)  # fmt: skip
def test_a_manifest_that_cannot_be_read(manifest):
    told = why(acted(), BundleRecord("3f0a", "x", ["defect", "parts", "other"], manifest, START))
    assert told.rules == ()
    assert "cannot be read by this version" in told.sentences[0]


def test_numbers_differ_where_they_are_different():
    assert apart(0.62661, 0.6266, above=True) == ("0.62661", "0.6266")
    assert apart(0.75, 0.75, above=True) == ("0.75", "0.75")
    assert apart(0.75, 0.7500000000000001, above=False) == ("0.75", "0.7500000000000001")


def test_it_agrees_with_what_bundles_decide(tmp_path):
    """The rule that is said to hold, for many rows, is the one that the bundle's decision has."""
    bundle = logits_bundle(tmp_path / "b")
    saved = BundleRecord(
        "3f0a", "b", [str(each) for each in bundle.classes], dict(bundle.manifest), START
    )
    logits = np.random.default_rng(0).normal(0, 3, (300, 3))
    decided = bundle.decide(logits=logits)
    seen = set()
    for own, row, acts in zip(logits.tolist(), decided.to_rows(), decided.acts, strict=True):
        found = made(
            "3f0a", logits=own, probs=list(row["probabilities"].values()), label=row["label"],
            decision=row["decision"], acted_as=row["acted_as"],
            operating_point=row["operating_point"],
        )  # fmt: skip
        told = why(found, saved)
        assert [rule.holds for rule in told.rules] == acts.tolist()
        assert sum(rule.decided for rule in told.rules) == (row["decision"] == "act")
        seen.add(row["decision"])
    assert seen == {"act", "abstain"}
