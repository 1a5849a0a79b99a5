"""Promises about thresholds, kept by repetition; `make guarantees` runs the full cells."""

from contextlib import suppress

import numpy as np
import pytest
from tests.guarantees.promise_cells import (
    cells,
    every_threshold_cells,
    joint_cells,
    precision_cells,
    rate_cells,
    wrong_ways,
)
from tests.guarantees.promises import Cell, Count, count, count_all, count_each, short_refusals

from calibrant.calibrators import HistogramBinning
from calibrant.testing.threshold_worlds import THRESHOLD_WORLDS, constant_rate, hugging
from calibrant.thresholds import LabelUse, TargetUnreachable, precision, select
from calibrant.thresholds.proof.walk import binomial_passes

REPETITIONS = 200


def named(of):
    return [pytest.param(cell, id=f"{cell.world.name}-{cell.what}-{cell.delta}") for cell in of]


def check(cell: Cell, found: Count) -> None:
    assert found.keeps(cell.delta), f"{cell.what} in {cell.world.name}: {found}"


@pytest.mark.smoke
@pytest.mark.parametrize("cell", named([c for n in (300, 1_000) for c in precision_cells(n)]))
def test_precision_is_kept(cell):
    check(cell, count(cell, REPETITIONS, seed=0))


@pytest.mark.smoke
@pytest.mark.parametrize("cell", named(c for n in (300, 1_000) for c in rate_cells(n)))
def test_other_rates_are_kept(cell):
    check(cell, count(cell, REPETITIONS, seed=0))


@pytest.mark.smoke
@pytest.mark.parametrize("cell", named(joint_cells(1_000)))
def test_joint_promises_costs_weights_and_chosen_models_are_kept(cell):
    check(cell, count(cell, REPETITIONS, seed=0))


@pytest.mark.parametrize("name", THRESHOLD_WORLDS)
def test_precision_is_kept_with_more_rows(name):
    world = THRESHOLD_WORLDS[name]
    cell = Cell(world, (precision >= world.target,), 5_000)
    check(cell, count(cell, REPETITIONS, seed=0))


@pytest.mark.smoke
@pytest.mark.parametrize("cell", named(every_threshold_cells(1_000)))
def test_no_certified_threshold_at_all_misses_the_target(cell):
    check(cell, count_all(cell, REPETITIONS, seed=0))


@pytest.mark.smoke
def test_points_of_several_classes_are_kept_together():
    found = count_each(300, 3, 0.2, REPETITIONS, seed=0)
    assert found.issued > 0
    assert found.keeps(0.2), found


def test_promises_are_issued_where_they_can_be_kept():
    for name in ("separable", "bimodal", "overlapping", "ties", "saturated", "non_monotone"):
        found = count(Cell(THRESHOLD_WORLDS[name], (precision >= 0.85,), 5_000), 20, seed=0)
        assert found.issued > 10, name


def test_the_level_is_used_up_and_no_more():
    # One start fits in, and it passes on straight hits alone: 0.99^161 = 0.198.
    cell = Cell(hugging(0.99, 1e-6), (precision >= 0.99,), 300, 0.2)
    found = count(cell, 2_000, seed=0)
    assert found.broken / found.runs == pytest.approx(0.198, abs=0.028)


def test_the_plain_choice_breaks_its_promise_in_half_of_the_runs():
    cell, _ = wrong_ways(1_000)["the threshold whose estimate meets the target"]
    assert 0.4 < count(cell, REPETITIONS, seed=0).broken / REPETITIONS < 0.75


@pytest.mark.parametrize("way", wrong_ways(1_000))
def test_wrong_ways_are_caught(way):
    cell, allowed = wrong_ways(1_000)[way]
    assert not count(cell, 2 * REPETITIONS, seed=0).keeps(allowed)


def test_a_test_at_each_threshold_without_more_is_caught():
    world, rng, broken = constant_rate(), np.random.default_rng(0), 0
    for _ in range(REPETITIONS):
        draw = world.draw(1_000, rng)
        hits = np.cumsum(draw.labels[np.argsort(-draw.probs)])
        broken += binomial_passes(hits, 0.85)(np.arange(1, 1_001), 0.05).any()
    assert not Count(broken, broken, REPETITIONS).keeps(0.05)


def test_cells_cover_every_world():
    assert {cell.world.name for cell in cells(300)} >= set(THRESHOLD_WORLDS)


def test_a_calibrator_that_reorders_the_same_rows_voids_the_promise():
    # In this world every promise is broken, so that those given are those broken.
    world, rng = constant_rate(), np.random.default_rng(0)
    given = {"not told": 0, "told": 0}
    for _ in range(REPETITIONS):
        draw = world.draw(1_000, rng)
        logits = np.log(draw.probs) - np.log1p(-draw.probs)
        binned = HistogramBinning().fit(logits, draw.labels)
        probs = binned.predict_proba(logits)
        for name, label_use in (("not told", LabelUse()), ("told", LabelUse(calibrator=binned))):
            with short_refusals(), suppress(TargetUnreachable):
                point = select(draw.labels, probs, hold=precision >= 0.85, label_use=label_use)
                given[name] += point.guarantee is not None
    assert not Count(given["not told"], given["not told"], REPETITIONS).keeps(0.05)
    assert given["told"] == 0
