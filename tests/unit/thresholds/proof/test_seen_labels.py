"""Label use of a calibrator."""

import numpy as np

from calibrant.calibrators import AutoCalibrator, HistogramBinning
from calibrant.thresholds import LabelUse, precision, select


def draw(seed, n=600):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, n)
    return rng.normal(3.0 * np.eye(3)[labels], 1.0), labels


def test_the_rows_of_the_fit_get_no_promise_and_others_do():
    (logits, labels), others = draw(0), draw(1)
    for fitted in (HistogramBinning().fit(logits, labels), AutoCalibrator().fit(logits, labels)):
        for (rows, known), unused in (
            ((logits, labels), False),
            ((logits[::-1], labels[::-1]), False),
            ((logits[:200], labels[:200]), False),
            (others, True),
        ):
            label_use = LabelUse.from_calibrator(fitted, rows, known)
            probs = fitted.predict_proba(rows)
            point = select(known, probs, hold=precision >= 0.6, positive=0, label_use=label_use)
            assert (point.guarantee is not None) == (unused or not label_use.changed_scores)
            assert (label_use == LabelUse()) == unused


def test_candidates_are_passed_on():
    logits, labels = draw(0)
    fitted = HistogramBinning().fit(logits, labels)
    assert LabelUse.from_calibrator(fitted, *draw(1), candidates=7) == LabelUse(candidates=7)
    assert LabelUse.from_calibrator(fitted, logits, labels, candidates=7) == LabelUse(7, fitted)
