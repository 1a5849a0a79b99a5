"""Which texts are numbers or dates is certain, or one sentence asks."""

from datetime import datetime

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sentences import assert_mentions, refuses
from tests.unit.data.encoders.test_number_format import write

from calibrant.data.encoders.date_format import DateFormat
from calibrant.data.encoders.number_format import PLAIN, NumberFormat
from calibrant.data.encoders.reading_error import ReadingError, list_rows
from calibrant.data.encoders.table_columns import as_table
from calibrant.data.encoders.text_reading import (
    ReadingOptions,
    check_points,
    learn_format,
    read_as,
    read_texts,
)
from calibrant.errors import InputError

PRICES = [f"{i}.{i % 7}5" for i in range(392)]
STRAYS = [*PRICES[:17], *["oops"] * 8, *PRICES[17:]]


def learn(texts, decimal=None, missing=(), dates=None):
    options = ReadingOptions.check(decimal, missing, dates)
    found = learn_format("price", pa.array(texts, pa.large_string()), options)
    return None if found is None else found.format


@pytest.mark.parametrize(
    ("texts", "format"),
    [
        (["4,05", "1.234,56"], NumberFormat(",", grouped=True)),
        (["4,05", "3"], NumberFormat(",")),
        (["1'234.50", "12"], NumberFormat(".")),
        (["1 234,5", "1\u00a0234,5"], NumberFormat(",")),
        (["1,234", "12,5"], NumberFormat(",")),
        (["1,234", "12.5"], NumberFormat(".", grouped=True)),
        (["1,234", "1,234,567"], NumberFormat(".", grouped=True)),
        (["1,234", "0,123"], NumberFormat(",")),
        (["1,234", "1234,567"], NumberFormat(",")),
        (["€ 4.05", "7"], NumberFormat(".", unit="€")),
        (["$1,234.50", "-$5"], NumberFormat(".", grouped=True, unit="$")),
        (["12 %", "4,5%"], NumberFormat(",", unit="%")),
        (["−5", "4"], PLAIN),
        (["2024-01-31", "2024-02-01T10:00Z"], DateFormat("ymd")),
        (["03/04/2024", "13/06/2024"], DateFormat("dmy")),
        (["03/04/2024", "06/13/2024"], DateFormat("mdy")),
        (["31.12.2023", "2024-01-31"], DateFormat("dmy")),
        (["14:30", "09:05"], DateFormat("time")),
    ],
)
def test_what_the_values_decide(texts, format):
    assert learn([*texts, "", "n/a", None]) == format


@pytest.mark.parametrize(
    "texts",
    [["1", "2"], ["4.05", "1e5"], ["true", "false"], ["a", "b", "1"], ["1.2.3", "1.2.4"],
     ["", "NA"], ["A1", "A2"], ["1-2", "3-4"], [f"id{i}" for i in range(300)],
     ["10.0.0.1", "10.0.0.2"]],
)  # fmt: skip
def test_other_texts_stay_texts(texts):
    assert learn(texts) is None


@pytest.mark.parametrize(
    ("texts", "mentions"),
    [
        (["1,234", "987"], ("'1,234' (row 0)", "comma", "1.234 with decimal=','", "1234 with")),
        (["4,05", "4.05"], ("both decimal marks", "'4.05' (row 1)", "'4,05' (row 0)", "alike")),
        (["€ 4", "$ 5"], ("different units", "'€ 4' (row 0)", "'$ 5' (row 1)", "one unit")),
        (["12 %", "0.12"], ("different units", "'12 %'", "'0.12'")),
        (["03/04/2024", "05/06/2024"], ("'03/04/2024' (row 0)", "dates='dmy'", "dates='mdy'")),
        (["13/04/2024", "04/13/2024"], ("both orders", "'13/04/2024'", "'04/13/2024'")),
        (["1,5e400", "2,5"], ("'1,5e400' (row 0)", "too large")),
        (STRAYS, ("392 of 400 rows", "'oops' (rows 17, 18, 19, 20, 21 and 3 more)",
                  "missing=['oops']", "categories=['price']")),
        ([p.replace(".", ",") for p in STRAYS], ("392 of 400 rows", "'oops'")),
        (["2024-01-31"] * 20 + ["soon"], ("20 of 21 rows", "'soon' (row 20)", "missing=['soon']")),
        ([*map(str, range(60)), *(f"x{i}" for i in range(30))], ("'x0'", "27 other words")),
    ],
)  # fmt: skip
def test_what_is_not_certain_is_asked_in_one_sentence(texts, mentions):
    with refuses(ReadingError, "column 'price'", *mentions) as caught:
        learn(texts)
    assert caught is None or "\n" not in str(caught)


def test_many_different_fractions_as_text_are_numbers():
    assert learn(PRICES) == PLAIN  # as those with decimal commas are, without being asked
    assert learn([f"{i}.5" for i in range(9)]) is None  # few may be the names of versions
    assert learn([str(i) for i in range(900)]) is None  # whole numbers may be codes


@pytest.mark.parametrize("write", [
    lambda d: d.strftime("%d-%b-%Y"), lambda d: d.strftime("%B %d, %Y"),
    lambda d: d.strftime("%d %B %Y"), lambda d: d.strftime("%b. %d %Y, %H:%M"),
])  # fmt: skip
def test_dates_with_the_name_of_a_month_are_read(write):
    days = [datetime(2023, 1 + i % 12, 1 + i % 28) for i in range(60)]
    texts = pa.array([write(day) for day in days], pa.large_string())
    format = learn(texts.to_pylist())
    assert format == DateFormat("ymd")
    dates, strays = format.read(texts)
    assert (dates == np.array(days, dtype="M8[us]")).all()
    assert not len(strays)


