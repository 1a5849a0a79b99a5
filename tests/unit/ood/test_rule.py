import json

import numpy as np
import pytest
from tests.sentences import refuses

from calibrant.errors import InputError
from calibrant.ood import SCORES, OodRule
from calibrant.ood.rule import upper_quantile

RNG = np.random.default_rng(0)
LOGITS = RNG.normal(scale=3.0, size=(400, 4))
RULE = OodRule.fit(LOGITS)


def test_the_threshold_of_twenty_rows_leaves_one_above():
    logits = np.column_stack([-np.arange(1.0, 21.0), np.full(20, -99.0)])  # scores 1 to 20
    rule = OodRule.fit(logits, score="max_logit", quantile=0.95)
    assert rule == OodRule("max_logit", 19.0, 0.95, 20)
    assert rule.flags(logits).tolist() == [False] * 19 + [True]


def test_the_quantile_agrees_with_numpy_away_from_its_steps(subtests):
    for n in [1, 2, 19, 20, 21, 39, 40, 137]:
        for quantile in [0.5, 0.9, 0.95, 0.99]:
            with subtests.test(f"{quantile} of {n}"):
                scores = RNG.normal(size=n)
                place = quantile * n
                if abs(place - round(place)) > 1e-6:  # at a step, rounding decides numpy's
                    assert upper_quantile(scores, quantile) == np.quantile(
                        scores, quantile, method="inverted_cdf"
                    )


def test_at_most_the_asked_share_is_above_and_no_lower_threshold_would_do(subtests):
    for n in [1, 3, 10, 20, 60, 100, 1000]:
        for quantile in [0.7, 0.9, 0.95, 0.99]:
            for ties in [False, True]:
                with subtests.test(f"{quantile} of {n}, ties {ties}"):
                    scores = RNG.integers(0, 7, n).astype(float) if ties else RNG.normal(size=n)
                    found, allowed = upper_quantile(scores, quantile), round((1 - quantile) * n, 9)
                    assert np.count_nonzero(scores > found) <= allowed
                    lower = scores[scores < found]
                    if len(lower):
                        assert np.count_nonzero(scores > lower.max()) > allowed


def test_new_rows_are_flagged_at_the_rate_that_order_statistics_give():
    # Of n = 39 rows, 1 lies above the threshold: (1 + 1) / (39 + 1) = 5 % of new rows on average.
    rng, rates = np.random.default_rng(1), []
    for _ in range(3000):
        found = upper_quantile(rng.random(39), 0.95)
        rates.append(1.0 - found)  # the share of uniform scores above it
    assert np.mean(rates) == pytest.approx(2 / 40, abs=4 * np.std(rates) / np.sqrt(3000))


@pytest.mark.parametrize("score", [name for name in SCORES if name != "unreadable"])
def test_a_rule_flags_what_its_score_puts_above_the_threshold(score):
    rule = OodRule.fit(LOGITS, score=score, quantile=0.9)
    assert rule.n == 400
    assert np.count_nonzero(rule.flags(LOGITS)) == 40
    assert rule.flags(LOGITS).tolist() == (SCORES[score](LOGITS) > rule.threshold).tolist()
    assert rule.flags(np.full((1, 4), -9.0)).all()  # no evidence for any class


def test_the_order_of_the_fitted_rows_does_not_matter():
    assert OodRule.fit(LOGITS[::-1]) == RULE


def test_rows_that_all_tie_are_not_flagged():
    assert not OodRule.fit(np.zeros((5, 3))).flags(np.zeros((9, 3))).any()


def test_a_rule_survives_json():
    saved = json.loads(json.dumps(RULE.to_dict()))
    assert saved == {
        "format": 1, "score": "energy", "threshold": RULE.threshold, "quantile": 0.95, "n": 400,
        "by_class": None, "equal": False,
    }  # fmt: skip
    assert OodRule.from_dict(saved) == RULE
    assert OodRule.from_dict({**saved, "added_later": 1}) == RULE


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"format": 2}, ("format 2", "version reads 1", "upgrade calibrant")),
        ({"format": True}, ("has format True",)),
        ({"score": "mystery"}, ("damaged", "score", "energy", "entropy", "max_logit")),
        ({"score": ["energy"]}, ("damaged: score",)),
        ({"threshold": None}, ("damaged", "threshold", "finite number", "got None")),
        ({"threshold": float("nan")}, ("damaged", "threshold", "finite number")),
        ({"threshold": True}, ("damaged", "threshold", "finite number")),
        ({"quantile": 95}, ("damaged", "quantile", "between", "0 and 1", "got 95")),
        ({"quantile": "0.95"}, ("damaged: quantile",)),
        ({"n": 0}, ("damaged: n", "whole number", "at least 1", "got 0")),
        ({"n": 1.5}, ("damaged: n", "whole number")),
    ],
)
def test_damaged_rules_are_refused(change, words):
    with refuses(InputError, *words) as caught:
        OodRule.from_dict({**RULE.to_dict(), **change})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("lost", ["format", "score", "threshold", "quantile", "n"])
