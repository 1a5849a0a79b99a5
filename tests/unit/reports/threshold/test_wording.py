"""Examples of reports.threshold.wording."""

from calibrant.errors import TargetUnreachable
from calibrant.reports.threshold.wording import (
    aim_words,
    aims_of,
    measured_interval,
    rate_title,
    rate_value,
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
