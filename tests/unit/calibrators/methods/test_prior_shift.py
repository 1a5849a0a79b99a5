"""Prior shift: by hand, against plain EM, and in worlds whose new prior is known."""

import json

import numpy as np
import pytest
from tests.sentences import refuses

from calibrant.calibrators import (
    Calibrator,
    Chain,
    PriorCorrection,
    TemperatureScaling,
    VectorScaling,
)
from calibrant.calibrators.methods.prior_shift import PriorShift, confusion_matrix, estimate_prior
from calibrant.convert import logits_from_probs, probs_from_logits
from calibrant.errors import InputError, NotFitted
from calibrant.metrics import nll
from calibrant.testing import WORLDS

NEW = {
    "calibrated_multiclass": np.array([0.5, 0.3, 0.1, 0.07, 0.03]),
    "calibrated": np.array([0.5, 0.5]),
}
Z = float(np.log(9))
SOURCE = 10 * [Z] + 10 * [-Z], 9 * [1] + [0] + 9 * [0] + [1]
ESTIMATORS = [("em", False), ("bbse", False), ("bbse", True)]


def source_rows(world, n, seed):
    draw = WORLDS[world].draw(n, seed)
    return logits_from_probs(draw.probs, floor=1e-12), draw.labels


def new_rows(world, n, seed, prior):
    """Draw from a world and pick rows by label until their prior is the new one."""
    rng = np.random.default_rng(seed)
    logits, labels = source_rows(world, 4 * n, rng)
    chance = (prior / np.bincount(labels))[labels]
    picked = rng.choice(len(labels), n, p=chance / chance.sum())
    return logits[picked], labels[picked]


def plain_em(probs, source, steps=20_000):
    """Iterate equations of Saerens et al. as they stand."""
    prior = source
    for _ in range(steps):
        joint = probs * (prior / source)
        prior = (joint / joint.sum(axis=1, keepdims=True)).mean(axis=0)
    return prior


def matrix(probs):
    return probs if probs.ndim == 2 else np.column_stack([1 - probs, probs])


def test_em_by_hand():
    # 4 log(0.2 + 1.6 x) + 6 log(1.8 - 1.6 x) is largest where 4 (1.8 - 1.6 x) = 6 (0.2 + 1.6 x).
    found = estimate_prior(4 * [0.9] + 6 * [0.1], [0.5, 0.5])
    assert found.prior == pytest.approx([0.625, 0.375], abs=1e-9)
    assert found.converged
    assert found.gap < 1e-9


def test_bbse_by_hand():
    # Of class 0 three in four are predicted 0, of class 1 one in two: 0.6 = 0.75 x + 0.5 (1 - x).
    confusion = np.array([[0.75 * 0.4, 0.5 * 0.6], [0.25 * 0.4, 0.5 * 0.6]])
    probs = 6 * [0.2] + 4 * [0.9]
    found = estimate_prior(probs, [0.4, 0.6], method="bbse", confusion=confusion, hard=True)
    assert found.prior == pytest.approx([0.4, 0.6], abs=1e-12)
    assert found.gap == pytest.approx(0.0, abs=1e-12)


def test_what_no_prior_explains_ends_at_the_nearest():
    confusion = [[0.4, 0.1], [0.1, 0.4]]  # a class is predicted right four times in five
    found = estimate_prior([0.95] * 5, [0.5, 0.5], method="bbse", confusion=confusion)
    assert found.prior == pytest.approx([0.0, 1.0])
    assert found.gap == pytest.approx(np.sqrt(2) * 0.15)


def test_the_confusion_matrix_counts_or_averages():
    labels, probs = [0, 0, 1, 1], np.array([0.2, 0.6, 0.6, 1.0])
    assert confusion_matrix(labels, probs) == pytest.approx(np.array([[0.3, 0.1], [0.2, 0.4]]))
    hard = confusion_matrix(labels, probs, hard=True)
    assert hard == pytest.approx(np.array([[0.25, 0.0], [0.25, 0.5]]))
    weights = np.array([1, 3, 2, 0])
    repeated = confusion_matrix(np.repeat(labels, weights), np.repeat(probs, weights))
    assert confusion_matrix(labels, probs, weights=weights) == pytest.approx(repeated)