def test_rules_that_lack_a_key_are_refused(lost):
    saved = {key: value for key, value in RULE.to_dict().items() if key != lost}
    with pytest.raises(
        InputError, match="'format' is missing" if lost == "format" else f"{lost} is missing"
    ):
        OodRule.from_dict(saved)


@pytest.mark.parametrize("saved", [None, [], "rule", 1])
def test_what_is_no_object_is_no_rule(saved):
    with refuses(InputError, "not a saved out-of-scope", "rule"):
        OodRule.from_dict(saved)


@pytest.mark.parametrize("quantile", [0, 1, 1.5, -0.1, np.nan, "high", None, True])
def test_a_quantile_outside_0_and_1_is_refused(quantile):
    with refuses(InputError, "quantile", "between", "0 and 1"):
        OodRule.fit(LOGITS, quantile=quantile)


def test_an_unknown_score_is_refused():
    with refuses(InputError, "score", "energy", "entropy", "max_logit", "got 'x'"):
        OodRule.fit(LOGITS, score="x")
    with pytest.raises(InputError, match="logits is empty"):
        OodRule.fit(np.zeros((0, 3)))


def test_a_rule_is_shown_in_one_line():
    assert str(OodRule("energy", -2.5, 0.95, 1234)) == (
        "out of scope: energy above -2.5, the 95 % quantile of 1,234 rows."
    )
    assert "<pre>out of scope" in RULE._repr_html_()


def test_each_predicted_class_keeps_its_share():
    # A rare class of whose rows the network is never sure: one threshold would stop most of them.
    rng = np.random.default_rng(3)
    common = np.column_stack([rng.normal(8, 1, 1900), np.zeros(1900)])
    rare = np.column_stack([np.zeros(100), rng.normal(2, 0.5, 100)])
    logits = np.concatenate([common, rare])
    one = OodRule.fit(logits, score="max_logit")
    each = OodRule.fit(logits, score="max_logit", by_class=True)
    assert one.flags(rare).mean() == 1.0
    assert (each.flags(common).sum(), each.flags(rare).sum()) == (95, 5)
    assert each.threshold == one.threshold


def test_a_class_that_is_hardly_predicted_is_let_through():
    logits = np.concatenate([np.tile([5.0, 0.0, 0.0], (95, 1)), np.tile([0.0, 1.0, 0.0], (19, 1))])
    rule = OodRule.fit(logits, score="max_logit", by_class=True)
    assert not rule.flags(logits).any()
    assert rule.by_class == (-5.0, -1.0, -1.0)


def test_with_one_class_predicted_the_thresholds_are_one():
    logits = np.column_stack([RNG.normal(5, 1, 200), np.full(200, -50.0)])
    rule = OodRule.fit(logits, by_class=True)
    assert rule.by_class[0] == rule.threshold == OodRule.fit(logits).threshold


def test_thresholds_by_class_survive_json_and_refuse_other_classes():
    rule = OodRule.fit(LOGITS, by_class=True)
    assert OodRule.from_dict(json.loads(json.dumps(rule.to_dict()))) == rule
    assert "by the predicted class" in str(rule)
    with refuses(InputError, "4 classes", "logits have 3"):
        rule.flags(LOGITS[:, :3])
    with pytest.raises(InputError, match="damaged"):
        OodRule.from_dict({**rule.to_dict(), "by_class": [1.0, None]})
    with pytest.raises(InputError, match="damaged"):
        OodRule.from_dict({**rule.to_dict(), "by_class": 7})


def test_log_odds_have_two_classes():
    odds = RNG.normal(0, 3, 300)
    rule = OodRule.fit(odds, by_class=True)
    assert len(rule.by_class) == 2
    assert rule.flags(odds).mean() <= 0.05


def test_equal_logits_are_flagged_where_the_rule_says_so_whatever_they_score():
    rule = OodRule("energy", 99.0, 0.95, 100, equal=True)
    logits = [[0.0, 0.0, 0.0], [-4.0, -4.0, -4.0], [0.0, 0.0, 1e-9]]
    assert rule.flags(logits).tolist() == [True, True, False]
    assert rule.cannot_judge(logits).tolist() == [True, True, False]
    assert rule.flags([0.0, 1.0]).tolist() == [True, False]  # log-odds of two classes
    plain = OodRule("energy", 99.0, 0.95, 100)
    assert not plain.flags(logits).any()
    assert OodRule.from_dict(json.loads(json.dumps(rule.to_dict()))) == rule
    older = {key: value for key, value in rule.to_dict().items() if key != "equal"}
    assert OodRule.from_dict(older) == plain
    assert "or all logits equal" in str(rule)


def test_equal_must_be_a_truth_value():
    with refuses(InputError, "equal", "True", "False", "got 'yes'"):
        OodRule("energy", 1.0, 0.95, 10, equal="yes")
