"""Examples of reports.calibration.result."""

from calibrant.reports.calibration.result import change_of
from calibrant.results import Difference


def test_example_of_change_of():
    from calibrant.results import Interval

    assert change_of(Difference("nll", 0.5, 0.4, -0.1, "", Interval(-0.2, -0.05))) == "better"
    assert (
        change_of(Difference("accuracy", 0.5, 0.4, -0.1, "", Interval(-0.2, 0.05)))
        == "no clear difference"
    )
