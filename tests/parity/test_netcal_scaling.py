"""netcal: its scaling methods agree on ordinary probabilities, and where they cannot is shown."""

import contextlib
import io

import numpy as np
import pytest
from netcal.scaling import BetaCalibration as PeerBeta
from netcal.scaling import LogisticCalibration as PeerLogistic
from netcal.scaling import TemperatureScaling as PeerTemperature
from tests.parity.peer_rows import drawn

from calibrant.calibrators import (
    BetaCalibration,
    PlattScaling,
    TemperatureScaling,
    VectorScaling,
)
from calibrant.calibrators.methods.platt import MIN_SLOPE
from calibrant.metrics import auroc, nll

PAIRS = {
    "logistic": (PeerLogistic, lambda: PlattScaling(shrink=None)),
    "beta": (PeerBeta, lambda: BetaCalibration(shrink=None)),
    "temperature": (PeerTemperature, TemperatureScaling),
}
EACH = pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS.keys())


def logit(p):
    p = p.astype(np.float64)
    return np.log(p) - np.log1p(-p)


def rows(name, n, seed):
    labels, probs = drawn(name, n, seed)
    return labels, np.clip(probs, 1e-9, 1 - 1e-9)


def quietly(peer, probs, labels):
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        return peer.fit(probs, labels)


def inside(peer, name):
    """Return what the peer learned; its own properties for it fail in part."""
    return peer._sites[name]["values"]


@EACH
@pytest.mark.parametrize("name", ["binary", "calibrated", "tied", "rare"])
def test_the_loss_on_the_fitting_rows_is_never_above_theirs(name, pair):
    labels, probs = rows(name, 1200, 0)
    peer, ours = quietly(pair[0](), probs, labels), pair[1]().fit(logit(probs), labels)
    mine = nll(labels, ours.predict_proba(logit(probs)))
    theirs = nll(labels, np.clip(peer.transform(probs), 1e-12, 1 - 1e-12))
    assert mine <= theirs * (1 + 1e-6)


@EACH
@pytest.mark.parametrize("name", ["binary", "calibrated"])
def test_maps_agree_on_ordinary_probabilities(name, pair):
    labels, probs = rows(name, 1200, 1)
    peer, ours = quietly(pair[0](), probs, labels), pair[1]().fit(logit(probs), labels)
    asked = np.linspace(0.01, 0.99, 99)
    assert ours.predict_proba(logit(asked)) == pytest.approx(peer.transform(asked), abs=5e-3)


def test_what_netcal_calls_a_temperature_is_its_inverse():
    labels, probs = rows("binary", 1200, 2)
    peer = quietly(PeerTemperature(), probs, labels)
    ours = TemperatureScaling().fit(logit(probs), labels)
    assert peer.temperature == pytest.approx(1 / ours.temperature_, rel=1e-3)
    with pytest.raises(KeyError):
        _ = quietly(PeerBeta(), probs, labels).weights


def test_with_more_classes_its_temperature_is_ours():
    labels, probs = drawn("multiclass", 900, 3)
    peer = quietly(PeerTemperature(), probs, labels)
    ours = TemperatureScaling().fit(np.log(probs), labels)
    assert ours.predict_proba(np.log(probs)) == pytest.approx(peer.transform(probs), abs=1e-3)


def test_with_more_classes_its_logistic_calibration_is_a_vector_scaling():
    labels, probs = drawn("multiclass", 900, 4)
    peer = quietly(PeerLogistic(), probs, labels)
    assert inside(peer, "weights").shape == inside(peer, "bias").shape == (5,)
    v, b = inside(peer, "weights"), inside(peer, "bias")
    z = np.log(probs) * v + b
    p = np.exp(z - z.max(axis=1, keepdims=True))
    assert peer.transform(probs) == pytest.approx(p / p.sum(axis=1, keepdims=True), abs=1e-4)
    # It scales log-probabilities, ours logits less their mean: near, but not the same family.
    ours = VectorScaling(strength=1e-6).fit(np.log(probs), labels)
    fresh, asked = drawn("multiclass", 5000, 5)
    mine, theirs = ours.predict_log_proba(np.log(asked)), np.log(peer.transform(asked))
    gap = (mine - theirs)[np.arange(5000), fresh]
    assert abs(gap.mean()) <= 2 * gap.std() / np.sqrt(5000) + 1e-3


def sharp(n, seed, t=20.0):
    """Draw log-odds t times too large: many probabilities round to 1."""
    rng = np.random.default_rng(seed)
    z = 2 * t * rng.normal(size=n)
    return z, (rng.random(n) < 1 / (1 + np.exp(-z / t))).astype(int)


@pytest.mark.parametrize("peer", [PeerTemperature, PeerLogistic])
def test_probabilities_lose_what_logits_know(peer):
    z, labels = sharp(4000, 6)
    probs = 1 / (1 + np.exp(-z))
    assert (probs == 1.0).mean() > 0.1
    found = quietly(peer(), probs, labels)
    slope = float(np.ravel(inside(found, "weights"))[0])
    assert slope > 1.15 / 20  # the truth is 1/20
    line = PlattScaling(shrink=None).fit(z, labels)
    assert line.maps_[0]["slope"] == pytest.approx(1 / 20, rel=0.1)
    assert nll(labels, line.predict_proba(z)) < nll(labels, found.transform(probs)) - 0.005


@pytest.mark.parametrize("peer", [PeerTemperature, PeerLogistic])
def test_float32_probabilities_that_round_to_one_are_not_fitted_at_all(peer):
    z, labels = sharp(4000, 7)
    probs = (1 / (1 + np.exp(-z))).astype(np.float32)
    found = quietly(peer(), probs, labels)
    # No error, no word: the identity is returned, many times worse than a coin.
    assert np.ravel(inside(found, "weights")) == pytest.approx([1.0])
    assert nll(labels, np.clip(found.transform(probs), 1e-7, 1 - 1e-7)) > 1.0
    single = z.astype(np.float32)
    assert nll(labels, TemperatureScaling().fit(single, labels).predict_proba(single)) < 0.5


def test_scores_that_point_the_wrong_way_are_turned_round_there_and_not_here():
    labels, probs = rows("binary", 800, 8)
    for peer in (PeerLogistic, PeerTemperature):
        found = quietly(peer(), probs, 1 - labels)
        assert float(np.ravel(inside(found, "weights"))[0]) < 0
        assert auroc(1 - labels, found.transform(probs)) > 0.7
    for ours in (PlattScaling(), BetaCalibration()):
        kept = ours.fit(logit(probs), 1 - labels).predict_proba(logit(probs))
        assert auroc(1 - labels, kept) == auroc(1 - labels, probs)


def test_its_beta_calibration_ties_all_rows_where_both_slopes_vanish():
    labels, probs = rows("binary", 800, 9)
    peer = quietly(PeerBeta(), probs, 1 - labels)
    assert inside(peer, "weights").tolist() == [0.0, 0.0]
    assert len(np.unique(peer.transform(probs))) == 1
    found = BetaCalibration(shrink=None).fit(logit(probs), 1 - labels)
    assert found.maps_[0]["a"] == found.maps_[0]["b"] == MIN_SLOPE
    assert len(np.unique(found.predict_log_proba(logit(probs)))) == len(np.unique(probs))
