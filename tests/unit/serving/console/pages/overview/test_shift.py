"""Shift against the calibrate rows, and the shift by chance alone."""

import gc

import numpy as np
import pytest
from tests.sentences import assert_mentions
from tests.unit.bundle.parts import CLASSES, point, rows, temperature

from calibrant.bundle import BundlePoint, load_bundle, pack
from calibrant.bundle.calib_rows import FILE, CalibRows
from calibrant.errors import BundleError
from calibrant.ood import OodRule
from calibrant.serving.console.pages.overview import shift as overview_shift
from calibrant.serving.console.pages.overview.shift import (
    ScoreShift,
    compare_scope,
    measure_shift,
    profile_calibration,
)

LOGITS = np.array([[4.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 9.0, 0.0], [0.1, 0.0, 0.0]])
CODES = np.array([0, 1, 1, -1])


def packed(folder, calib=None, ood=None, points=True):
    chosen = [BundlePoint(point(), "calibrated")] if points else []
    return pack(folder, calibrator=temperature(2.0), points=chosen, calib=calib, ood=ood)


def test_half_the_sum_of_the_absolute_differences():
    # |0.5 - 0.2| + |0.3 - 0.3| + |0.2 - 0.5| = 0.6
    assert measure_shift([50, 30, 20], [0.2, 0.3, 0.5], 100).value == pytest.approx(0.3)


def test_equal_shares_have_distance_0_and_disjoint_ones_1():
    assert measure_shift([25, 75], [0.25, 0.75], 400).value == 0
    disjoint = measure_shift([100, 0], [0.0, 1.0], 400)
    assert disjoint.value == 1
    assert disjoint.beyond_chance


def test_chance_alone_exceeds_the_limit_in_one_of_twenty_cases():
    rng = np.random.default_rng(3)
    shares = np.array([0.05, 0.1, 0.15, 0.3, 0.4])
    beyond = 0
    for _ in range(200):
        now, then = rng.multinomial(300, shares), rng.multinomial(500, shares)
        beyond += measure_shift(now, then / 500, 500).beyond_chance
    assert 2 <= beyond <= 20  # 10 are expected


def test_the_shift_by_chance_is_that_of_normal_deviates():
    shares, n, m = np.full(4, 0.25), 10_000, 40_000
    result = measure_shift((n * shares).astype(int).tolist(), shares, m)
    # E|N(0, s)| is s sqrt(2 / pi), and each difference has s^2 = p (1 - p) (1 / n + 1 / m).
    spread = np.sqrt(0.25 * 0.75 * (1 / n + 1 / m))
    assert result.chance.mean == pytest.approx(0.5 * 4 * spread * np.sqrt(2 / np.pi), rel=0.05)
    assert result.chance.q95 > result.chance.mean


def test_one_prediction_never_shifts_from_uniform_rows():
    for place in range(5):
        now = [int(k == place) for k in range(5)]
        assert not measure_shift(now, [0.2] * 5, 3000).beyond_chance


def test_a_million_predictions_distinguish_small_shifts_from_chance():
    result = measure_shift([510_000, 490_000], [0.5, 0.5], 100_000)
    assert result.value == pytest.approx(0.01)
    assert result.beyond_chance
    assert "more than chance explains" in result.chance_words


def test_the_same_seed_gives_the_same_chance():
    assert measure_shift([3, 4], [0.5, 0.5], 90) == measure_shift([3, 4], [0.5, 0.5], 90)


def test_calibrate_rows_are_scored_as_requests_are(tmp_path):
    bundle = packed(tmp_path / "b", CalibRows(LOGITS, CODES), OodRule("max_logit", -2.0, 0.95, 100))
    result = profile_calibration(bundle)
    top = bundle.predict_proba(logits=LOGITS).max(axis=1)
    counts = np.histogram(top, bins=20, range=(0, 1))[0]
    assert result.shares == pytest.approx(counts / 4)
    assert result.rows == 4
    assert result.effective == pytest.approx(4)
    assert result.flagged == 0.5  # the second and the last have no logit of 2


def test_weighted_rows_count_more_and_lower_the_effective_size(tmp_path):
    weights = np.array([3.0, 1.0, 1.0, 1.0])
    rule = OodRule("max_logit", -2.0, 0.95, 100)
    result = profile_calibration(packed(tmp_path / "b", CalibRows(LOGITS, CODES, weights), rule))
    assert result.flagged == pytest.approx(2 / 6)
    assert result.effective == pytest.approx(36 / 12)  # (sum of w)^2 / sum of w^2
    assert sum(result.shares) == pytest.approx(1)
    # The first row alone lies where its score is.
    score = 1 / (1 + 2 * np.exp(-2.0))
    assert result.shares[int(score * 20)] == pytest.approx(3 / 6)


