"""Examples of metrics.debiased."""

import numpy as np

from calibrant.metrics.debiased import rate_noise


def test_example_of_rate_noise():
    assert (
        repr(rate_noise(np.array([4.0]), np.array([0.25]), np.array([4.0]), np.array([1.0])))
        == "array([0.046875])"
    )
