"""Examples of inputs.arrays."""

from calibrant.inputs.arrays import as_array, format_position


def test_example_of_as_array():
    assert repr(as_array([1, 2], "labels")) == "array([1, 2])"


def test_example_of_format_position():
    assert (format_position((3,)), format_position((3, 1))) == ("row 3", "row 3, column 1")
