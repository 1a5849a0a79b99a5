"""Rows out of scope: flagged on the model's own logits, and refused where those are not there."""

import numpy as np
import pytest
from tests.sentences import assert_mentions, refuses
from tests.unit.bundle.parts import band, point, rows, temperature

from calibrant.bundle import BundlePoint, load_bundle, pack
from calibrant.bundle.scope import flag_rows
from calibrant.bundle.scores import ModelScores
from calibrant.convert import probs_from_logits
from calibrant.errors import InputError
from calibrant.ood import OodRule


@pytest.fixture
def made(tmp_path):
    def make(score, threshold, *points, **parts):
        rule = OodRule(score, threshold, 0.95, 100)
        return pack(tmp_path / "made", points=points or [point()], ood=rule, force=True, **parts)

    return make


def test_rows_out_of_scope_are_left_to_a_person_by_hand(made):
    """The largest logits are 5, 1 and 5; the rule lets through those of at least 2."""
    bundle = made("max_logit", -2.0)
    logits = [[5.0, 0.0, 0.0], [1.0, -9.0, -9.0], [0.0, 5.0, 0.0]]
    found = bundle.decide(logits)
    assert found.out_of_scope.tolist() == [False, True, False]
    assert found.decision.tolist() == ["act", "abstain", "abstain"]
    assert found.acts.tolist() == [[True], [False], [False]]
    assert found.operating_point.tolist() == [0, -1, -1]
    assert found.probabilities == pytest.approx(probs_from_logits(np.array(logits)))


@pytest.mark.parametrize("score", ["energy", "max_logit", "entropy"])
def test_it_flags_what_the_rule_flags_and_nothing_else_changes(made, score):
    logits = rows()
    rule = OodRule.fit(logits, score=score, quantile=0.8)
    bundle = made(score, rule.threshold, BundlePoint(point(), "calibrated"),
                  calibrator=temperature())  # fmt: skip
    free = pack(bundle.path.parent / "free", calibrator=temperature(),
                points=[BundlePoint(point(), "calibrated")])  # fmt: skip
    found, without = bundle.decide(logits), free.decide(logits)
    outside = rule.flags(logits)
    assert 10 < outside.sum() < 60
    assert (found.out_of_scope == outside).all()
    assert (found.decision[outside] == "abstain").all()
    assert (found.decision[~outside] == without.decision[~outside]).all()
    assert (found.acts == without.acts & ~outside[:, None]).all()
    assert (found.probabilities == without.probabilities).all()
    assert (load_bundle(bundle.path).decide(logits).out_of_scope == outside).all()


def test_what_is_out_of_scope_is_not_cleared_either(made):
    bundle = made("entropy", 0.3, band())
    found = bundle.decide(probs=[0.01, 0.15, 0.99])
    assert found.out_of_scope.tolist() == [False, True, False]
    assert found.decision.tolist() == ["clear", "abstain", "act"]


def test_entropy_can_be_told_from_probabilities(made):
    bundle, logits = made("entropy", 0.5), rows()
    from_probs = bundle.decide(probs=probs_from_logits(logits)).out_of_scope
    assert (from_probs == bundle.decide(logits).out_of_scope).all()
    assert bundle.decide(probs=[[1.0, 0.0, 0.0]]).out_of_scope.tolist() == [False]


@pytest.mark.parametrize("score", ["energy", "max_logit"])
def test_other_scores_cannot(made, score):
    with refuses(InputError, "probs", "give logits"):
        made(score, -2.0).decide(probs=[[0.5, 0.25, 0.25]])
    assert made(score, -2.0).predict_proba(probs=[[0.5, 0.25, 0.25]]).shape == (1, 3)


def test_the_bundle_and_the_card_tell_the_rule(made):
    bundle = made("energy", -2.5)
    assert_mentions(bundle, "out of scope", "energy above -2.5", "95 % quantile", "100 rows")
    card = (bundle.path / "card.md").read_text(encoding="utf-8")
    assert_mentions(card, "out of scope", "energy", "above -2.5")
    assert_mentions(card, "`out_of_scope` true")


def test_example_of_flag_rows():
    from calibrant.ood import OodRule

    rule = OodRule("max_logit", -3.0, 0.95, 100)
    assert (
        repr(
            flag_rows(
                rule, ModelScores("logits", np.array([[2.0, 0.0], [4.0, 0.0]])), with_model=True
            )
        )
        == "array([ True, False])"
    )
