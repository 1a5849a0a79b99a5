import numpy as np
import pytest
from scipy.stats import binomtest

from calibrant.stats import clopper_pearson, holm, mcnemar, wald_interval, wilson


@pytest.mark.parametrize(("hits", "n"), [(0, 10), (10, 10), (3, 7), (384, 485)])
def test_exact_and_wilson_intervals_agree_with_scipy(hits, n):
    test = binomtest(hits, n)
    for ours, method in ((clopper_pearson(hits, n), "exact"), (wilson(hits, n), "wilson")):
        theirs = test.proportion_ci(0.95, method=method)
        assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=1e-9)


def test_the_broken_promise_of_the_deployed_classifier():
    # 384 of 485 right: 79.2 %, and neither 83.8 % nor the 85 % that was promised is inside.
    result = wilson(384, 485)
    assert round(100 * result.low, 1) == 75.3
    assert round(100 * result.high, 1) == 82.6


def test_exact_interval_covers_at_least_as_often_as_it_says():
    from scipy.stats import binom

    for rate in (0.02, 0.3, 0.5):
        k = np.arange(41)
        held = [clopper_pearson(i, 40).low <= rate <= clopper_pearson(i, 40).high for i in k]
        assert binom.pmf(k, 40, rate) @ held >= 0.95


@pytest.mark.parametrize(("a", "b"), [(2, 10), (0, 5), (7, 7), (30, 12)])
def test_mcnemar_is_the_exact_binomial_test(a, b):
    assert mcnemar(a, b) == pytest.approx(binomtest(a, a + b, 0.5).pvalue)


def test_holm_by_hand_and_its_order():
    assert holm([0.01, 0.04, 0.03]).tolist() == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.9, 0.8]).tolist() == [1.0, 1.0]
    assert holm([0.02]).tolist() == [0.02]


def test_wald_stays_inside_the_range_of_its_scale():
    logit = wald_interval(0.99, 0.02, n=50, scale="logit")
    assert 0 < logit.low < 0.99 < logit.high < 1
    log = wald_interval(0.01, 0.02, n=50, scale="log")
    assert 0 < log.low < 0.01 < log.high
    plain = wald_interval(-0.1, 0.05, n=1000)
    assert (plain.low, plain.high) == pytest.approx((-0.198, -0.002), abs=1e-3)
