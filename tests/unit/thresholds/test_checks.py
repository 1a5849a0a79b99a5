"""Examples of thresholds.checks."""

from tests.sentences import refuses

from calibrant.errors import InputError
from calibrant.thresholds.checks import check_between_0_and_1


def test_example_of_check_between_0_and_1():
    with refuses(InputError, "share must lie strictly between 0 and 1, got 5: 5 percent is 0.05."):
        check_between_0_and_1(5, "share", "5 percent is 0.05")
