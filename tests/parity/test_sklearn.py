"""scikit-learn: proper scores, ranking, decisions and calibration curves."""

import numpy as np
import pytest
from sklearn import metrics as peer
from sklearn.calibration import calibration_curve
from sklearn.exceptions import UndefinedMetricWarning
from tests.parity.peer_rows import BINARY, EVERY, MULTICLASS, decided, drawn

from calibrant import metrics

EXACT = 1e-12
LOSS_IS_FINITE = ("binary", "rare", *MULTICLASS)


def weighed(n):
    return [None, np.random.default_rng(n).uniform(0.2, 3.0, n)]


@pytest.mark.filterwarnings("ignore:The y_prob values do not sum")  # to 1 within 1e-8
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", LOSS_IS_FINITE)
def test_log_loss_agrees_with_and_without_weights(name, dtype):
    labels, probs = drawn(name, 1200, 0, dtype)
    columns = [0, 1] if probs.ndim == 1 else range(probs.shape[1])
    wide = probs.astype(np.float64)  # the same numbers: sums here are in double precision
    for w in weighed(1200):
        theirs = peer.log_loss(labels, wide, labels=columns, sample_weight=w)
        assert metrics.nll(labels, probs, weights=w) == pytest.approx(theirs, rel=EXACT)


@pytest.mark.filterwarnings("ignore:The y_prob values do not sum")  # to 1 within 1e-8
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", EVERY)
def test_brier_score_agrees_with_and_without_weights(name, dtype):
    labels, probs = drawn(name, 1200, 1, dtype)
    columns = [0, 1] if probs.ndim == 1 else range(probs.shape[1])
    wide = probs.astype(np.float64)  # the same numbers: sums here are in double precision
    for w in weighed(1200):
        theirs = peer.brier_score_loss(labels, wide, labels=columns, sample_weight=w)
        assert metrics.brier(labels, probs, weights=w) == pytest.approx(theirs, rel=EXACT)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", BINARY)
def test_binary_ranking_agrees_with_ties_and_weights(name, dtype):
    labels, probs = drawn(name, 1200, 2, dtype)
    for w in weighed(1200):
        assert metrics.auroc(labels, probs, weights=w) == pytest.approx(
            peer.roc_auc_score(labels, probs, sample_weight=w), rel=EXACT
        )
        assert metrics.auprc(labels, probs, weights=w) == pytest.approx(
            peer.average_precision_score(labels, probs, sample_weight=w), rel=EXACT
        )


@pytest.mark.parametrize("name", MULTICLASS)
def test_macro_one_vs_rest_ranking_agrees_where_every_class_has_rows(name):
    labels, probs = drawn(name, 1200, 3)
    k = probs.shape[1]
    assert len(np.unique(labels)) == k
    for w in weighed(1200):
        assert metrics.auroc(labels, probs, weights=w) == pytest.approx(
            peer.roc_auc_score(labels, probs, multi_class="ovr", sample_weight=w), rel=EXACT
        )
        assert metrics.auprc(labels, probs, weights=w) == pytest.approx(
            peer.average_precision_score(np.eye(k)[labels], probs, sample_weight=w), rel=EXACT
        )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", EVERY)
def test_decisions_agree_with_and_without_weights(name, dtype):
    labels, probs = drawn(name, 900, 4, dtype)
    said = decided(probs)
    k = 2 if probs.ndim == 1 else probs.shape[1]
    for w in weighed(900):
        theirs = {
            "accuracy": peer.accuracy_score(labels, said, sample_weight=w),
            "matthews": peer.matthews_corrcoef(labels, said, sample_weight=w),
            "f1_macro": peer.f1_score(labels, said, average="macro", sample_weight=w),
            "precision_macro": peer.precision_score(
                labels, said, average="macro", sample_weight=w, zero_division=0
            ),
            "recall_macro": peer.recall_score(
                labels, said, average="macro", sample_weight=w, zero_division=0
            ),
        }
        for metric, value in theirs.items():
            found = getattr(metrics, metric)(labels, probs, weights=w)
            assert found == pytest.approx(value, rel=EXACT), metric
        np.testing.assert_allclose(
            metrics.confusion_matrix(labels, probs, weights=w),
            peer.confusion_matrix(labels, said, labels=range(k), sample_weight=w),
            rtol=EXACT,
        )


