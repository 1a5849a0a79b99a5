"""Rates, targets and costs as data."""

import pytest
from tests.sentences import refuses

from calibrant.errors import InputError
from calibrant.thresholds import RATES, Cost, Target, parse_target, precision, recall
from calibrant.thresholds.proof.certify import as_share_claim
from calibrant.thresholds.rates import check_between_0_and_1, parse_hold


def test_a_comparison_makes_a_target():
    target = precision >= 0.85
    assert isinstance(target, Target)
    assert (target.rate, target.sense, target.value) == (precision, ">=", 0.85)
    assert (precision <= 0.85) != target
    assert str(target) == "precision>=0.85"
    assert target.words == "precision is at least 85 %"


@pytest.mark.parametrize("name", RATES)
@pytest.mark.parametrize("sense", [">=", "<="])
def test_a_target_survives_its_text(name, sense):
    target = Target(RATES[name], sense, 0.123456789)
    assert parse_target(f"some: class : {target}") == ("some: class", target)
    assert parse_target(str(target)) == (None, target)


@pytest.mark.parametrize("value", [0, 1, -0.2, 85, float("nan"), True, "0.85", None, 1j])
def test_a_target_outside_0_and_1_is_refused(value):
    with pytest.raises(InputError, match=r"0 and 1|number"):
        _ = precision >= value


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("precision", ("is not a target",)),
        ("precision>0.8", ("is not a target",)),
        ("exactness>=0.8", ("no rate 'exactness'",)),
        ("precision>=85%", ("is not a number",)),
        ("precision>=85", ("between 0 and 1",)),
        ("", ("is not a target",)),
    ],
)
def test_a_target_that_cannot_be_read_says_why(text, found):
    with refuses(InputError, *found):
        parse_target(text)


@pytest.mark.parametrize("name", RATES)
def test_at_most_is_at_least_of_the_opposite(name):
    rate = RATES[name]
    high, low = as_share_claim(rate >= 0.3), as_share_claim(rate <= 0.3)
    assert high.among == low.among == rate.condition
    assert {high.event, low.event} in ({"positive", "negative"}, {"act", "pass"})
    assert (high.least, low.least) == (0.3, 0.7)


def test_false_discovery_and_precision_say_the_same():
    assert as_share_claim(RATES["false_discovery"] <= 0.15) == as_share_claim(precision >= 0.85)
    assert as_share_claim(RATES["fpr"] <= 0.01) == as_share_claim(RATES["specificity"] >= 0.99)


def test_the_baseline_of_a_cost_by_hand():
    assert Cost(1, 9).baseline == pytest.approx(0.1)
    # Acting on a negative costs 3 more than passing, passing over a positive 5 more than acting.
    assert Cost(4, 7, true_positive=2, true_negative=1).baseline == pytest.approx(3 / 8)


@pytest.mark.parametrize("compare", [lambda: precision > 0.85, lambda: recall < 0.5])
def test_a_strict_comparison_says_what_to_write(compare):
    with pytest.raises(InputError, match="write"):
        compare()


@pytest.mark.parametrize(
    "costs",
    [(-1, 1), (1, float("inf")), (0, 1), (1, 0), (1, 1, 2), ("1", 5), (None, 5), (1, 1e300)],
)
def test_costs_that_make_no_sense_are_refused(costs):
    with pytest.raises(InputError, match="cost"):
        Cost(*costs)


@pytest.mark.parametrize("limit", [0, 5, 6, -1])
def test_a_limit_that_every_decision_or_none_stays_under_is_refused(limit):
    with pytest.raises(InputError, match="upper limit"):
        _ = Cost(1, 5) <= limit
    with pytest.raises(InputError, match="upper limit"):
        _ = Cost(1, 5) >= 0.3


def test_a_chain_of_comparisons_is_refused_instead_of_losing_its_first_half():
    with pytest.raises(InputError, match="two targets"):
        _ = 0.8 <= recall <= 0.9


def test_example_of_check_between_0_and_1():
    with refuses(InputError, "share must lie strictly between 0 and 1, got 5: 5 percent is 0.05."):
        check_between_0_and_1(5, "share", "5 percent is 0.05")


def test_a_hold_names_its_class_before_its_first_target():
    with refuses(InputError, "precision>=0.9 and defect: recall>=0.5", "defect: precision>=0.9"):
        parse_hold("precision>=0.9 and defect: recall>=0.5")
