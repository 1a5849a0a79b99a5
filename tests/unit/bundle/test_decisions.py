"""Decisions as arrays and as rows."""

import json
from dataclasses import replace

import numpy as np

from calibrant.bundle.decisions import RuleDecision, decide_rows, predict_columns

PROBS = np.array([[0.7, 0.3], [0.5, 0.5], [0.2, 0.8]])


def verdict(entry, acts, of, *, clears=False):
    scores = np.where(np.array(acts) != clears, 0.9, 0.1)
    return RuleDecision(entry, f"rule {entry}", np.array(acts), np.full(3, of), clears, scores, 0.5)


def test_rows_are_plain_json():
    found = decide_rows(("no", 1), PROBS, [verdict(0, [False, True, True], 1)],
                    actions=[None, "call"])  # fmt: skip
    assert json.loads(json.dumps(found.to_rows()))[2] == {
        "label": 1,
        "probabilities": {"no": 0.2, "1": 0.8},
        "decision": "act",
        "acted_as": 1,
        "action": "call",
        "operating_point": 0,
        "out_of_scope": False,
        "decision_rule": "rule 0",
        "decision_score": 0.9,
        "decision_threshold": 0.5,
    }
    assert found.to_rows()[0] == {
        "label": "no",
        "probabilities": {"no": 0.7, "1": 0.3},
        "decision": "abstain",
        "acted_as": None,
        "action": None,
        "operating_point": None,
        "out_of_scope": False,
        "decision_rule": "rule 0",
        "decision_score": 0.1,
        "decision_threshold": 0.5,
    }
    whole = json.loads(json.dumps(found.to_dict()))
    assert (whole["n"], whole["decisions"]) == (3, {"act": 2, "clear": 0, "abstain": 1})
    assert whole["classes"] == ["no", 1]
    assert len(found) == len(whole["rows"]) == 3
    assert found._repr_html_() == "<pre>3 rows: 2 act, 0 clear, 1 abstain.</pre>"


def test_the_most_probable_class_decides_and_on_a_tie_the_first_rule():
    both = [verdict(0, [True] * 3, 0), verdict(1, [True] * 3, 1)]
    found = decide_rows(("a", "b"), PROBS, both, actions=[None, None])
    assert found.operating_point.tolist() == [0, 0, 1]
    assert found.acted_as.tolist() == ["a", "a", "b"]
    assert found.rules == ("rule 0", "rule 1")
    assert found.acts.all()


def test_a_row_is_cleared_where_no_rule_acts():
    rules = [verdict(0, [True, True, False], -1, clears=True), verdict(1, [True, False, False], 1)]
    found = decide_rows(("a", "b"), PROBS, rules, actions=[None, "call"])
    assert found.decision.tolist() == ["act", "clear", "abstain"]
    assert found.operating_point.tolist() == [1, 0, -1]
    assert found.action.tolist() == ["call", None, None]


def test_labels_have_the_type_of_the_classes():
    found = decide_rows((0, 1), PROBS, [verdict(0, [True] * 3, 1)], actions=[None] * 2)
    assert found.label.dtype.kind == "i"
    assert found.label.tolist() == [0, 0, 1]


def test_a_row_out_of_scope_is_withheld_from_every_rule():
    rules = [verdict(0, [True, True, False], -1, clears=True), verdict(1, [True, False, True], 1)]
    found = decide_rows(("a", "b"), PROBS, rules, actions=[None, "call"],
                    out_of_scope=np.array([True, True, False]))  # fmt: skip
    assert found.decision.tolist() == ["abstain", "abstain", "act"]
    assert found.operating_point.tolist() == [-1, -1, 1]
    assert found.acted_as.tolist() == [None, None, "b"]
    assert found.acts.tolist() == [[False, False], [False, False], [False, True]]
    assert [row["out_of_scope"] for row in found.to_rows()] == [True, True, False]
    assert str(found) == "3 rows: 1 act, 0 clear, 2 abstain (2 out of scope)."


def test_without_a_rule_nothing_is_out_of_scope():
    found = decide_rows(("a", "b"), PROBS, [verdict(0, [True] * 3, 1)], actions=[None] * 2)
    assert not found.out_of_scope.any()
    assert not found.scope_checked
    checked = decide_rows(("a", "b"), PROBS, [verdict(0, [True] * 3, 1)], actions=[None] * 2,
                      out_of_scope=np.zeros(3, dtype=bool))  # fmt: skip
    assert str(checked) == "3 rows: 3 act, 0 clear, 0 abstain (0 out of scope)."


def test_example_of_predict_columns():
    assert predict_columns(["no", "yes"], decides=False, stored=False) == [
        "predicted",
        "prob_no",
        "prob_yes",
        "out_of_scope",
    ]


def test_the_score_shown_is_that_of_the_rule_that_decided():
    rules = [verdict(0, [False, True, True], 0), verdict(1, [True, False, True], 1)]
    found = decide_rows(("a", "b"), PROBS, rules, actions=[None] * 2)
    # Of two that act, the more probable class; of one that acts, that one.
    assert found.rule.tolist() == [1, 0, 1]
    assert found.decision_score.tolist() == [0.9, 0.9, 0.9]
    assert found.decision_rule.tolist() == ["rule 1", "rule 0", "rule 1"]


def test_of_a_row_left_to_a_person_it_is_that_of_the_most_probable_class():
    rules = [verdict(0, [False] * 3, 0), verdict(1, [False] * 3, 1)]
    found = decide_rows(("a", "b"), PROBS, rules, actions=[None] * 2)
    assert found.rule.tolist() == [0, 0, 1]
    assert (found.decision_score < found.decision_threshold).all()


def test_a_cleared_row_shows_the_rule_that_cleared_it():
    rules = [verdict(0, [True, False, True], 1), verdict(0, [True, True, False], -1, clears=True)]
    found = decide_rows(("a", "b"), PROBS, rules, actions=[None] * 2)
    assert found.rule.tolist() == [0, 1, 0]
    assert found.scores.shape == (3, 2)


def test_no_rule_was_applied_to_a_row_out_of_scope():
    found = decide_rows(("a", "b"), PROBS, [verdict(0, [True] * 3, 1)], actions=[None] * 2,
                        out_of_scope=np.array([True, False, False]))  # fmt: skip
    assert found.rule.tolist() == [-1, 0, 0]
    assert np.isnan(found.decision_score[0])
    first = found.to_rows()[0]
    assert [first[name] for name in ("decision_rule", "decision_score")] == [None, None]
    assert first["decision_threshold"] is None


def test_an_infinite_threshold_is_null_in_json():
    rule = replace(verdict(0, [False] * 3, 1), threshold=float("inf"))
    found = decide_rows(("a", "b"), PROBS, [rule], actions=[None] * 2)
    assert found.to_rows()[0]["decision_threshold"] is None
