"""What later rows say about a promise."""

import json

import numpy as np
import pytest
from scipy.stats import binom, binomtest
from tests.sentences import assert_mentions, refuses

from calibrant.errors import InputError
from calibrant.thresholds import Cost, OperatingPoint, accuracy, fpr, npv, precision, recall
from calibrant.thresholds.after.transfer import check_counts, check_transfer


def a_point(*hold, of="yes", classes=("no", "yes"), threshold=0.5):
    return OperatingPoint(
        threshold=threshold, logit=0.0, on="probs", of=of, classes=classes, hold=hold,
        objective="maximise recall", confidence=0.95, guarantee=None, why=None, rates={}, n=10,
        positives=5, method="",
    )  # fmt: skip


def rows(right, wrong, missed=0, other=0):
    """Labels and scores with so many rows of each outcome, for class `yes` at 0.5."""
    labels = ["yes"] * right + ["no"] * wrong + ["yes"] * missed + ["no"] * other
    return labels, np.r_[np.full(right + wrong, 0.9), np.full(missed + other, 0.1)]


def test_by_hand():
    # Three of three: 0.5 ** 3 = 0.125 is small enough at 80 %, not at 90 %.
    assert check_counts(recall >= 0.5, 3, 3, confidence=0.8).verdict == "kept"
    found = check_counts(recall >= 0.5, 3, 3, confidence=0.9)
    assert found.verdict == "undecidable"
    assert found.checks[0].p_kept == pytest.approx(0.125)
    assert found.checks[0].more == 1  # 0.5 ** 4 = 0.0625
    # None of three: (1 - 0.5) ** 3.
    assert check_counts(recall >= 0.5, 0, 3, confidence=0.8).verdict == "broken"


def test_the_deployed_classifier():
    found = check_counts("precision>=0.85", 384, 485)
    assert found.verdict == "broken"
    assert_mentions(found.text, "79.2 %", "485 rows acted", "75.3 % to 82.7 %")
    assert str(found) == found.text
    assert "79.2 %" in found._repr_html_()
    assert json.loads(json.dumps(found.to_dict()))["checks"][0]["n"] == 485