@pytest.mark.parametrize("seed", [0, 1])
def test_the_limit_of_plain_em_is_reached_in_a_few_steps(seed):
    draw = WORLDS["calibrated_multiclass"].draw(400, seed)
    source = np.array([0.1, 0.2, 0.4, 0.2, 0.1])
    found = estimate_prior(draw.probs, source)
    assert found.prior == pytest.approx(plain_em(draw.probs, source), abs=1e-6)
    assert found.steps < 20


def test_a_weight_equals_a_repetition():
    draw = WORLDS["calibrated_multiclass"].draw(300, 2)
    times = np.random.default_rng(0).integers(0, 4, 300)
    confusion = confusion_matrix(draw.labels, draw.probs)
    repeated = np.repeat(draw.probs, times, axis=0)
    for method in ("em", "bbse"):
        kind = {"method": method, "confusion": confusion}
        ours = estimate_prior(draw.probs, np.full(5, 0.2), weights=times, **kind).prior
        assert ours == pytest.approx(
            estimate_prior(repeated, np.full(5, 0.2), **kind).prior, abs=1e-8
        )


@pytest.mark.parametrize("world", NEW)
@pytest.mark.parametrize(("estimator", "hard"), ESTIMATORS)
def test_the_new_prior_is_found_without_bias_and_lowers_the_nll(world, estimator, hard):
    errors, gains = [], []
    for seed in range(12):
        shift = PriorShift(estimator=estimator, hard=hard).fit(*source_rows(world, 3000, seed))
        logits, labels = new_rows(world, 3000, 100 + seed, NEW[world])
        adapted = shift.adapt(logits)
        assert shift.estimate_.converged
        errors.append(shift.prior_ - NEW[world])
        before = nll(labels, shift.first_.predict_proba(logits))
        gains.append(before - nll(labels, adapted.predict_proba(logits)))
    errors = np.array(errors)
    spread = errors.std(axis=0, ddof=1) / np.sqrt(len(errors))
    assert (np.abs(errors.mean(axis=0)) < 4.5 * spread).all()  # 11 degrees of freedom
    assert np.abs(errors).mean() < (0.12 if hard else 0.035)
    assert min(gains) > 0.05
    assert np.mean(gains) > 0.15


@pytest.mark.parametrize("world", NEW)
def test_more_rows_come_nearer(world):
    mean = []
    for n in (500, 20_000):
        errors = []
        for seed in range(6):
            shift = PriorShift(VectorScaling()).fit(*source_rows(world, n, seed))
            shift.adapt(new_rows(world, n, 200 + seed, NEW[world])[0])
            errors.append(np.abs(shift.prior_ - NEW[world]).mean())
        mean.append(np.mean(errors))
    assert mean[1] < 0.4 * mean[0]


def test_without_a_shift_the_prior_stays():
    logits, labels = source_rows("multiclass", 4000, 0)
    logits = logits + np.array([0.8, 0.0, 0.0, -0.4, 0.3])  # wrong for classes, T cannot mend it
    shift = PriorShift().fit(logits, labels)
    shift.adapt(logits)
    assert shift.prior_ == pytest.approx(shift.source_, abs=1e-3)
    # The source's own frequencies would have shown a shift where there is none.
    naive = estimate_prior(shift.first_.predict_proba(logits), shift.source_).prior
    assert np.abs(naive - shift.source_).max() > 0.05


def test_adapting_is_a_chain_of_the_two_corrections():
    shift = PriorShift().fit(*SOURCE)
    adapted = shift.adapt(4000 * [Z] + 6000 * [-Z])
    assert isinstance(adapted, Chain)
    assert shift.prior_ == pytest.approx([0.625, 0.375], abs=1e-4)
    assert adapted.predict_proba([Z]) == pytest.approx([5.4 / 6.4], abs=1e-4)
    by_hand = PriorCorrection(shift.source_, shift.prior_).fit(*SOURCE)
    expected = by_hand.predict_proba(logits_from_probs(shift.first_.predict_proba([Z, 0.3])))
    assert adapted.predict_proba([Z, 0.3]) == pytest.approx(expected, abs=1e-12)
    loaded = Calibrator.from_dict(json.loads(json.dumps(adapted.to_dict(), allow_nan=False)))
    asked = np.linspace(-5, 5, 41)
    assert np.array_equal(loaded.predict_log_proba(asked), adapted.predict_log_proba(asked))


