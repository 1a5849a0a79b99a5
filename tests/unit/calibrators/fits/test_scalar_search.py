"""The lowest point of a function with several valleys."""

import numpy as np
import pytest

from calibrant.calibrators.base.rows import calibration_rows
from calibrant.calibrators.fits.scalar_search import lowest_point, thinned


def test_one_valley():
    assert lowest_point(lambda x: np.log(x / 3.0) ** 2, (0.01, 1e4)) == pytest.approx(3.0, abs=1e-6)


@pytest.mark.parametrize("deeper", [0.05, 200.0])
def test_the_deeper_of_two_valleys_is_found(deeper):
    other = 10.0 / deeper

    def height(x):
        return min(np.log(x / deeper) ** 2, 0.1 + np.log(x / other) ** 2)

    assert lowest_point(height, (0.01, 1e4)) == pytest.approx(deeper, rel=1e-6)


@pytest.mark.parametrize(("sign", "end"), [(1.0, 0.25), (-1.0, 8.0)])
def test_a_bound_is_reached_exactly(sign, end):
    assert lowest_point(lambda x: sign * x, (0.25, 8.0)) == end


def test_a_coarse_function_only_says_where_to_look():
    found = lowest_point(
        lambda x: np.log(x / 3.0) ** 2, (0.01, 1e4), coarse=lambda x: np.log(x / 3.2) ** 2
    )
    assert found == pytest.approx(3.0, abs=1e-6)


def test_small_inputs_are_not_thinned_and_large_ones_are():
    small = calibration_rows(np.zeros((50, 3)), np.zeros(50, dtype=int))
    large = calibration_rows(np.zeros((100_000, 3)), np.zeros(100_000, dtype=int))
    assert thinned(small).n == 50
    assert 20_000 < thinned(large).n < 30_000
