"""A calibrator that is asked what it has seen."""

import numpy as np

from calibrant.calibrators import AutoCalibrator, HistogramBinning
from calibrant.thresholds import Seen, precision, select


def draw(seed, n=600):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, n)
    return rng.normal(3.0 * np.eye(3)[labels], 1.0), labels


def test_the_rows_of_the_fit_get_no_promise_and_others_do():
    (logits, labels), others = draw(0), draw(1)
    for fitted in (HistogramBinning().fit(logits, labels), AutoCalibrator().fit(logits, labels)):
        for (given, known), kept in (
            ((logits, labels), False),
            ((logits[::-1], labels[::-1]), False),
            ((logits[:200], labels[:200]), False),
            (others, True),
        ):
            seen = Seen.told_by(fitted, given, known)
            probs = fitted.predict_proba(given)
            point = select(known, probs, hold=precision >= 0.6, positive=0, seen=seen)
            assert (point.guarantee is not None) == (kept or not seen.changed_scores)
            assert (seen == Seen()) == kept


def test_candidates_are_passed_on():
    logits, labels = draw(0)
    fitted = HistogramBinning().fit(logits, labels)
    assert Seen.told_by(fitted, *draw(1), candidates=7) == Seen(candidates=7)
    assert Seen.told_by(fitted, logits, labels, candidates=7) == Seen(7, fitted)
