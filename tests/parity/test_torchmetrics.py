"""torchmetrics: agreement away from bin edges, and its traps beside calibrant's answers."""

import numpy as np
import pytest
import torch
import torchmetrics.functional.classification as peer
from tests.parity.peer_rows import EVERY, drawn
from torchmetrics.classification import BinaryCalibrationError

from calibrant import metrics
from calibrant.errors import InputError

NORMS = {"l1": 1, "l2": 2, "max": np.inf}


def peer_error(labels, probs, bins, norm):
    scores, target = torch.from_numpy(probs), torch.from_numpy(labels)
    if probs.ndim == 1:
        return float(peer.binary_calibration_error(scores, target, n_bins=bins, norm=norm))
    return float(
        peer.multiclass_calibration_error(
            scores, target, num_classes=probs.shape[1], n_bins=bins, norm=norm
        )
    )


def off_the_edges(name, seed, dtype):
    """Rows without a confidence of exactly 1, which torchmetrics gives a bin of its own."""
    labels, probs = drawn(name, 1500, seed, dtype)
    return labels, np.minimum(probs, np.nextafter(dtype(1), dtype(0)))


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", ["binary", "rare", "saturated"])
def test_binary_errors_agree_to_rounding_in_double_precision(name, norm):
    for seed in range(3):
        labels, probs = off_the_edges(name, seed, np.float64)
        for bins in (7, 15):
            assert metrics.ece(labels, probs, n_bins=bins, norm=NORMS[norm]) == pytest.approx(
                peer_error(labels, probs, bins, norm), abs=1e-12
            )


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", ["binary", "rare", "saturated", "multiclass", "long_tailed"])
def test_errors_agree_to_single_precision(name, norm):
    # torchmetrics sums in float32, and turns multiclass input into float32 first.
    for seed in range(3):
        labels, probs = off_the_edges(name, seed, np.float32)
        for bins in (7, 15):
            assert metrics.ece(labels, probs, n_bins=bins, norm=NORMS[norm]) == pytest.approx(
                peer_error(labels, probs, bins, norm), abs=1e-6
            )


@pytest.mark.parametrize("name", EVERY)
def test_ranking_and_decisions_agree(name):
    labels, probs = drawn(name, 1500, 5)
    scores, target = torch.from_numpy(probs), torch.from_numpy(labels)
    if probs.ndim == 1:
        theirs = {
            "auroc": peer.binary_auroc(scores, target),
            "auprc": peer.binary_average_precision(scores, target),
            "matthews": peer.binary_matthews_corrcoef(scores, target),
            "accuracy": peer.binary_accuracy(scores, target),
            "f1": peer.binary_f1_score(scores, target),
        }
    else:
        k = probs.shape[1]
        theirs = {
            "auroc": peer.multiclass_auroc(scores, target, k),
            "auprc": peer.multiclass_average_precision(scores, target, k),
            "matthews": peer.multiclass_matthews_corrcoef(scores, target, k),
            "accuracy": peer.multiclass_accuracy(scores, target, k, average="micro"),
            "f1_macro": peer.multiclass_f1_score(scores, target, k, average="macro"),
        }
    for metric, value in theirs.items():
        found = getattr(metrics, metric)(labels, probs)
        found = found[1] if metric == "f1" else found  # torchmetrics: of the positive class
        assert found == pytest.approx(float(value), abs=1e-6), metric


def test_a_confidence_of_one_gets_a_hidden_bin_there_and_the_last_bin_here():
    scores, events = np.array([0.95, 1.0]), np.array([1, 0])
    assert peer_error(events, scores, 10, "l1") == pytest.approx(0.525)
    assert peer_error(events, scores, 10, "max") == pytest.approx(1.0)
    assert metrics.ece(events, scores, n_bins=10) == pytest.approx(0.475)
    assert metrics.mce(events, scores, n_bins=10) == pytest.approx(0.475)


@pytest.mark.parametrize(("n", "broken"), [(40_000, False), (70_000, True)])
def test_half_precision_reads_zero_there_beyond_65504_rows_and_the_right_value_here(n, broken):
    rng = np.random.default_rng(0)
    scores = rng.random(n).astype(np.float16)
    events = (rng.random(n) < scores.astype(np.float64) ** 2).astype(np.int64)
    # E|s - s^2| = 1/6 for uniform scores.
    assert metrics.ece(events, scores, n_bins=10) == pytest.approx(1 / 6, abs=0.005)
    wide = metrics.ece(events, scores.astype(np.float64), n_bins=10)
    assert metrics.ece(events, scores, n_bins=10) == pytest.approx(wide, abs=1e-12)
    theirs = peer_error(events, scores, 10, "l1")
    assert theirs == (0.0 if broken else pytest.approx(1 / 6, abs=0.005))


def test_nan_is_a_number_there_and_an_error_here():
    scores, events = np.array([0.2, np.nan]), np.array([0, 1])
    # NaN is not within [0, 1], so 0.2 is taken for a logit: (sigmoid(0.2) + 1) / 2.
    assert peer_error(events, scores, 10, "l1") == pytest.approx(0.775, abs=1e-3)
    with pytest.raises(InputError, match="row 1"):
        metrics.ece(events, scores, n_bins=10)


def test_logits_are_guessed_batch_by_batch_there_and_refused_here():
    scores = torch.tensor([0.15, 0.35, 0.65, 0.85, 1.5, -0.5], dtype=torch.float64)
    events = torch.tensor([0, 0, 1, 1, 1, 0])
    a, b, c, d, e, f = torch.sigmoid(scores).tolist()
    batched = BinaryCalibrationError(n_bins=10)
    batched.update(scores[:4], events[:4])
    batched.update(scores[4:], events[4:])
    # At once all six are logits; in two batches the first four are probabilities.
    whole = float(peer.binary_calibration_error(scores, events, n_bins=10))
    assert whole == pytest.approx((a + b + f + 3 - c - d - e) / 6)
    assert float(batched.compute()) == pytest.approx((0.15 + 0.35 + f + 0.35 + 0.15 + 1 - e) / 6)
    with pytest.raises(InputError, match="row 4"):
        metrics.ece(events, scores, n_bins=10)


def test_a_class_without_rows_counts_as_zero_in_the_auroc_there_and_is_left_out_here():
    probs = np.array([[0.7, 0.2, 0.1], [0.4, 0.5, 0.1], [0.2, 0.6, 0.2], [0.5, 0.4, 0.1]])
    labels = np.array([0, 0, 1, 1])
    with pytest.warns(UserWarning, match="No positive samples"):
        theirs = peer.multiclass_auroc(torch.from_numpy(probs), torch.from_numpy(labels), 3)
    # Class 0 ranks 3 of 4 pairs right, class 1 also 3 of 4.
    assert float(theirs) == pytest.approx((0.75 + 0.75 + 0.0) / 3)
    assert metrics.auroc(labels, probs) == pytest.approx(0.75)
