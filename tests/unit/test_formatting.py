"""Numbers in words: a share is 100 % where it is all, and 0 % where it is nothing."""

import math

import pytest

from calibrant.formatting import (
    format_count,
    format_signed,
    percent,
    printable,
    quote_name,
    rate_ends,
    sentence,
)


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


def test_example_of_rate_ends():
    assert rate_ends({"value": 0.9, "low": 0.8123, "high": 0.9512}) == ("0.81", "0.95")
    assert rate_ends({"value": 0.9986, "low": 0.9972, "high": 0.9994}) == ("0.997", "0.999")


def test_example_of_format_signed():
    assert (format_signed(0.0321), format_signed(None)) == ("+0.0321", "–")


def test_example_of_sentence():
    assert sentence("over-confident (n=20)") == "Over-confident (n=20)."


def test_example_of_format_count():
    assert (format_count(1, "row"), format_count(2000, "row"), format_count(2, "class")) == (
        "1 row",
        "2,000 rows",
        "2 classes",
    )


def test_example_of_quote_name():
    assert quote_name("cat") == "“cat”"


def test_example_of_printable():
    assert printable("red\x1b[31m") == "red�[31m"