def test_a_bundle_without_rows_or_rule_has_nothing_to_compare_with(tmp_path):
    assert profile_calibration(packed(tmp_path / "none")) is None
    assert profile_calibration(packed(tmp_path / "rows", CalibRows(LOGITS, CODES))).flagged is None


def test_the_rows_are_scored_once_and_forgotten_with_the_bundle(tmp_path):
    bundle = packed(tmp_path / "b", CalibRows(LOGITS, CODES))
    assert profile_calibration(bundle) is profile_calibration(bundle)
    before = len(overview_shift._PROFILES)
    del bundle
    gc.collect()
    assert len(overview_shift._PROFILES) == before - 1


def test_damaged_rows_raise_an_error(tmp_path):
    packed(tmp_path / "b", CalibRows(LOGITS, CODES))
    bundle = load_bundle(tmp_path / "b")
    (tmp_path / "b" / FILE).write_bytes(b"not what it was")
    with pytest.raises(BundleError, match="changed"):
        profile_calibration(bundle)


def test_scores_are_compared_bin_by_bin(tmp_path):
    logits = rows(2_000, len(CLASSES))
    calib = CalibRows(logits, np.zeros(2_000, dtype=int))
    bundle = packed(tmp_path / "b", calib)
    then = profile_calibration(bundle)
    top = bundle.predict_proba(logits=rows(1_000, len(CLASSES), seed=1)).max(axis=1)
    alike = ScoreShift.compare(np.histogram(top, bins=20, range=(0, 1))[0].tolist(), then)
    assert not alike.difference.beyond_chance
    assert_mentions(alike.sentence, "no more than chance")
    assert "2,000 calibrate rows" in alike.sentence
    unlike = ScoreShift.compare([1_000] + [0] * 19, then)
    assert unlike.difference.value == pytest.approx(1)
    assert unlike.rows[0] == ("0.00 to 0.05", 1_000, 1.0, 0.0)
    assert unlike.chart()["now"][0] == 1
    assert len(unlike.chart()["then"]) == 20


def test_scores_without_calibrate_rows_or_predictions():
    alone = ScoreShift.compare([0] * 19 + [4], None)
    assert alone.difference is None
    assert alone.sentence == ""
    assert alone.rows[-1] == ("0.95 to 1.00", 4, 1.0, None)
    assert ScoreShift.compare([0] * 20, None).chart() == {"now": [0.0] * 20, "then": None}


def test_the_share_out_of_scope_is_compared(tmp_path):
    rule = OodRule("max_logit", -2.0, 0.95, 100)
    bundle = packed(tmp_path / "b", CalibRows(LOGITS, CODES), rule)
    result = compare_scope(30, 100, bundle, profile_calibration(bundle))
    assert result.share == 0.3
    assert result.then == 0.5
    assert result.difference.value == pytest.approx(0.2)
    assert result.let_through == 0.95
    # Exact interval of 30 in 100, as tables give it.
    assert (result.interval.low, result.interval.high) == pytest.approx((0.2124, 0.3998), abs=1e-4)
    assert_mentions(result.sentence, "30.0 %", "predictions", "out of scope")
    assert_mentions(result.sentence, "calibrate rows", "50.0 %")


def test_the_share_out_of_scope_without_calibrate_rows(tmp_path):
    bundle = packed(tmp_path / "b", ood=OodRule("max_logit", -2.0, 0.95, 100))
    result = compare_scope(1, 1, bundle, None)
    assert result.then is None
    assert_mentions(
        result.sentence,
        "100.0 % of the predictions",
        "out of scope (95 % interval 2.5 % to 100.0 %)",
    )


def test_nothing_is_out_of_scope_without_a_rule_a_point_or_a_prediction(tmp_path):
    rule = OodRule("max_logit", -2.0, 0.95, 100)
    assert compare_scope(0, 9, packed(tmp_path / "a"), None) is None
    assert compare_scope(0, 9, packed(tmp_path / "b", ood=rule, points=False), None) is None
    assert compare_scope(0, 0, packed(tmp_path / "c", ood=rule), None) is None
