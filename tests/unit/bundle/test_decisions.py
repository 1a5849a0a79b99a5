"""Decisions as arrays and as rows."""

import json

import numpy as np

from calibrant.bundle.decisions import RuleDecision, decide_rows, predict_columns

PROBS = np.array([[0.7, 0.3], [0.5, 0.5], [0.2, 0.8]])


def verdict(entry, acts, of, *, clears=False):
    return RuleDecision(entry, f"rule {entry}", np.array(acts), np.full(3, of), clears)


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
    }
    assert found.to_rows()[0] == {
        "label": "no",
        "probabilities": {"no": 0.7, "1": 0.3},
        "decision": "abstain",
        "acted_as": None,
        "action": None,
        "operating_point": None,
        "out_of_scope": False,
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
