"""The band between acting and clearing."""

import numpy as np
import pytest

from calibrant.errors import InputError
from calibrant.thresholds import (
    Cost,
    TargetUnreachable,
    coverage,
    false_discovery,
    npv,
    precision,
    recall,
    select,
    select_band,
)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    labels = (rng.random(4000) < 0.3).astype(int)
    return labels, 1 / (1 + np.exp(-rng.normal(2.5 * labels - 2, 1)))


def test_both_sides_keep_their_targets_and_the_rest_goes_to_a_person(rows):
    labels, probs = rows
    band = select_band(labels, probs, act=precision >= 0.9, clear=npv >= 0.97)
    decided = band.decide(probs)
    assert labels[decided == "act"].mean() > 0.9
    assert (1 - labels[decided == "clear"]).mean() > 0.97
    assert band.automated == pytest.approx((decided != "person").mean())
    assert 0 < band.automated < 1
    assert band.lower.threshold < band.upper.threshold
    assert "both together with 95 % confidence" in band.guarantee


def test_each_side_gets_half_of_the_allowed_error(rows):
    band = select_band(*rows, act=precision >= 0.9, clear=npv >= 0.97)
    above = select(*rows, hold=precision >= 0.9, maximise=coverage, confidence=0.975)
    below = select(*rows, hold=npv >= 0.97, confidence=0.975)
    assert band.upper.threshold == above.threshold
    assert band.lower.threshold == below.threshold


def test_sides_that_meet_leave_no_row_to_a_person_and_take_the_best_place(rows):
    labels, probs = rows
    band = select_band(labels, probs, act=precision >= 0.5, clear=npv >= 0.7)
    assert band.automated == 1
    assert band.upper.threshold == band.lower.threshold
    right = ((probs >= band.upper.threshold) == labels).mean()
    best = max(((probs >= t) == labels).mean() for t in np.linspace(0.05, 0.95, 181))
    assert right >= best - 1e-3


def test_targets_may_be_written_as_errors(rows):
    one = select_band(*rows, act=precision >= 0.9, clear=npv >= 0.97)
    other = select_band(*rows, act=false_discovery <= 0.1, clear=npv >= 0.97)
    assert one.upper.threshold == other.upper.threshold


def test_the_empirical_band_promises_nothing(rows):
    band = select_band(*rows, act=precision >= 0.9, clear=npv >= 0.97, confidence=None)
    assert band.guarantee is None
    assert "promises nothing" in band.why
    assert "No promise" in str(band)


def test_a_side_that_cannot_be_reached_says_so(rows):
    with pytest.raises(TargetUnreachable, match="npv"):
        select_band(*rows, act=precision >= 0.9, clear=npv >= 0.9999)


@pytest.mark.parametrize(
    ("act", "clear"), [(recall >= 0.5, npv >= 0.9), (precision >= 0.9, precision >= 0.9),
                       (precision >= 0.9, Cost(1, 5) <= 0.5)]
)  # fmt: skip
def test_targets_of_the_wrong_side_are_refused(rows, act, clear):
    with pytest.raises(InputError, match="side"):
        select_band(*rows, act=act, clear=clear)
