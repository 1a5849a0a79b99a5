"""Focal temperature scaling: by hand, against a dense grid, and where the truth is known."""

import numpy as np
import pytest
from scipy.optimize import brentq
from tests.data_sets import data_file
from tests.sentences import refuses

from calibrant.calibrators import TemperatureScaling
from calibrant.calibrators.methods.focal_recovery import FocalRecovery, recover_logits
from calibrant.calibrators.methods.focal_temperature import GAMMAS, FocalTemperatureScaling
from calibrant.convert import probs_from_logits
from calibrant.errors import InputError
from calibrant.metrics import nll
from calibrant.testing import WORLDS, check_calibrator

LOGITS, LABELS = 4 * [2.0] + 4 * [-2.0], [1, 1, 1, 0, 0, 0, 0, 1]


def multiclass(n, seed):
    draw = WORLDS["multiclass"].draw(n, seed)
    return np.log(draw.probs), draw.labels


def labels_from(rng, probs):
    return (rng.random((len(probs), 1)) > probs.cumsum(axis=1)).sum(axis=1)


def test_the_contract():
    check_calibrator(FocalTemperatureScaling(gamma=2.0))


def test_by_hand():
    # gamma 1 and two classes: log h(q) - log h(1 - q) = log 3 gives the scaled log-odds o = 2 / T.
    def odds(o):
        new = recover_logits(np.array([[-o / 2, o / 2]]), 1.0)[0]
        return new[1] - new[0]

    o = brentq(lambda o: odds(o) - np.log(3), 0.1, 2.0)
    calibrator = FocalTemperatureScaling(gamma=1.0).fit(LOGITS, LABELS)
    assert calibrator.temperature_ == pytest.approx(2 / o, rel=1e-6)
    assert calibrator.predict_proba([2.0, -2.0, 0.0]) == pytest.approx([0.75, 0.25, 0.5], abs=1e-7)


def test_no_focus_is_temperature_scaling():
    logits, labels = multiclass(500, 0)
    with_it = FocalTemperatureScaling(gamma=0).fit(logits, labels)
    alone = TemperatureScaling().fit(logits, labels)
    assert with_it.temperature_ == alone.temperature_
    assert with_it.predict_proba(logits) == pytest.approx(alone.predict_proba(logits), abs=1e-15)


@pytest.mark.parametrize("gamma", [0.25, 1.0, 5.0])
def test_no_temperature_on_a_dense_grid_does_better(gamma):
    logits, labels = multiclass(300, 1)
    calibrator = FocalTemperatureScaling(gamma=gamma).fit(logits, labels)
    recovery = FocalRecovery(gamma).fit(logits, labels)
    tried = [nll(labels, recovery.predict_proba(logits / t)) for t in np.geomspace(0.1, 100, 300)]
    assert nll(labels, calibrator.predict_proba(logits)) <= min(tried) + 1e-12
    assert calibrator.predict_proba(logits) == pytest.approx(
        recovery.predict_proba(logits / calibrator.temperature_), abs=1e-12
    )


def test_the_focus_with_the_lowest_nll_is_taken():
    logits, labels = multiclass(400, 2)
    chosen = FocalTemperatureScaling().fit(logits, labels)
    each = {
        gamma: nll(labels, FocalTemperatureScaling(gamma).fit(logits, labels).predict_proba(logits))
        for gamma in GAMMAS
    }
    assert each[chosen.gamma_] == min(each.values())
    assert nll(labels, chosen.predict_proba(logits)) == pytest.approx(min(each.values()), abs=1e-12)


def test_the_truth_is_recovered_where_a_temperature_cannot():
    rng = np.random.default_rng(4)
    logits = 2.0 * rng.normal(size=(8000, 10))
    truth = probs_from_logits(recover_logits(logits / 1.5, 5.0))
    labels = labels_from(rng, truth)
    calibrator = FocalTemperatureScaling().fit(logits, labels)
    assert calibrator.gamma_ == 5.0
    assert calibrator.temperature_ == pytest.approx(1.5, abs=0.04)
    assert not calibrator.hit_bound_
    assert np.abs(calibrator.predict_proba(logits) - truth).max() < 0.02
    alone = TemperatureScaling().fit(logits, labels)
    assert np.abs(alone.predict_proba(logits) - truth).max() > 0.15


def test_a_focal_minimiser_needs_no_temperature():
    # q = softmax(z) is what focal loss with gamma 2 asks for where the posterior is Psi_2(q).
    rng = np.random.default_rng(5)
    logits = rng.normal(size=(20_000, 4))
    labels = labels_from(rng, probs_from_logits(recover_logits(logits, 2.0)))
    assert FocalTemperatureScaling(gamma=2.0).fit(logits, labels).temperature_ == pytest.approx(
        1.0, abs=0.02
    )


@pytest.mark.parametrize("folder", ["logits_resnet110_c10", "logits_resnet50_focal_c10"])
def test_on_real_logits_it_is_never_worse_than_a_temperature(folder):
    with np.load(data_file(folder, f"{folder.removeprefix('logits_')}.npz")) as arrays:
        logits, labels = arrays["val_logits"], arrays["val_labels"]
    ours = FocalTemperatureScaling().fit(logits, labels)
    alone = TemperatureScaling().fit(logits, labels)
    assert nll(labels, ours.predict_proba(logits)) <= nll(labels, alone.predict_proba(logits)) + (
        1e-12
    )
    assert np.array_equal(ours.predict(logits), logits.argmax(axis=1))


def test_separated_labels_stop_at_the_bound():
    calibrator = FocalTemperatureScaling(gamma=1.0).fit([-2.0, -1.0, 1.0, 2.0], [0, 0, 1, 1])
    assert calibrator.temperature_ == 0.01
    assert calibrator.hit_bound_
    assert np.isfinite(calibrator.predict_log_proba([-1e4, 1e4])).all()


def test_bad_settings_are_refused():
    with refuses(InputError, "gamma must be 0", "more", "got -0.5"):
        FocalTemperatureScaling(-0.5).fit(LOGITS, LABELS)
    with pytest.raises(InputError, match="lowest and highest"):
        FocalTemperatureScaling(lowest=0.0).fit(LOGITS, LABELS)
