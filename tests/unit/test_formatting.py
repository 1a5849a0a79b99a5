"""Numbers in words: a share is 100 % where it is all, and 0 % where it is nothing."""

import math

import pytest

from calibrant.formatting import percent


@pytest.mark.parametrize(
    ("share", "words"),
    [
        (1, "100.0 %"),
        (math.nextafter(1, 0), "> 99.9 %"),
        (0.9995, "> 99.9 %"),
        (0.9994, "99.9 %"),
        (0, "0.0 %"),
        (5e-324, "< 0.01 %"),
        (0.00004, "< 0.01 %"),
        (0.00006, "0.01 %"),
        (0.0094, "0.94 %"),
        (0.0096, "1.0 %"),
        (None, "–"),
        (math.nan, "–"),
    ],
)
def test_a_share_in_percent(share, words):
    assert percent(share) == words
