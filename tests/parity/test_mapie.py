"""MAPIE: the same exact p-values, apart from a slip of rounding; and what its grid cannot see."""

import warnings

import numpy as np
import pytest
from benchmarks.threshold_peers import AS_IT_COMES, SETTINGS, mapie_p_values, mapie_thresholds
from mapie.risk_control import BinaryClassificationController, precision, recall
from mapie.risk_control.fwer_control import FWERFixedSequenceTesting
from sklearn.metrics import precision_recall_curve

from calibrant import thresholds
from calibrant.testing import THRESHOLD_WORLDS
from calibrant.thresholds import select
from calibrant.thresholds.proof.walk import binomial_passes

GRID = np.linspace(0, 0.99, 100)


def controlled(labels, probs, risk, target, grid=GRID, method="bonferroni_holm"):
    """Return MAPIE's controller after it has seen the rows."""
    controller = BinaryClassificationController(
        lambda scores: np.column_stack([1 - scores, scores]),
        risk,
        target,
        confidence_level=0.95,
        list_predict_params=grid,
        fwer_method=method,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return controller.calibrate(probs, labels)


def counts(most):
    """Return every pair of rows and hits with up to `most` rows."""
    return np.array([(k, h) for k in range(1, most + 1) for h in range(k + 1)]).T


def slipped(reached, hits):
    """Where rows times risk, computed in floats, rounds up past the number of misses."""
    return np.ceil(reached * (1 - hits / reached)) != reached - hits


@pytest.mark.parametrize("target", [0.6, 0.85, 0.95])
def test_p_values_agree_wherever_mapie_counts_the_misses_right(target):
    reached, hits = counts(120)
    theirs = mapie_p_values(reached, hits, target)
    right = ~slipped(reached, hits) & (theirs < 0.5) & (theirs > 1e-300)
    assert right.sum() > 200
    for k, h, p in zip(reached[right], hits[right], theirs[right], strict=True):
        passes = binomial_passes(np.full(k, h), target)
        position = np.array([k])
        assert passes(position, p * (1 + 1e-9)).all()
        assert not passes(position, p * (1 - 1e-9)).any()


def test_mapie_asks_for_one_hit_too_many_where_rounding_slips():
    reached, hits = counts(399)
    slips = slipped(reached, hits)
    assert (slips.sum(), len(slips)) == (15_700, 80_199)  # one pair in five
    slips &= hits > 0.85 * reached
    assert slips.sum() > 100
    theirs = mapie_p_values(reached[slips], hits[slips], 0.85)
    for k, h, p in zip(reached[slips], hits[slips], theirs, strict=True):
        # At MAPIE's p-value ours passes with room to spare: MAPIE errs on the careful side.
        assert binomial_passes(np.full(k, h), 0.85)(np.array([k]), p * 0.999).all()


@pytest.mark.parametrize("world", ["bimodal", "saturated", "non_monotone"])
@pytest.mark.parametrize("name", ["MAPIE 100 Holm", "MAPIE 20 Holm", AS_IT_COMES])
def test_counting_by_sorting_gives_the_threshold_of_the_controller(world, name):
    setting = SETTINGS[name]
    grid = np.linspace(0, 0.99, setting.size)
    for seed in range(5):
        draw = THRESHOLD_WORLDS[world].draw(2_000, seed)
        probs = draw.probs.astype(np.float64)
        assert (probs >= 0.99).any()  # no empty threshold, so nothing is mended
        theirs = controlled(draw.labels, probs, precision, 0.8, grid)
        ours = mapie_thresholds(draw.labels, probs, 0.8, 0.95)[name]
        assert ours == theirs.best_predict_param


@pytest.mark.parametrize(("name", "starts"), [("MAPIE 1 start", 1), ("MAPIE 8 starts", 8)])
def test_the_sequence_is_the_controllers_where_that_goes_down(name, starts):
    compared = 0
    for seed in range(10):
        draw = THRESHOLD_WORLDS["bimodal"].draw(20_000, seed)
        procedure = FWERFixedSequenceTesting(n_starts=starts)
        theirs = controlled(draw.labels, draw.probs, precision, 0.85, GRID[::-1], procedure)
        top, bottom = (draw.labels[draw.probs >= t].mean() for t in (0.99, 0.0))
        assert top > bottom  # MAPIE then takes the risk to rise along the falling thresholds
        assert mapie_thresholds(draw.labels, draw.probs, 0.85, 0.95)[name] == (
            theirs.best_predict_param
        )
        compared += theirs.best_predict_param is not None
    assert compared >= 5


def small_scores(n=4_000, seed=0):
    """Return labels and scores of a careful model of a rare class: well ordered, all below 0.06."""
    rng = np.random.default_rng(seed)
    labels = (rng.random(n) < 0.05).astype(np.int64)
    low, high = rng.uniform(0.0, 0.006, n), rng.uniform(0.005, 0.0095, n)
    probs = np.where(labels == 1, high, low)
    probs[np.argmax(probs)] = 0.055
    return labels, probs


def test_mapie_is_blind_to_small_scores():
    labels, probs = small_scores()
    assert probs.max() < 0.06
    assert controlled(labels, probs, recall, 0.8).best_predict_param == 0.0  # acts on every row
    assert controlled(labels, probs, precision, 0.85).best_predict_param is None
    mended = mapie_thresholds(labels, probs, 0.85, 0.95)
    assert set(mended.values()) == {None}

    ours = select(labels, probs, hold=thresholds.recall >= 0.8)
    assert 0.005 < ours.threshold < 0.01
    assert ours["coverage"].value < 0.1
    precise = select(labels, probs, hold=thresholds.precision >= 0.85)
    assert precise["recall"].value > 0.7


def test_one_threshold_that_no_row_reaches_makes_mapies_default_certify_nothing():
    rng = np.random.default_rng(0)
    labels = (rng.random(2_000) < 0.3).astype(np.int64)
    probs = np.where(labels == 1, 0.7, 0.2) + 0.2 * rng.random(2_000)  # parted without a mistake
    assert probs.max() < 0.99
    theirs = controlled(labels, probs, precision, 0.85)
    assert np.isnan(theirs.p_values).any()
    assert theirs.best_predict_param is None
    assert mapie_thresholds(labels, probs, 0.85, 0.95)["MAPIE 100 Holm"] < 0.5
    assert select(labels, probs, hold=thresholds.precision >= 0.85)["recall"].value == 1.0


@pytest.mark.parametrize("world", ["overlapping", "ties", "rare", "non_monotone"])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_choice_without_confidence_is_that_of_the_precision_recall_curve(world, seed):
    draw = THRESHOLD_WORLDS[world].draw(3_000, seed)
    precisions, recalls, values = precision_recall_curve(draw.labels, draw.probs)
    met = precisions[:-1] >= 0.7
    point = select(
        draw.labels,
        draw.probs,
        hold=thresholds.precision >= 0.7,
        maximise=thresholds.recall,
        confidence=None,
    )
    assert point.guarantee is None
    assert point["recall"].value == pytest.approx(recalls[:-1][met].max(), abs=1e-12)
    best = met & (recalls[:-1] == recalls[:-1][met].max())
    rows = {int((draw.probs >= value).sum()) for value in values[best]}
    assert int(point.act(draw.probs).sum()) in rows