def test_macro_means_agree_where_a_class_is_never_predicted():
    probs = np.array([[0.6, 0.3, 0.1], [0.2, 0.7, 0.1], [0.3, 0.6, 0.1], [0.5, 0.2, 0.3]])
    labels = np.array([0, 1, 2, 0])
    said = probs.argmax(axis=1)
    assert metrics.f1_macro(labels, probs) == pytest.approx(
        peer.f1_score(labels, said, average="macro", zero_division=0)
    )
    assert metrics.precision_macro(labels, probs) == pytest.approx((1 + 0.5 + 0) / 3)
    assert metrics.precision_macro(labels, probs) == pytest.approx(
        peer.precision_score(labels, said, average="macro", zero_division=0)
    )


def binned(labels, probs, strategy, bins):
    """MCE of scikit-learn's curve: its largest gap, over the bins that it keeps."""
    rate, score = calibration_curve(labels, probs, n_bins=bins, strategy=strategy)
    return float(np.abs(rate - score).max())


@pytest.mark.parametrize("name", ["binary", "rare"])
def test_equal_width_bins_agree_with_calibration_curve_away_from_edges(name):
    for seed in range(3):
        labels, probs = drawn(name, 1200, seed)
        for bins in (7, 10, 15):
            rate, score = calibration_curve(labels, probs, n_bins=bins)
            edges = np.linspace(0, 1, bins + 1)
            assert not np.isin(probs, edges).any()
            rows = np.histogram(probs, edges)[0]
            by_hand = np.abs(rate - score) @ rows[rows > 0] / len(labels)
            assert metrics.ece(labels, probs, n_bins=bins) == pytest.approx(by_hand, abs=EXACT)
            assert metrics.mce(labels, probs, n_bins=bins) == pytest.approx(
                binned(labels, probs, "uniform", bins), abs=EXACT
            )


@pytest.mark.parametrize("name", ["binary", "tied", "saturated"])
def test_equal_mass_bins_agree_with_quantile_curves_where_rows_divide_evenly(name):
    for seed in range(3):
        labels, probs = drawn(name, 1500, seed)
        for bins in (5, 10, 15):
            found = metrics.mce(labels, probs, n_bins=bins, scheme="mass")
            assert found == pytest.approx(binned(labels, probs, "quantile", bins), abs=EXACT)


def test_ninety_percent_zeros_leave_two_of_ten_quantile_bins_on_both_sides():
    scores = np.r_[np.zeros(900), np.linspace(0.05, 0.95, 100)]
    events = np.r_[np.ones(9), np.zeros(891), np.zeros(30), np.ones(70)].astype(int)
    rate, _ = calibration_curve(events, scores, n_bins=10, strategy="quantile")
    np.testing.assert_allclose(rate, [0.01, 0.7])
    # Ties stay together, so here too the gaps are 0.01 on 900 rows and 0.2 on 100.
    found = metrics.ece(events, scores, n_bins=10, scheme="mass")
    assert found == pytest.approx(0.9 * 0.01 + 0.1 * 0.2)


def test_a_score_on_an_edge_belongs_to_the_bin_below_there_and_above_here():
    scores, events = np.array([0.5, 0.9]), np.array([0, 1])
    assert binned(events, scores, "uniform", 2) == pytest.approx(0.5)
    assert metrics.mce(events, scores, n_bins=2) == pytest.approx(abs(0.5 - 0.7))


def test_log_loss_clips_a_certain_mistake_where_nll_is_infinite():
    labels, probs = np.array([1, 0]), np.array([0.0, 0.5])
    clipped = -np.log(np.finfo(np.float64).eps)
    assert peer.log_loss(labels, probs) == pytest.approx((clipped + np.log(2)) / 2)
    assert metrics.nll(labels, probs) == np.inf


def test_a_class_without_rows_makes_the_auroc_nan_there_and_is_left_out_here():
    probs = np.array([[0.7, 0.2, 0.1], [0.4, 0.5, 0.1], [0.2, 0.6, 0.2], [0.5, 0.4, 0.1]])
    labels = np.array([0, 0, 1, 1])
    with pytest.warns(UndefinedMetricWarning):
        theirs = peer.roc_auc_score(labels, probs, multi_class="ovr", labels=[0, 1, 2])
    assert np.isnan(theirs)
    assert metrics.auroc(labels, probs) == pytest.approx(0.75)
