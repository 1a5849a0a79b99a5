"""Examples of reports.text_cells."""

from calibrant.reports.text_tables import shorten


def test_example_of_shorten():
    assert (shorten("one_two_three", 9), shorten("one", 9)) == ("one_…hree", "one")
