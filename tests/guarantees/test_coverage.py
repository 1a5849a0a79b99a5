"""Promises of confidence, kept by repetition; `make guarantees` runs the full cells."""

import pytest
from tests.guarantees.coverage import (
    GAPS,
    SIZES,
    classwise_coverage,
    comparison_coverage,
    coverage,
    rejections,
    smooth_coverage,
)

REPETITIONS = 200

# Sixteen cells of six errors each need fewer: the best of the intervals that were not taken covers
# 79 % where it is worst, and passes a cell of 100 in 1 of 300 cases (a cell of 85 %, in 1 of 10).
IN_EACH_CELL = 100


@pytest.mark.smoke
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("gap", GAPS)
def test_calibration_errors_are_covered_at_every_true_error(gap, n):
    found = coverage("even", gap, n, IN_EACH_CELL, seed=0)
    assert min(found.values()) >= 0.90, found


@pytest.mark.parametrize(("gap", "n"), [(0.0, 1000), (0.01, 5000), (0.03, 1000), (0.08, 300)])
def test_calibration_errors_are_covered_on_skewed_scores(gap, n):
    found = coverage("skewed", gap, n, IN_EACH_CELL, seed=0)
    assert min(found.values()) >= 0.90, found


@pytest.mark.smoke
@pytest.mark.parametrize("world", ["binary", "multiclass", "tied"])
def test_smooth_figures_are_covered(world):
    found = smooth_coverage(world, 500, REPETITIONS, seed=0)
    if world == "tied":
        found.pop("nll")  # infinite: some scores are exactly 0 or 1
    assert min(found.values()) >= 0.90, found


@pytest.mark.smoke
@pytest.mark.parametrize("world", ["calibrated_multiclass", "multiclass"])
def test_class_wise_errors_are_covered(world):
    found = classwise_coverage(world, 500, REPETITIONS, seed=0)
    assert min(found.values()) >= 0.90, found


@pytest.mark.parametrize("world", ["calibrated", "calibrated_multiclass"])
@pytest.mark.parametrize("n", [50, 500])
def test_the_calibration_test_raises_false_alarms_as_often_as_it_says(world, n):
    # Three standard errors above 5 % at 400 repetitions.
    assert rejections(world, n, 400, seed=0) <= 0.05 + 3 * 0.011


def test_the_calibration_test_finds_what_is_there():
    assert rejections("binary", 1000, 100, seed=0) > 0.9


@pytest.mark.smoke
@pytest.mark.parametrize("gap", [0.03, 0.08])
def test_paired_differences_are_covered(gap):
    found = comparison_coverage(gap, 1000, REPETITIONS, seed=0)
    assert min(found.values()) >= 0.90, found
