"""Examples of inputs.value_names."""

from calibrant.inputs.value_names import name_of, spellings


def test_example_of_spellings():
    assert (spellings(" cat "), spellings(3.0), spellings(True)) == (
        ("cat",),
        ("3", "3.0"),
        ("True", "true", "1"),
    )


def test_example_of_name_of():
    assert (name_of("shop"), name_of(2.0), name_of(None)) == ("shop", "2", "(missing)")
