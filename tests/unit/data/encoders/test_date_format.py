"""Dates as people write them, read as the calendar has them."""

import datetime

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant.data.encoders.date_format import EXAMPLES, ISO, DateFormat

MOMENTS = st.datetimes(datetime.datetime(1, 1, 3), datetime.datetime(9999, 12, 29))
STYLES = {
    "ymd": ["{0.year:04d}-{0.month:02d}-{0.day:02d}", "{0.year:04d}/{0.month}/{0.day}"],
    "dmy": ["{0.day:02d}/{0.month:02d}/{0.year:04d}", "{0.day}.{0.month}.{0.year:04d}"],
    "mdy": ["{0.month:02d}/{0.day:02d}/{0.year:04d}", "{0.month}-{0.day}-{0.year:04d}"],
}


def read(texts, format=ISO):
    dates, strays = format.read(pa.array(texts, pa.large_string()))
    return dates, strays.tolist()


@pytest.mark.parametrize("order", STYLES)
@given(moment=MOMENTS)
def test_a_moment_comes_back(order, moment):
    clock = moment.time().isoformat()
    for style in STYLES[order]:
        text = style.format(moment)
        dates, strays = read([text, f"{text} {clock}"], DateFormat(order))
        assert strays == []
        assert dates[0] == np.datetime64(moment.date(), "us")
        assert dates[1] == np.datetime64(moment, "us")


@given(moment=MOMENTS, minutes=st.integers(-14 * 60, 14 * 60))
def test_a_time_zone_is_subtracted(moment, minutes):
    zone = datetime.timezone(datetime.timedelta(minutes=minutes))
    dates, strays = read([moment.replace(tzinfo=zone).isoformat()])
    assert strays == []
    assert dates[0] == np.datetime64(moment, "us") - np.timedelta64(minutes, "m")


@pytest.mark.parametrize(
    ("order", "text", "wanted"),
    [
        ("ymd", "2024-01-31T10", "2024-01-31T10:00"),
        ("ymd", "2024-02-29", "2024-02-29"),
        ("dmy", "3.4.2024, 12:05 am", "2024-04-03T00:05"),
        ("mdy", "3/4/2024 1:30 PM", "2024-03-04T13:30"),
        ("mdy", "2024-01-31", "2024-01-31"),
        ("dmy", "02-Dec-2023", "2023-12-02"),
        ("mdy", "December 2nd, 2023 1:30 PM", "2023-12-02T13:30"),
        ("time", "14:30", "1970-01-01T14:30"),
    ],
)
def test_dates_by_hand(order, text, wanted):
    dates, strays = read([text], DateFormat(order))
    assert (dates[0], strays) == (np.datetime64(wanted, "us"), [])


@pytest.mark.parametrize(
    "text",
    ["2023-02-29", "2024-13-01", "2024-00-10", "2024-01-31 25:00", "2024-01-31 10:60", "0000-01-01",
     "2024-01/31", "31/01/2024", "2024-01-31 10:00+99", "20240131", "soon", "2024-01-31 13:00 pm",
     "31 Feb 2024", "3 Mayday 2024", "Dec 2023", "02-Dec-23"],
)  # fmt: skip
def test_what_is_no_iso_date(text):
    assert read(["2024-01-31", text])[1] == [1]


def test_missing_words_and_records():
    dates, strays = read(["", None, "n/a", "-", "never"], DateFormat("dmy", ("never",)))
    assert np.isnat(dates).all()
    assert strays == []
    for order in EXAMPLES:
        format = DateFormat(order, ("never",))
        assert DateFormat.from_dict(format.to_dict()) == format
        assert read([format.example], format)[1] == []


@given(texts=st.lists(st.text(max_size=12) | st.text("0123456789-/.: TZ", max_size=16), min_size=1))
def test_any_text_is_a_date_or_a_stray(texts):
    for order in EXAMPLES:
        dates, strays = read(texts, DateFormat(order))
        assert len(dates) == len(texts)
        assert set(strays) <= set(np.flatnonzero(np.isnat(dates)).tolist())
