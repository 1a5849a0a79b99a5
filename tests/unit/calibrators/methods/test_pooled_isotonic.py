"""Pooled isotonic calibration: by hand, against scikit-learn, and what one shared map implies."""

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression
from tests.data_sets import data_file
from tests.sentences import refuses

from calibrant.calibrators.methods.pooled_isotonic import PooledIsotonic
from calibrant.convert import logits_from_probs
from calibrant.errors import InputError
from calibrant.metrics import nll
from calibrant.testing import WORLDS, check_calibrator


def multiclass(n, seed, world="multiclass"):
    draw = WORLDS[world].draw(n, seed)
    return np.log(draw.probs), draw.labels, draw.probs


def test_the_contract():
    check_calibrator(PooledIsotonic())


def test_by_hand():
    # Pooled pairs at log-odds -2, -1, 1, 2: 0 of 4, 1 of 4, 3 of 4, 4 of 4, and one extra each end.
    calibrator = PooledIsotonic().fit(4 * [1.0] + 4 * [2.0], [1, 1, 1, 0, 1, 1, 1, 1])
    assert calibrator.scores_.tolist() == [-2.0, -1.0, 1.0, 2.0]
    assert calibrator.probs_ == pytest.approx([1 / 5, 1 / 4, 3 / 4, 4 / 5])
    # Between two scores the value lies on the line; beyond the last it stays.
    found = calibrator.predict_proba([-9.0, 0.5, 1.5, 9.0])
    assert found == pytest.approx([0.2, 0.625, 0.775, 0.8], abs=1e-5)


def test_steps_that_fall_are_pooled():
    # Log-odds 1 are right twice in two, log-odds 2 once in two: together three in four.
    calibrator = PooledIsotonic(pseudo_count=0).fit([1.0, 1.0, 2.0, 2.0], [1, 1, 1, 0])
    assert calibrator.predict_proba([1.0, 2.0, -1.0]) == pytest.approx([0.75, 0.75, 0.25], abs=1e-5)


@pytest.mark.parametrize("world", ["multiclass", "long_tailed"])
def test_the_map_is_scikit_learns_on_all_pairs(world):
    logits, labels, probs = multiclass(600, 3, world)
    weights = np.random.default_rng(0).integers(1, 4, len(labels)).astype(float)
    events = labels[:, None] == np.arange(probs.shape[1])
    theirs = IsotonicRegression(out_of_bounds="clip").fit(
        probs.ravel(), events.ravel(), sample_weight=np.repeat(weights, probs.shape[1])
    )
    steps = theirs.predict(probs.ravel()).reshape(probs.shape)
    expected = np.maximum(steps, 1e-300)
    expected /= expected.sum(axis=1, keepdims=True)
    ours = PooledIsotonic(pseudo_count=0).fit(logits, labels, weights).predict_proba(logits)
    assert ours == pytest.approx(expected, abs=1e-4)


def test_two_classes_are_treated_alike():
    draw = WORLDS["binary"].draw(500, 0)
    odds = logits_from_probs(draw.probs, floor=1e-12)
    one = PooledIsotonic().fit(odds, draw.labels)
    other = PooledIsotonic().fit(-odds, 1 - draw.labels)
    assert one.predict_proba(odds) == pytest.approx(1 - other.predict_proba(-odds), abs=1e-12)
    assert one.predict_proba([0.0]) == pytest.approx([0.5])


def test_no_two_rows_become_equal_and_no_prediction_changes():
    draw = WORLDS["binary"].draw(300, 1)
    odds = logits_from_probs(draw.probs, floor=1e-12)
    for count in (0.0, 1.0):
        calibrator = PooledIsotonic(pseudo_count=count).fit(odds, draw.labels)
        asked = np.linspace(-40, 40, 4001)
        both = calibrator.predict_log_proba(np.column_stack([-asked / 2, asked / 2]))
        assert (np.diff(both[:, 1] - both[:, 0]) > 0).all()
        assert np.array_equal(calibrator.predict(asked), asked > 0)


@pytest.mark.parametrize("folder", ["logits_resnet110_c10", "logits_resnet50_focal_c10"])
def test_on_real_logits_every_prediction_is_kept_and_the_nll_falls(folder):
    with np.load(data_file(folder, f"{folder.removeprefix('logits_')}.npz")) as arrays:
        rows = {name: arrays[name] for name in arrays}
    calibrator = PooledIsotonic().fit(rows["val_logits"], rows["val_labels"])
    logits, labels = rows["test_logits"], rows["test_labels"]
    assert np.array_equal(calibrator.predict(logits), logits.argmax(axis=1))
    before = np.exp(logits - np.logaddexp.reduce(logits, axis=1, keepdims=True))
    assert nll(labels, calibrator.predict_proba(logits)) < nll(labels, before)


def test_the_ends_are_guarded_and_the_textbook_fit_is_not():
    logits, labels = [-3.0, -2.0, 2.0, 3.0], [0, 0, 1, 1]
    # All four negative pairs (two rows, seen from both classes) and one extra event.
    guarded = PooledIsotonic().fit(logits, labels)
    assert guarded.predict_proba([-5.0]) == pytest.approx([0.2], abs=1e-5)
    textbook = PooledIsotonic(pseudo_count=0).fit(logits, labels)
    assert textbook.predict_proba([-5.0])[0] < 1e-299
    assert np.isfinite(textbook.predict_log_proba([-5.0, 5.0])).all()


def test_separated_classes_with_ties_at_the_top_keep_their_order():
    # With these pairs the textbook map is 1 from 0.4 on; a row with two such scores must not tie.
    logits = np.log([[0.4, 0.3, 0.3], [0.3, 0.4, 0.3], [0.3, 0.3, 0.4]])
    calibrator = PooledIsotonic(pseudo_count=0).fit(logits, [0, 1, 2])
    rows = np.log([[0.1, 0.42, 0.48], [0.48, 0.42, 0.1]])
    log_probs = calibrator.predict_log_proba(rows)
    assert log_probs[0, 2] > log_probs[0, 1] > log_probs[0, 0]
    assert calibrator.predict(rows).tolist() == [2, 0]


def test_a_negative_count_is_refused():
    with refuses(InputError, "pseudo_count", "finite", "0", "got -1"):
        PooledIsotonic(pseudo_count=-1).fit([0.0, 1.0], [0, 1])