def test_every_adaptation_starts_from_the_source():
    shift = PriorShift().fit(*SOURCE)
    first = shift.adapt(8 * [Z] + 2 * [-Z])
    kept, prior = first.predict_proba([0.5]), shift.prior_.copy()
    shift.adapt(2 * [Z] + 8 * [-Z])
    assert shift.prior_ == pytest.approx(prior[::-1])
    assert np.array_equal(first.predict_proba([0.5]), kept)


def test_one_and_two_columns_names_weights_and_float32():
    logits, labels = (np.array(x) for x in SOURCE)
    pair = np.column_stack([np.zeros_like(logits), logits]).astype(np.float32)
    one = PriorShift().fit(logits, labels)
    two = PriorShift().fit(pair, np.array(["no", "yes"])[labels], classes=["no", "yes"])
    new = np.array(3 * [Z] + 9 * [-Z])
    ours = one.adapt(new).predict_proba(new)
    wide = two.adapt(np.column_stack([0 * new, new]))
    assert wide.predict_proba(np.column_stack([0 * new, new]))[:, 1] == pytest.approx(
        ours, abs=1e-6
    )
    assert wide.classes_.tolist() == ["no", "yes"]
    weighted = PriorShift().fit(*SOURCE).adapt([Z, -Z], weights=[3, 9])
    assert weighted.predict_proba(new) == pytest.approx(ours, abs=1e-9)


def test_a_class_that_none_of_the_new_rows_shows_is_not_impossible():
    shift = PriorShift(estimator="bbse").fit(*source_rows("calibrated_multiclass", 2000, 3))
    far = np.full((50, 5), -20.0)
    far[:, 0] = 20.0
    adapted = shift.adapt(far)
    assert shift.prior_.min() == pytest.approx(0.5 / 52.5)
    assert np.isfinite(adapted.predict_log_proba(-far)).all()


def test_a_chain_may_come_first():
    chain = PriorCorrection(source=[0.5, 0.5]).then(TemperatureScaling())
    shift = PriorShift(chain).fit(*SOURCE)
    adapted = shift.adapt([Z, -Z, -Z])
    restored = Calibrator.from_dict(adapted.to_dict())
    assert restored.predict_proba([0.1]) == pytest.approx(adapted.predict_proba([0.1]), abs=0)


def test_huge_logits_do_no_harm():
    logits, labels = source_rows("multiclass", 500, 4)
    sharp = logits * (1e4 / np.abs(logits).max())
    for estimator, hard in ESTIMATORS:
        adapted = PriorShift(estimator=estimator, hard=hard).fit(sharp, labels).adapt(sharp)
        assert np.isfinite(adapted.predict_log_proba(sharp)).all()


def test_probabilities_that_say_nothing_leave_the_source_prior():
    found = estimate_prior(np.full((30, 3), [0.2, 0.3, 0.5]), [0.2, 0.3, 0.5])
    assert found.prior == pytest.approx([0.2, 0.3, 0.5])
    assert found.converged


def test_what_is_refused():
    probs = matrix(probs_from_logits(np.array([Z, -Z])))
    with refuses(InputError, "source", "positive", "class"):
        estimate_prior(probs, [1.0, 0.0])
    with refuses(InputError, "source", "number", "2 classes"):
        estimate_prior(probs, [0.2, 0.3, 0.5])
    with refuses(InputError, "method", "'em'", "'bbse'", "got 'rlls'"):
        estimate_prior(probs, [0.5, 0.5], method="rlls")
    with pytest.raises(InputError, match="'bbse' needs confusion"):
        estimate_prior(probs, [0.5, 0.5], method="bbse")
    with refuses(InputError, "confusion", "2 x 2", "matrix"):
        estimate_prior(probs, [0.5, 0.5], method="bbse", confusion=np.eye(3))
    with pytest.raises(InputError, match="confusion is singular"):
        estimate_prior(probs, [0.5, 0.5], method="bbse", confusion=np.full((2, 2), 0.25))
    with refuses(InputError, "estimator", "'em'", "'bbse'"):
        PriorShift(estimator="mle").fit(*SOURCE)
    with refuses(InputError, "source rows", "class", "none", "label 2"):
        PriorShift().fit(np.eye(3)[[0, 1]], [0, 1])
    with refuses(InputError, "fitted", "2 classes"):
        PriorShift().fit(*SOURCE).adapt(np.zeros((4, 3)))
    with pytest.raises(NotFitted, match="call fit first"):
        PriorShift().adapt([0.0])
    with refuses(NotFitted, "call fit", "adapt"):
        _ = PriorShift().fit(*SOURCE).prior_
