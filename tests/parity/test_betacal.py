"""betacal: the same curve where it finds the optimum, and what it does at the bounds."""

import numpy as np
import pytest
from betacal import BetaCalibration as Peer
from tests.parity.peer_rows import drawn

from calibrant.calibrators import BetaCalibration
from calibrant.calibrators.methods.platt import MIN_SLOPE
from calibrant.metrics import auroc, nll

SHAPES = ("abm", "am", "ab")


def logit(p):
    return np.log(p) - np.log1p(-p)


def rows(name, n, seed):
    labels, probs = drawn(name, n, seed)
    return labels, np.clip(probs, 1e-9, 1 - 1e-9)


def both(shape, probs, labels, weights=None):
    """Fit both sides on the same rows; return ours, theirs, and their losses on those rows."""
    peer = Peer(parameters=shape).fit(probs, labels, weights)
    ours = BetaCalibration(shape, shrink=None).fit(logit(probs), labels, weights)
    mine = nll(labels, ours.predict_proba(logit(probs)), weights=weights)
    return ours, peer, mine, nll(labels, peer.predict(probs), weights=weights)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", ["binary", "calibrated", "tied", "rare"])
@pytest.mark.parametrize("seed", range(3))
def test_the_loss_on_the_fitting_rows_is_never_above_theirs(name, shape, seed):
    labels, probs = rows(name, 1500, seed)
    for weights in (None, np.random.default_rng(seed).uniform(0.2, 3.0, 1500)):
        _, peer, mine, theirs = both(shape, probs, labels, weights)
        if min(peer.calibrator_.map_[:2]) >= 0:  # otherwise theirs is no beta calibration
            assert mine <= theirs * (1 + 1e-6)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", ["binary", "calibrated"])
def test_where_no_bound_is_met_the_curves_are_one(name, shape):
    labels, probs = rows(name, 3000, 4)
    ours, peer, mine, theirs = both(shape, probs, labels)
    a, b, m = peer.calibrator_.map_
    assert min(a, b) > 0
    assert mine == pytest.approx(theirs, rel=1e-4)
    assert mine <= theirs * (1 + 1e-6)
    # Its solver stops early where the loss is flat, so coefficients agree less than losses.
    found = ours.maps_[0]
    assert (found["a"], found["b"]) == pytest.approx((a, b), abs=0.1)
    # m is the score that is mapped to one half.
    assert ours.predict_proba([logit(m)]) == pytest.approx([0.5], abs=0.02)
    asked = np.linspace(0.01, 0.99, 99)
    assert ours.predict_proba(logit(asked)) == pytest.approx(peer.predict(asked), abs=0.02)


def bent(seed, turn):
    """Draw rows whose frequency rises up to one half and falls above, or the other way round."""
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.02, 0.98, 400)
    rate = np.where(p < 0.5, p, 1 - p)
    return (rng.random(400) < (rate if turn else 1 - rate)).astype(int), p


@pytest.mark.parametrize("turn", [True, False])
@pytest.mark.parametrize("seed", range(5))
def test_where_betacal_drops_a_coefficient_ours_is_as_good(seed, turn):
    labels, probs = bent(seed, turn)
    ours, peer, mine, theirs = both("abm", probs, labels)
    a, b, _ = peer.calibrator_.map_
    assert 0 in (a, b)
    found = ours.maps_[0]
    if min(a, b) >= 0:
        assert (found["a"], found["b"]) == pytest.approx((a, b), abs=0.02)
        assert mine <= theirs * (1 + 1e-6)
    else:
        # It drops one without asking whether the other is then negative: its map falls.
        assert np.diff(peer.predict(np.linspace(0.01, 0.99, 99))).max() <= 0
        assert found["a"] == found["b"] == MIN_SLOPE


@pytest.mark.parametrize("shape", SHAPES)
def test_scores_that_point_the_wrong_way_are_turned_round_by_betacal_alone(shape):
    labels, probs = rows("binary", 800, 5)
    ours, peer, _, _ = both(shape, probs, 1 - labels)
    assert min(peer.calibrator_.map_[:2]) < 0
    assert auroc(1 - labels, peer.predict(probs)) > 0.7
    assert auroc(1 - labels, ours.predict_proba(logit(probs))) == auroc(1 - labels, probs)


@pytest.mark.parametrize("shape", SHAPES)
def test_on_fresh_rows_neither_is_better_by_more_than_chance(shape):
    labels, probs = rows("binary", 1000, 6)
    fresh, asked = rows("binary", 20_000, 7)
    ours, peer, _, _ = both(shape, probs, labels)
    mine, theirs = ours.predict_proba(logit(asked)), peer.predict(asked)
    gap = np.log(np.where(fresh == 1, mine / theirs, (1 - mine) / (1 - theirs)))
    assert abs(gap.mean()) <= 2 * gap.std() / np.sqrt(len(gap)) + 1e-5
    # The pull towards the identity costs little where it is not needed.
    default = BetaCalibration(shape).fit(logit(probs), labels).predict_proba(logit(asked))
    assert nll(fresh, default) <= nll(fresh, theirs) + 0.002


def test_separated_labels_make_betacal_certain_and_ours_not():
    probs = np.r_[np.full(10, 0.2), np.full(10, 0.8)]
    labels = np.repeat([0, 1], 10)
    peer = Peer().fit(probs, labels)
    assert peer.predict(np.array([0.8]))[0] > 0.999
    ours = BetaCalibration(shrink="platt").fit(logit(probs), labels)
    assert ours.predict_proba([logit(0.8)]) == pytest.approx([11 / 12], abs=1e-6)
    pulled = BetaCalibration().fit(logit(probs), labels)
    assert 0.8 < pulled.predict_proba([logit(0.8)])[0] < 0.95
