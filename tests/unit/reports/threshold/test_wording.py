"""Examples of reports.threshold.wording."""

from calibrant.errors import TargetUnreachable
from calibrant.reports.threshold.wording import (
    aim_words,
    aims_of,
    decision_score_words,
    measured_interval,
    rate_title,
    rate_value,
    same_place_words,
    score_source,
)


def test_example_of_rate_title():
    assert (rate_title("fpr"), rate_title("coverage", None)) == (
        "False positive rate",
        "Share accepted",
    )


def test_example_of_rate_value():
    assert (rate_value("precision", 0.8812), rate_value("cost", 0.0431)) == ("88.1 %", "0.0431")


def test_example_of_measured_interval():
    from calibrant.thresholds import coverage, precision, select

    labels, probs = [0] * 50 + [1] * 50, [i / 99 for i in range(100)]
    point = select(labels, probs, hold=precision >= 0.2, maximise=coverage)
    assert (measured_interval(point, "recall"), measured_interval(point, "precision")) == (
        "by definition",
        "39.8 % to 60.2 %",
    )


def test_example_of_aims_of():
    assert aims_of(TargetUnreachable(hold="precision>=0.85", n=40, positives=9)) == [
        ("precision", ">=", 0.85)
    ]


def test_example_of_aim_words():
    assert aim_words(("fpr", "<=", 0.01)) == "the false positive rate is at most 1 %"


def test_a_threshold_on_the_decision_score_and_its_calibrated_place():
    assert decision_score_words(0.465) == "a decision score of 0.465"
    both = decision_score_words(0.465, calibrated=0.71042)
    assert both == "a decision score of 0.465 (calibrated probability 0.7104)"
    assert same_place_words("0.465", 0.71042).endswith("is a calibrated probability of 0.7104.")
    assert score_source("defect") == "the probability of class “defect”"
    of_any = score_source(None, source="calibrated")
    assert of_any == "the calibrated probability of the predicted class"
