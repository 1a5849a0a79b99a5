"""probmetrics: temperature, ensemble temperature and spline agree; what differs is stated."""

import importlib
import sys
import types

import numpy as np
import pytest
from tests.data_sets import data_file
from tests.parity.peer_rows import drawn

from calibrant.calibrators import TemperatureScaling
from calibrant.calibrators.methods.ensemble_temperature import EnsembleTemperatureScaling
from calibrant.calibrators.methods.spline import SplineCalibration
from calibrant.convert import logits_from_probs, probs_from_logits
from calibrant.metrics import brier, nll

WORLDS = ("binary", "rare", "multiclass", "long_tailed")
LEAST = 1e-9


def peer_calibrators():
    """Import the peer; its package asks for numba, which none of the methods compared here uses."""
    missing = importlib.util.find_spec("numba") is None
    if missing:
        stand_in = types.ModuleType("numba")
        stand_in.njit = lambda *args, **_: args[0] if args and callable(args[0]) else lambda f: f
        sys.modules["numba"] = stand_in
    try:
        return importlib.import_module("probmetrics.calibrators")
    finally:
        if missing:
            del sys.modules["numba"]


PEER = peer_calibrators()


def rows(name, n, seed):
    """Return logits, labels and the matrix of probabilities that the peer wants."""
    labels, probs = drawn(name, n, seed)
    if probs.ndim == 1:
        probs = np.column_stack([1 - probs, probs])
    probs = np.maximum(probs, LEAST)
    probs /= probs.sum(axis=1, keepdims=True)
    return logits_from_probs(probs), labels, probs


def real_rows(part):
    with np.load(data_file("logits_resnet110_c10", "resnet110_c10.npz")) as arrays:
        logits = arrays[f"{part}_logits"].astype(np.float64)
        return logits, arrays[f"{part}_labels"], probs_from_logits(logits)


def not_above(ours, theirs):
    return ours <= theirs * (1 + 1e-6)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", WORLDS)
def test_the_temperature_is_as_good_and_the_same(name, seed):
    logits, labels, probs = rows(name, 2000, seed)
    ours = TemperatureScaling().fit(logits, labels)
    theirs = PEER.TemperatureScalingCalibrator().fit(probs, labels)
    assert not_above(
        nll(labels, ours.predict_proba(logits)),
        nll(labels, probs_from_logits(logits * theirs.invtemp_)),
    )
    # Thirty halvings of log(1/T) over a width of 32 leave 3e-8.
    assert ours.temperature_ == pytest.approx(1 / theirs.invtemp_, rel=1e-6)


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("name", WORLDS)
@pytest.mark.parametrize(("objective", "score"), [("mse", brier), ("nll", nll)])
def test_the_ensemble_is_never_worse_on_its_own_rows(name, seed, objective, score):
    logits, labels, probs = rows(name, 1000, seed)
    peer = PEER.ETSCalibrator(loss={"mse": "mse", "nll": "ce"}[objective]).fit(probs, labels)
    ours = EnsembleTemperatureScaling(objective, lowest=0.05, highest=5.0).fit(logits, labels)
    if objective == "mse":  # T alone first; with 'nll' ours is learned together with the shares
        both = (ours.temperature_, peer.t_)
        assert not_above(*[score(labels, probs_from_logits(logits / t)) for t in both])
    assert not_above(
        score(labels, ours.predict_proba(logits)), score(labels, peer.predict_proba(probs))
    )


@pytest.mark.parametrize(("objective", "loss"), [("mse", "mse"), ("nll", "ce")])
def test_the_ensemble_gives_the_peers_probabilities_on_real_logits(objective, loss):
    logits, labels, probs = real_rows("val")
    fresh, _, fresh_probs = real_rows("test")
    peer = PEER.ETSCalibrator(loss=loss).fit(probs, labels)
    ours = EnsembleTemperatureScaling(objective, lowest=0.05, highest=5.0).fit(logits, labels)
    assert ours.temperature_ == pytest.approx(peer.t_, rel=1e-4)
    assert ours.predict_proba(fresh) == pytest.approx(peer.predict_proba(fresh_probs), abs=1e-4)


@pytest.mark.parametrize("n", [500, 4000])
@pytest.mark.parametrize("name", ["binary", "calibrated"])
def test_the_spline_agrees_up_to_one_row_where_ours_is_not_clipped(name, n):
    logits, labels, probs = rows(name, n, 5)
    ours = SplineCalibration().fit(logits, labels)
    peer = PEER.CDFSplineCalibrator(spline_method="natural").fit(probs, labels)
    asked = np.quantile(probs[:, 1], np.linspace(0, 1, 200))
    pair = np.column_stack([1 - asked, asked])
    # The peer's values leave [0, 1]; ours stop half a row before the ends.
    theirs = np.clip(peer.predict_proba(pair)[:, 1], 0.5 / (n + 1), 1 - 0.5 / (n + 1))
    found = ours.predict_proba(logits_from_probs(pair))[:, 1]
    assert np.abs(found - theirs).max() < 2.0 / n


def test_another_end_of_the_spline_is_another_calibrator():
    # Its helper's own default, second derivatives that run out evenly, is not the natural spline.
    logits, labels, probs = rows("binary", 4000, 6)
    found = SplineCalibration().fit(logits, labels).predict_proba(logits)[:, 1]
    gaps = {}
    for rule in ("natural", "parabolic"):
        peer = PEER.CDFSplineCalibrator(spline_method=rule).fit(probs, labels)
        gaps[rule] = np.abs(np.clip(peer.predict_proba(probs)[:, 1], 0, 1) - found).max()
    assert PEER.CDFSplineCalibrator().spline_method == "natural"
    assert gaps["natural"] < 1e-3
    assert gaps["parabolic"] > 5e-3


def test_the_spline_of_confidences_agrees_on_real_logits():
    logits, labels, probs = real_rows("val")
    _, _, fresh = real_rows("test")
    conf, right = probs.max(axis=1), (probs.argmax(axis=1) == labels).astype(int)
    peer = PEER.CDFSplineCalibrator().fit(np.column_stack([1 - conf, conf]), right)
    ours = SplineCalibration().fit(logits, labels)
    asked = fresh.max(axis=1)
    theirs = np.clip(peer.predict_proba(np.column_stack([1 - asked, asked]))[:, 1], 0, 1)
    found = np.interp(asked, ours.scores_, ours.values_)
    assert np.abs(found - theirs).mean() < 1e-3
    assert np.abs(found - theirs).max() < 6e-3