@pytest.mark.parametrize("write", ["%m/%d/%y", "%d.%m.%y", "%d-%b-%y"])
def test_dates_with_short_years_are_asked_about(write):
    days = [datetime(2023, 1 + i % 12, 1 + i % 28) for i in range(60)]
    texts = [day.strftime(write) for day in days]
    with refuses(ReadingError, "two digits", texts[0], "four digits", "categories=['price']"):
        learn(texts)
    assert learn(texts[:12]) is None


def test_options_decide_what_the_values_leave_open():
    assert learn(["1,234"], decimal=",") == NumberFormat(",")
    assert learn(["1,234"], decimal=".") == NumberFormat(".", grouped=True)
    assert learn(["1.234", "2.500"], decimal=",") == NumberFormat(",", grouped=True)
    assert learn(["03/04/2024"], dates="mdy") == DateFormat("mdy")
    assert learn(STRAYS, missing=["oops"]) == NumberFormat(missing=("oops",))


def test_options_do_not_overrule_values_that_are_certain():
    assert learn(["52.5200", "13.4050"], decimal=",") == NumberFormat(".")
    assert learn(["04/13/2024", "01/25/2024"], dates="dmy") == DateFormat("mdy")


def test_a_single_value_against_an_option_is_a_stray():
    grouped = ["1.234"] * 30 + ["4.05"]
    with refuses(ReadingError, "decimal comma", "30 of 31", "'4.05' (row 30)"):
        learn(grouped, decimal=",")
    with refuses(ReadingError, "'04/13/2024' (row 30)"):
        learn(["03/04/2024"] * 30 + ["04/13/2024"], dates="dmy")


@settings(max_examples=40, deadline=None)
@given(
    values=st.lists(st.decimals(-(10**7), 10**7, places=2).map(float), min_size=2, max_size=40),
    style=st.sampled_from([(",", "."), (",", " "), (",", ""), (".", "'"), (".", ",")]),
)
def test_a_column_is_read_as_written_or_asked_about_and_never_misread(values, style):
    decimal, separator = style
    texts = [write(value, decimal, separator) for value in values]
    for given_mark in (None, decimal):
        table = as_table({"price": texts})
        try:
            read = read_texts(table, ReadingOptions(decimal=given_mark))
        except ReadingError:
            assert given_mark is None  # the option settles it
            continue
        column = read.columns[0]
        if isinstance(column, np.ndarray):
            assert column.tolist() == values


def test_options_are_checked():
    for options, mentions in (
        ((";", (), None), ("decimal", "';'")),
        ((None, "oops", None), ("missing", "list", "['oops']")),
        ((None, [""], None), ("missing", "list of words")),
        ((None, (), "ymd"), ("dates", "'dmy'", "'mdy'", "'ymd'")),
    ):
        with refuses(InputError, *mentions):
            ReadingOptions.check(*options)


def test_an_error_tells_rows_of_a_file_and_flags():
    with pytest.raises(ReadingError) as caught:
        learn(STRAYS)

    def name(rows, n):
        return list_rows("data row", [str(row + 1) for row in rows], n)

    said = caught.value.describe("a.csv: column 'price'", name=name, command=True)
    assert_mentions(said, "a.csv: column 'price'", "data rows 18, 19", "--missing oops",
                    "--category price")  # fmt: skip


def test_further_columns_that_need_a_decision_are_named():
    table = as_table({"a": ["1,234"], "b": ["x"], "c": ["2,345"]})
    with refuses(ReadingError, "column 'a'", "'c'"):
        read_texts(table, ReadingOptions())


def test_whole_numbers_beside_decimal_commas_are_not_misread_later():
    texts = {"price": ["4,05"], "n": [7], "share": ["12 %"], "x": [0.5]}
    read = read_texts(as_table(texts), ReadingOptions())
    assert {name: each.decimal for name, each in read.formats.items()} == {
        "price": ",", "n": ",", "share": ","
    }  # fmt: skip
    with refuses(ReadingError, "'1.234' (row 0)", "numeric in fit"):
        read_as("n", pa.array(["1.234"], pa.large_string()), read.formats["n"])


@pytest.mark.parametrize(
    ("cells", "formats", "asks"),
    [
        (["1.234", "2.500"], {}, False),
        (["1.234", "2.500"], {"other": NumberFormat(",")}, True),
        (["1.234", "689"], {}, True),
        (["1.234", "689.5"], {"other": NumberFormat(",")}, False),
        (["0.123", "7"], {}, False),
        (["1", "2"], {"other": NumberFormat(",")}, False),
    ],
)
def test_points_that_may_separate_thousands_are_asked_about(cells, formats, asks):
    words = pa.array(cells, pa.large_string())
    if not asks:
        return check_points("n", words, formats)
    with refuses(ReadingError, "'1.234'", "1234 with decimal=','", "1.234 with decimal='.'"):
        check_points("n", words, formats)
    return None


def test_columns_of_another_kind_than_in_fit_are_refused():
    dates = np.array(["2024-01-31"], "M8[us]")
    with refuses(InputError, "'price'", "numeric in fit", "dates"):
        read_as("price", dates, PLAIN)
    with refuses(InputError, "'price'", "dates in fit", "numbers"):
        read_as("price", np.array([1.0]), DateFormat())
    assert np.isnat(read_as("price", np.array([np.nan]), DateFormat())).all()
    assert np.isnan(read_as("price", dates[:0], PLAIN)).all()
