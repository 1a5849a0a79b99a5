"""The lowest point of a function with several valleys."""

import numpy as np
import pytest

from calibrant.calibrators.base.rows import as_calibration_rows
from calibrant.calibrators.fits.scalar_search import find_minimum, subsample_rows


def test_one_valley():
    assert find_minimum(lambda x: np.log(x / 3.0) ** 2, (0.01, 1e4)) == pytest.approx(3.0, abs=1e-6)


@pytest.mark.parametrize("deeper", [0.05, 200.0])
def test_the_deeper_of_two_valleys_is_found(deeper):
    other = 10.0 / deeper

    def height(x):
        return min(np.log(x / deeper) ** 2, 0.1 + np.log(x / other) ** 2)

    assert find_minimum(height, (0.01, 1e4)) == pytest.approx(deeper, rel=1e-6)


@pytest.mark.parametrize(("sign", "end"), [(1.0, 0.25), (-1.0, 8.0)])
def test_a_bound_is_reached_exactly(sign, end):
    assert find_minimum(lambda x: sign * x, (0.25, 8.0)) == end


def test_a_coarse_function_only_says_where_to_look():
    found = find_minimum(
        lambda x: np.log(x / 3.0) ** 2, (0.01, 1e4), coarse=lambda x: np.log(x / 3.2) ** 2
    )
    assert found == pytest.approx(3.0, abs=1e-6)


def test_small_inputs_are_not_thinned_and_large_ones_are():
    small = as_calibration_rows(np.zeros((50, 3)), np.zeros(50, dtype=int))
    large = as_calibration_rows(np.zeros((100_000, 3)), np.zeros(100_000, dtype=int))
    assert subsample_rows(small).n == 50
    assert 20_000 < subsample_rows(large).n < 30_000
