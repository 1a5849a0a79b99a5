"""Numbers as people write them: read back in every convention, and nothing is guessed."""

import math

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant.data.encoders.number_format import MISSING, PLAIN, NumberFormat

GERMAN = NumberFormat(",", grouped=True)
ENGLISH = NumberFormat(".", grouped=True)


def read(texts, format):
    values, strays = format.read(pa.array(texts, pa.large_string()))
    return values.tolist(), strays.tolist()


def write(value, decimal, separator):
    """Write a number digit by digit; the slow reference of the tests."""
    sign, digits = ("-", repr(-value)) if value < 0 else ("", repr(value))
    whole, _, fraction = digits.partition(".")
    groups = []
    while len(whole) > 3 and separator:
        whole, last = whole[:-3], whole[-3:]
        groups.insert(0, last)
    return sign + separator.join([whole, *groups]) + (decimal + fraction if fraction else "")


@pytest.mark.parametrize(
    ("format", "separator"),
    [
        (GERMAN, "."),
        (GERMAN, " "),
        (GERMAN, "\u00a0"),
        (GERMAN, "\u202f"),
        (ENGLISH, ","),
        (ENGLISH, "'"),
        (ENGLISH, "’"),
        (NumberFormat(","), ""),
        (PLAIN, ""),
    ],
)
@settings(max_examples=50, deadline=None)
@given(values=st.lists(st.floats(-1e15, 1e15).filter(lambda x: "e" not in repr(x)), min_size=1))
def test_a_number_comes_back_to_the_bit(format, separator, values):
    texts = [write(value, format.decimal, separator) for value in values]
    assert read(texts, format) == (values, [])
    spaced = [f" {text}\t" for text in texts]
    assert read(spaced, format) == (values, [])
    minus = [text.replace("-", "\u2212") for text in texts]
    assert read(minus, format) == (values, [])


@pytest.mark.parametrize(
    ("format", "text", "value"),
    [
        (GERMAN, "1.234,56", 1234.56),
        (GERMAN, "1.234.567", 1234567.0),
        (GERMAN, "4,", 4.0),
        (GERMAN, ",5", 0.5),
        (GERMAN, "1,5e3", 1500.0),
        (GERMAN, "+2", 2.0),
        (NumberFormat(","), "1.234,5", 1234.5),
        (NumberFormat(","), "1.234.567", 1234567.0),
        (NumberFormat(".", unit="$"), "-$1,234.5", -1234.5),
        (NumberFormat(".", unit="$"), "$-7", -7.0),
        (NumberFormat(".", unit="$"), "7", 7.0),
        (NumberFormat(",", unit="€"), "4,05 €", 4.05),
        (NumberFormat(",", unit="EUR"), "4,05EUR", 4.05),
        (NumberFormat(unit="%"), "12 %", 12.0),
        (PLAIN, "1e5", 1e5),
        (PLAIN, "true", 1.0),
        (PLAIN, "1 234", 1234.0),
    ],
)
def test_what_is_a_number(format, text, value):
    assert read([text], format) == ([value], [])


@pytest.mark.parametrize(
    ("format", "text"),
    [
        (NumberFormat(","), "1.234"),  # thousands or a fraction: the train rows do not tell
        (PLAIN, "1,234"),
        (PLAIN, "1,5"),
        (GERMAN, "4.05"),
        (GERMAN, "1.23,4"),
        (GERMAN, "0.123"),
        (ENGLISH, "1,23,456"),
        (ENGLISH, "1,234'567"),
        (ENGLISH, "1.2.3"),
        (ENGLISH, "1,234e5"),
        (PLAIN, "--5"),
        (NumberFormat(unit="$"), "-$-5"),
        (NumberFormat(unit="$"), "$5$"),
        (NumberFormat(unit="$"), "€5"),
        (NumberFormat(unit="%"), "12"),
        (PLAIN, "12 %"),
        (PLAIN, "€"),
        (PLAIN, "1e400"),
        (PLAIN, "inf"),
        (PLAIN, "0x1F"),
        (PLAIN, "1_000"),
        (PLAIN, "١٢"),
        (PLAIN, "1\x002"),
        (PLAIN, "5 oops"),
        (PLAIN, "9" * 5000),
    ],
)
def test_what_is_not(format, text):
    values, strays = read(["7 %" if format.unit == "%" else "7", text], format)
    assert strays == [1]
    assert values[0] == 7.0


@pytest.mark.parametrize("format", [PLAIN, GERMAN, NumberFormat(unit="%")])
def test_words_for_a_missing_number(format):
    values, strays = read([*MISSING, " ", None], format)
    assert all(map(math.isnan, values))
    assert strays == []
    own = NumberFormat(format.decimal, format.grouped, format.unit, ("oops",))
    assert read(["oops", " oops "], own)[1] == []
    assert read(["oops", "Oops"], format)[1] == [0, 1]


@given(
    texts=st.lists(st.text(max_size=12) | st.text("0123456789.,' -+e€%", max_size=9), min_size=1)
)
def test_a_text_is_a_number_or_a_stray_whatever_it_holds(texts):
    texts = [text for text in texts if text.isprintable()] or ["1"]
    for format in (PLAIN, GERMAN, ENGLISH, NumberFormat(unit="%")):
        values, strays = read(texts, format)
        alone = [read([text], format) for text in texts]
        for i, (value, text) in enumerate(zip(values, texts, strict=True)):
            assert (i in strays) == bool(alone[i][1])
            known = i not in strays and text.strip() not in MISSING
            assert math.isfinite(value) if known else math.isnan(value) or i in strays


@pytest.mark.parametrize("format", [PLAIN, GERMAN, NumberFormat(",", False, "€", ("oops",))])
def test_a_format_survives_its_record(format):
    assert NumberFormat.from_dict(format.to_dict()) == format
    assert read([format.example], format)[1] == []


def test_a_row_does_not_depend_on_the_others():
    texts = ["4.05", "true", "False", "nAn", "Infinity", "oops", "+5", "1"]
    values, strays = read(texts, PLAIN)
    assert strays == [3, 4, 5]
    assert [values[i] for i in (0, 1, 2, 6, 7)] == [4.05, 1.0, 0.0, 5.0, 1.0]
    assert [bool(read([text], PLAIN)[1]) for text in texts] == [i in strays for i in range(8)]
