"""Rates of an operating point at another share of positives."""

import json

import numpy as np
import pytest
from scipy.stats import binomtest
from tests.sentences import assert_mentions, refuses

from calibrant.errors import InputError
from calibrant.results import Interval
from calibrant.stats import clopper_pearson
from calibrant.thresholds import (
    RATES,
    Cost,
    OperatingPoint,
    RateValue,
    accuracy,
    coverage,
    npv,
    precision,
    recall,
    select,
)
from calibrant.thresholds.after.forecast import forecast


def rate(hits, n):
    return RateValue(hits / n, clopper_pearson(hits, n), n)


def a_point(*hold, found=80, positives=100, false=10, others=100, of=1, classes=(0, 1), **more):
    """A point with recall 0.8 and false positive rate 0.1."""
    rates = {
        "recall": rate(found, positives),
        "fpr": rate(false, others),
        "coverage": rate(found + false, positives + others),
    }
    more.setdefault("cost", next((t.rate for t in hold if isinstance(t.rate, Cost)), None))
    return OperatingPoint(
        threshold=0.5, logit=0.0, on="probs", of=of, classes=classes, hold=hold,
        objective="maximise recall", confidence=0.95, guarantee=None, why=None,
        rates=more.pop("rates", rates), n=positives + others, positives=positives, method="",
        **more,
    )  # fmt: skip


def test_by_hand():
    # Of 1,000 rows 200 are positive: 160 found, and 80 of the other 800 acted on.
    cost = Cost(false_positive=1, false_negative=5, true_positive=0.5, true_negative=0.25)
    there = forecast(a_point(cost <= 0.9), 0.2)
    assert there["precision"].value == pytest.approx(160 / 240)
    assert there["false_discovery"].value == pytest.approx(80 / 240)
    assert there["npv"].value == pytest.approx(720 / 760)
    assert there["coverage"].value == pytest.approx(240 / 1000)
    assert there["abstention"].value == pytest.approx(760 / 1000)
    assert there["recall"].value == pytest.approx(0.8)
    assert there["specificity"].value == pytest.approx(0.9)
    expected = (80 * 1 + 40 * 5 + 160 * 0.5 + 720 * 0.25) / 1000
    assert there["cost"].value == pytest.approx(expected)
    assert there.was == 0.5


def test_the_smallest_share_of_positives_by_hand():
    # 0.8 b / (0.8 b + 0.1 (1 - b)) = 0.8 where b / (1 - b) = 4 * 0.1 / 0.8 = 1/2, so b = 1/3.
    there = forecast(a_point(precision >= 0.8), 0.2)
    assert there.limits["precision>=0.8"] == (pytest.approx(1 / 3), 1.0)
    # 0.9 (1 - b) / (0.9 (1 - b) + 0.2 b) = 0.9 where b / (1 - b) = 0.9 / 0.2 / 9, so b = 1/3.
    assert forecast(a_point(npv >= 0.9), 0.2).limits["npv>=0.9"] == (0.0, pytest.approx(1 / 3))
    # 0.8 b + 0.1 (1 - b) <= 0.45 up to b = 1/2.
    assert forecast(a_point(coverage <= 0.45), 0.2).limits["coverage<=0.45"] == (
        0.0, pytest.approx(0.5),
    )  # fmt: skip
    held = forecast(a_point(recall >= 0.7, recall <= 0.75), 0.2).limits
    assert held == {"recall>=0.7": (0.0, 1.0), "recall<=0.75": None}


@pytest.mark.parametrize("target", [precision >= 0.8, npv >= 0.9, coverage <= 0.45])
def test_at_the_limit_the_target_is_just_met(target):
    point = a_point(target)
    low, high = forecast(point, 0.2).limits[str(target)]
    name = target.rate.name
    for edge, inwards in ((low, 1e-3), (high, -1e-3)):
        if not 0 < edge < 1:
            continue
        assert forecast(point, edge)[name].value == pytest.approx(target.value)
        assert target.met_by(forecast(point, edge + inwards)[name].value)
        assert not target.met_by(forecast(point, edge - inwards)[name].value)


