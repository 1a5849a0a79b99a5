"""Examples of reports.displays.problems."""

from calibrant.reports.displays.problems import with_gaps


def test_example_of_with_gaps():
    assert (
        repr(with_gaps({"score": [0.1, 0.2, 0.3, 0.9], "rate": [0.0, 0.1, 0.2, 0.8]}))
        == "([0.1, 0.2, 0.3, nan, 0.9], [0.0, 0.1, 0.2, nan, 0.8])"
    )
