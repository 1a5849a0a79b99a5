"""Examples of reports.displays.epoch_panels."""

import numpy as np

from calibrant.reports.displays.epoch_panels import (
    bin_title,
    choose_bins,
    describe_range,
    filled_bins,
)


def test_example_of_filled_bins():
    assert filled_bins(np.array([[0.1, np.nan, 0.3], [0.1, np.nan, np.nan]])) == [0, 2]


def test_example_of_choose_bins():
    every = list(range(15))
    assert (
        choose_bins(15, None, every),
        choose_bins(15, None, [0, 9]),
        choose_bins(15, [3], every),
    ) == ((0, 7, 14), (0, 9), (3,))


def test_example_of_bin_title():
    assert (
        bin_title(0, [0, 1, 2]),
        bin_title(2, [0, 1, 2, 3, 4]),
        bin_title(3, [0, 1, 2, 3, 4]),
    ) == ("least sure rows (bin 0)", "middle rows (bin 2)", "bin 3")


def test_example_of_describe_range():
    edges, count = np.array([0.4, 0.99987]), np.array([9, 9, 9])
    assert [describe_range(b, edges, count) for b in range(3)] == [
        "below 0.40",
        "0.40 to 0.9998",
        "above 0.9998",
    ]
