"""Promises on calibrated scores, where the calibrator may have been fitted on the same rows."""

from contextlib import suppress

import numpy as np
import pytest
from tests.guarantees.promises import Count, short_refusals

from calibrant.calibrators import HistogramBinning, IsotonicCalibration, VectorScaling
from calibrant.errors import TargetUnreachable
from calibrant.thresholds import LabelUse, precision, select

CLASSES = 5
RATE = 0.849  # of class 0, whatever the scores are
TARGET = 0.85  # so that every promise is a false one
N = 300
REPETITIONS = 200

METHODS = [HistogramBinning, IsotonicCalibration, VectorScaling]


def draw(rng, n=N):
    """Return scores that tell nothing, and labels."""
    share = np.array([RATE, *[(1 - RATE) / (CLASSES - 1)] * (CLASSES - 1)])
    return rng.normal(size=(n, CLASSES)), rng.choice(CLASSES, n, p=share)


def is_promised(calibrator, logits, labels, label_use):
    with short_refusals(), suppress(TargetUnreachable):
        point = select(
            labels,
            calibrator.predict_proba(logits),
            hold=precision >= TARGET,
            positive=0,
            classes=range(CLASSES),
            label_use=label_use,
        )
        return point.guarantee is not None
    return False


def promised(method, *, others):
    """Count false promises without asking the calibrator, those as it says, and rows it knows.

    Rows that certify are those of the fit, every second time in another order, or all `others`.
    """
    rng = np.random.default_rng(0)
    untold = told = known = 0
    for i in range(REPETITIONS):
        logits, labels = draw(rng)
        calibrator = method().fit(logits, labels)
        if others:
            logits, labels = draw(rng)
        elif i % 2:
            order = rng.permutation(N)
            logits, labels = logits[order], labels[order]
        label_use = LabelUse.from_calibrator(calibrator, logits, labels)
        known += label_use.calibrator is not None
        blind = is_promised(calibrator, logits, labels, LabelUse())
        untold += blind
        told += (
            blind if label_use == LabelUse() else is_promised(calibrator, logits, labels, label_use)
        )
    return untold, told, known


@pytest.mark.smoke
@pytest.mark.parametrize("method", METHODS)
def test_no_false_promise_where_the_calibrator_knows_the_rows(method):
    untold, told, known = promised(method, others=False)
    assert known == REPETITIONS
    assert told == 0
    assert untold > 0.05 * REPETITIONS  # what its memory is good for


@pytest.mark.parametrize("method", METHODS)
def test_promises_on_other_rows_stand_and_are_kept(method):
    untold, told, known = promised(method, others=True)
    assert known == 0
    assert told == untold > 0
    assert Count(told, told, REPETITIONS).keeps(0.05)