def test_intervals_come_from_exact_ones_at_half_of_the_error():
    there = forecast(a_point(precision >= 0.8), 0.2)
    r = binomtest(80, 100).proportion_ci(0.975)
    f = binomtest(10, 100).proportion_ci(0.975)
    worst = 0.2 * r.low / (0.2 * r.low + 0.8 * f.high)
    best = 0.2 * r.high / (0.2 * r.high + 0.8 * f.low)
    span = there["precision"].interval
    assert (span.low, span.high) == (pytest.approx(worst), pytest.approx(best))
    odds = 4 * f.high / r.low
    assert there.safe["precision>=0.8"][0] == pytest.approx(odds / (1 + odds))
    cost = forecast(a_point(Cost(1, 5) <= 0.9), 0.2)["cost"].interval
    assert cost.low == pytest.approx(0.8 * f.low + 0.2 * 5 * (1 - r.high))
    assert cost.high == pytest.approx(0.8 * f.high + 0.2 * 5 * (1 - r.low))


def test_nothing_changes_where_the_share_stays():
    rng = np.random.default_rng(0)
    labels = (rng.random(2000) < 0.3).astype(int)
    probs = 1 / (1 + np.exp(-rng.normal(labels * 3.0 - 1.5, 1.0)))
    point = select(labels, probs, hold=precision >= 0.8)
    there = forecast(point, point.positives / point.n)
    for name in RATES:
        if name != "accuracy":
            assert there[name].value == pytest.approx(point[name].value)


def test_a_world_whose_share_moves():
    """Rows drawn with the same scores given the label, and fewer positives."""
    rng = np.random.default_rng(1)

    def world(n, share):
        labels = (rng.random(n) < share).astype(int)
        return labels, 1 / (1 + np.exp(-rng.normal(labels * 3.0 - 1.5, 1.0)))

    covered = []
    for _ in range(60):
        labels, probs = world(2000, 0.3)
        point = select(labels, probs, hold=precision >= 0.8)
        span = forecast(point, 0.05)["precision"].interval
        later, scores = world(200_000, 0.05)
        true = later[point.act(scores)].mean()
        covered.append(span.low <= true <= span.high)
    assert np.mean(covered) >= 0.9


def test_the_sentence_says_what_is_assumed():
    there = forecast(a_point(precision >= 0.8), 0.2)
    assert there.text.startswith(
        "With 20 % positives instead of 50 %, if the score distributions of positive"
    )
    assert_mentions(there.text, "precision>=0.8", "met from 33.3 % upwards")
    assert str(there) == there.text
    assert "precision becomes 0.6667" in there._repr_html_().replace("&gt;", ">")
    several = forecast(a_point(classes=("a", "b", "c"), of="b"), 0.2)
    assert_mentions(several.text, "same mix", "other classes")
    assert "precision becomes 0.6667" in several.text
    saved = json.loads(json.dumps(there.to_dict()))
    assert saved["limits"]["precision>=0.8"] == [pytest.approx(1 / 3), 1.0]
    assert saved["rates"]["npv"]["value"] == pytest.approx(720 / 760)


def test_a_target_that_no_share_meets_for_certain():
    there = forecast(a_point(recall >= 0.79), 0.2)
    assert there.limits["recall>=0.79"] == (0.0, 1.0)
    assert there.safe["recall>=0.79"] is None
    assert "certain at none" in there.text
    assert "not met at any share" in forecast(a_point(recall >= 0.9), 0.2).text


def test_weights_use_the_intervals_that_are_there():
    rates = {
        "recall": RateValue(0.8, Interval(0.7, 0.9, 0.95), 55.5),
        "fpr": RateValue(0.1, Interval(0.05, 0.15, 0.95), 44.4),
        "coverage": RateValue(0.31, None, 99.9),
    }
    there = forecast(a_point(precision >= 0.8, weighted=True, rates=rates), 0.2)
    assert there.confidence == pytest.approx(0.9)
    assert there.was == pytest.approx(0.3)  # 0.3 * 0.8 + 0.7 * 0.1 = 0.31
    assert there["precision"].interval.low == pytest.approx(0.14 / (0.14 + 0.8 * 0.15))


def test_bad_input():
    with refuses(InputError, "prevalence", "strictly between", "0 and 1"):
        forecast(a_point(), 5)
    with pytest.raises(InputError, match="confidence"):
        forecast(a_point(), 0.5, confidence=1)
    with refuses(InputError, "predictions of any class"):
        forecast(a_point(accuracy >= 0.9, of=None), 0.5)
    with pytest.raises(InputError, match="recall"):
        forecast(a_point(rates={}), 0.5)