@pytest.mark.parametrize("target", [precision >= 0.85, npv >= 0.5, fpr <= 0.1, recall >= 0.99])
@pytest.mark.parametrize("n", [7, 60, 500])
def test_agrees_with_the_exact_test_of_scipy(target, n):
    seen = set()
    for hits in range(0, n + 1, max(1, n // 50)):
        high = binomtest(hits, n, target.value, alternative="greater").pvalue
        low = binomtest(hits, n, target.value, alternative="less").pvalue
        kept, broken = (high, low) if target.sense == ">=" else (low, high)
        found = check_counts(target, hits, n).checks[0]
        assert found.p_kept == pytest.approx(kept)
        assert found.p_broken == pytest.approx(broken)
        expected = "kept" if kept <= 0.05 else "broken" if broken <= 0.05 else "undecidable"
        assert found.verdict == expected
        span = binomtest(hits, n).proportion_ci(0.95)
        assert (found.interval.low, found.interval.high) == pytest.approx((span.low, span.high))
        seen.add(expected)
    assert len(seen) >= 2


@pytest.mark.parametrize("true", [0.80, 0.8499, 0.85, 0.9])
@pytest.mark.parametrize("n", [20, 100, 485])
def test_a_verdict_is_wrong_in_at_most_5_percent(true, n):
    hits = np.arange(n + 1)
    said = np.array([check_counts(precision >= 0.85, int(h), n).verdict for h in hits])
    wrong = "broken" if true >= 0.85 else "kept"
    assert binom.pmf(hits, n, true)[said == wrong].sum() <= 0.05


@pytest.mark.parametrize(("hits", "n"), [(404, 480), (420, 480), (18, 18), (9, 12), (8, 10)])
def test_more_rows_of_the_same_kind_decide(hits, n):
    found = check_counts(precision >= 0.85, hits, n).checks[0]
    assert found.verdict == "undecidable"
    total = n + found.more
    share = hits / n
    later = int(np.floor(share * total)) if share > 0.85 else int(np.ceil(share * total))
    assert check_counts(precision >= 0.85, later, total).verdict != "undecidable"
    half = n + found.more // 3
    if half > n:
        assert check_counts(precision >= 0.85, round(share * half), half).verdict == "undecidable"


def test_no_number_of_rows_decides_at_the_target_itself():
    found = check_counts(precision >= 0.85, 85, 100).checks[0]
    assert found.more is None
    assert "too near" in found.text


def test_no_rows_on_that_side():
    labels, probs = rows(0, 0, missed=3, other=3)
    found = check_transfer(a_point(precision >= 0.85), labels, probs)
    assert found.verdict == "undecidable"
    assert found.checks[0].value is None
    assert "there are no rows acted on" in found.text
    assert json.loads(json.dumps(found.to_dict()))["checks"][0]["value"] is None


def test_rows_and_counts_say_the_same():
    labels, probs = rows(90, 10, missed=20, other=80)
    for target, hits, n in (
        (precision >= 0.8, 90, 100),
        (recall >= 0.7, 90, 110),
        (fpr <= 0.3, 10, 90),
        (npv >= 0.9, 80, 100),
    ):
        found = check_transfer(a_point(target), labels, probs).checks[0]
        assert found == check_counts(target, hits, n).checks[0]


def test_several_targets_share_the_confidence():
    labels, probs = rows(90, 10, missed=20, other=80)
    found = check_transfer(a_point(precision >= 0.8, recall >= 0.7), labels, probs)
    alone = check_counts(precision >= 0.8, 90, 100, confidence=0.975).checks[0]
    assert found.checks[0] == alone
    assert found.verdict == "kept"
    both = check_transfer(a_point(precision >= 0.8, recall >= 0.95), labels, probs)
    assert [c.verdict for c in both.checks] == ["kept", "broken"]
    assert both.verdict == "broken"
    unsure = check_transfer(a_point(precision >= 0.8, recall >= 0.8), labels, probs)
    assert unsure.verdict == "undecidable"


def test_top_label_points_count_right_predictions():
    probs = np.array([[0.8, 0.1, 0.1]] * 60 + [[0.4, 0.3, 0.3]] * 10)
    labels = np.r_[np.zeros(57, int), np.ones(13, int)]
    point = a_point(accuracy >= 0.8, of=None, classes=(0, 1, 2), threshold=0.7)
    assert (
        check_transfer(point, labels, probs).checks[0]
        == (check_counts(accuracy >= 0.8, 57, 60).checks[0])
    )
    two = a_point(accuracy >= 0.8, of=None, classes=(0, 1), threshold=0.7)
    found = check_transfer(two, [0, 0, 1, 1], [0.1, 0.9, 0.8, 0.6]).checks[0]
    assert (found.n, found.value) == (3, pytest.approx(2 / 3))


def test_weights_undo_an_over_sampled_stratum():
    # Easy rows (precision 0.99) were picked four times as often as hard ones (precision 0.5).
    rng = np.random.default_rng(0)
    easy = rng.random(4000) < 0.8
    labels = (rng.random(4000) < np.where(easy, 0.99, 0.5)).astype(int)
    weights = np.where(easy, 1.0, 4.0)
    point = a_point(precision >= 0.85, of=1, classes=(0, 1))
    probs = np.full(4000, 0.9)
    assert check_transfer(point, labels, probs).verdict == "kept"  # of a sample that is no sample
    found = check_transfer(point, labels, probs, weights=weights)
    assert found.verdict == "broken"
    check = found.checks[0]
    assert check.value == pytest.approx(np.average(labels, weights=weights))
    assert check.interval.low < (0.99 + 0.5) / 2 < check.interval.high < 0.85


def test_weights_only_matter_up_to_a_factor_and_zeros_are_not_there():
    labels, probs = rows(90, 10, missed=20, other=80)
    weights = np.tile([1.0, 3.0], 100)
    point = a_point(precision >= 0.8)
    once = check_transfer(point, labels, probs, weights=weights)
    scaled = check_transfer(point, labels, probs, weights=5 * weights)
    assert scaled.checks[0].p_kept == pytest.approx(once.checks[0].p_kept)
    padded = check_transfer(
        point, [*labels, "yes"], np.append(probs, 0.9), weights=np.append(weights, 0.0)
    )
    assert padded == once
    # A bound that is larger than needed costs evidence.
    loose = check_transfer(point, labels, probs, weights=weights, largest_weight=30.0)
    assert loose.checks[0].p_kept > once.checks[0].p_kept


def test_weighted_more_rows_decide():
    labels, probs = rows(88, 12)
    weights = np.tile([1.0, 2.0], 50)
    point = a_point(precision >= 0.8)
    first = check_transfer(point, labels, probs, weights=weights)
    assert first.verdict == "undecidable"
    times = -(-(100 + first.checks[0].more) // 100)
    again = check_transfer(
        point, labels * times, np.tile(probs, times), weights=np.tile(weights, times)
    )
    assert again.verdict == "kept"


def test_expected_cost():
    labels, probs = rows(500, 50, missed=20, other=430)
    cost = Cost(false_positive=1, false_negative=5)
    found = check_transfer(a_point(cost <= 0.3), labels, probs)
    check = found.checks[0]
    assert check.value == pytest.approx((50 * 1 + 20 * 5) / 1000)
    assert found.verdict == "kept"
    assert check.interval.low < 0.15 < check.interval.high < 0.3
    assert check_transfer(a_point(cost <= 0.05), labels, probs).verdict == "broken"
    near = check_transfer(a_point(cost <= 0.16), labels, probs)
    assert near.verdict == "undecidable"
    assert near.checks[0].more > 1000
    assert "expected cost" in near.text


def test_logits_do_as_well():
    labels, probs = rows(90, 10, missed=20, other=80)
    logits = np.log(probs / (1 - probs))
    point = a_point(precision >= 0.8)
    assert check_transfer(point, labels, logits=logits) == check_transfer(point, labels, probs)


def test_bad_input():
    labels, probs = rows(3, 1)
    with pytest.raises(InputError, match="nothing to check"):
        check_transfer(a_point(), labels, probs)
    with refuses(InputError, "label for each row"):
        check_transfer(a_point(precision >= 0.8), labels[:2], probs)
    with refuses(InputError, "not among", "classes"):
        check_transfer(a_point(precision >= 0.8), ["yes", "maybe"], [0.1, 0.2])
    with pytest.raises(InputError, match="confidence"):
        check_counts(precision >= 0.8, 3, 4, confidence=1.0)
    with pytest.raises(InputError, match="whole number"):
        check_counts(precision >= 0.8, 5, 4)
    with pytest.raises(InputError, match="whole number"):
        check_counts(precision >= 0.8, 0.8, 4)
    with refuses(InputError, "not a count", "use check_transfer"):
        check_counts(Cost(1, 2) <= 0.5, 3, 4)
    with pytest.raises(InputError, match="largest_weight"):
        check_transfer(
            a_point(precision >= 0.8), labels, probs, weights=[1, 2, 3, 4], largest_weight=2.0
        )
