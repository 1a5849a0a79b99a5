"""Features of dates: days and the parts that vary, from the train rows alone."""

import datetime
import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tests.sentences import refuses

from calibrant.data import TableEncoder
from calibrant.data.encoders.date_column import DateColumn
from calibrant.errors import InputError

DAYS = [
    datetime.datetime(2022, 1, 3) + datetime.timedelta(days=i, hours=i % 24) for i in range(800)
]


def dates(*texts):
    return np.array(texts, dtype="M8[us]")


def test_features_by_hand():
    column = DateColumn.learn("day", dates("2024-01-01", "2024-01-03", "NaT"))  # Monday, Wednesday
    assert column.parts == ("weekday",)
    assert column.features == ("day", "day missing", "day weekday sin", "day weekday cos")
    angle = 2 * np.pi / 7
    wanted = [[0.0, 0.0, np.sin(angle), np.cos(angle)], [0.0, 1.0, 0.0, 0.0]]
    assert column.encode(dates("2024-01-02", "NaT")) == pytest.approx(np.array(wanted), abs=1e-7)


def test_numbers_are_those_of_the_calendar():
    column = DateColumn.learn("day", np.array(DAYS, dtype="M8[us]"))
    assert column.numbers == ("day", "day weekday", "day month", "day hour")
    found = column.read_numbers(np.array([*DAYS, "NaT"], dtype="M8[us]"))
    assert np.isnan(found[-1]).all()
    for day, row in zip(DAYS, found, strict=False):
        days = (day - datetime.datetime(1970, 1, 1)) / datetime.timedelta(days=1)
        assert row == pytest.approx([days, day.weekday(), day.month - 1, day.hour], abs=1e-6)


def test_only_parts_that_vary_are_features():
    def parts(*texts):
        return DateColumn.learn("day", dates(*texts)).parts

    assert parts("2024-01-01", "2024-01-08") == ()
    assert parts("2024-01-01", "2024-06-03") == ()  # less than a year tells nothing of months
    assert parts("2022-01-03", "2024-06-03") == ("month",)
    assert parts("2024-01-01T10:00", "2024-01-01T11:00") == ("hour",)


def test_time_goes_on_but_the_trend_does_not():
    column = DateColumn.learn("day", np.array(DAYS, dtype="M8[us]"))
    last = np.array(DAYS, dtype="M8[us]").max()
    later = column.encode(np.array([last, last + np.timedelta64(7000, "D")]))
    assert later[0, 0] == later[1, 0]
    assert not TableEncoder().fit({"day": DAYS}).is_far({"day": [DAYS[0].replace(year=1900)]}).any()


KINDS = {
    "datetimes": lambda days: {"day": days},
    "texts": lambda days: {"day": [str(day) for day in days]},
    "day first": lambda days: {"day": [f"{day:%d/%m/%Y %H:%M}" for day in days]},
    "pandas": lambda days: pd.DataFrame({"day": days}),
    "polars": lambda days: pl.DataFrame({"day": days}),
    "arrow, nanoseconds": lambda days: pa.table({"day": pa.array(days, pa.timestamp("ns"))}),
    "arrow, zone": lambda days: pa.table(
        {"day": pa.array(days, pa.timestamp("s")).cast(pa.timestamp("s", "UTC"))}
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_dates_of_every_type_give_the_same_features(kind):
    make = KINDS[kind]
    plain, other = TableEncoder().fit({"day": DAYS}), TableEncoder().fit(make(DAYS))
    assert other.columns_[0].days == plain.columns_[0].days
    assert np.array_equal(other.transform(make(DAYS)), plain.transform({"day": DAYS}))
    one = other.transform(make(DAYS[5:6]))
    assert one.tobytes() == plain.transform({"day": DAYS})[5:6].tobytes()


def test_days_and_times_of_the_day():
    days = [datetime.date(2024, 1, 1), None, datetime.date(2024, 1, 9)]
    names = TableEncoder().fit({"day": days}).get_feature_names_out().tolist()
    assert names[:2] == ["day", "day missing"]
    times = TableEncoder().fit({"at": [datetime.time(10), datetime.time(12, 30)]})
    assert times.get_feature_names_out().tolist() == ["at", "at hour sin", "at hour cos"]
    asked = times.transform({"at": ["10:00"]})
    assert asked.tobytes() == times.transform({"at": [datetime.time(10)]}).tobytes()


def test_an_encoder_of_dates_survives_json_to_the_bit():
    encoder = TableEncoder(dates="dmy").fit({"day": [f"{day:%d/%m/%Y}" for day in DAYS]})
    saved = json.loads(json.dumps(encoder.to_dict()))
    assert saved["format"] == 2
    again = TableEncoder.from_dict(saved)
    asked = {"day": ["03/04/2024", "", "2024-04-03"]}
    assert again.to_dict() == saved
    assert again.transform(asked).tobytes() == encoder.transform(asked).tobytes()
    saved["columns"][0]["parts"] = ["decade"]
    with refuses(InputError, "'decade'", "upgrade"):
        TableEncoder.from_dict(saved)


def test_dates_are_neither_categories_nor_numbers():
    with refuses(InputError, "categories", "'day'", "dates"):
        TableEncoder(categories=["day"]).fit({"day": DAYS})
    with refuses(InputError, "clean", "'day'", "dates"):
        TableEncoder(clean={"day": {"x": "y"}}).fit({"day": DAYS})
    with refuses(InputError, "'x'", "numeric in fit", "dates"):
        TableEncoder().fit({"x": [1.0, 2.0]}).transform({"x": DAYS[:1]})
    with refuses(InputError, "'x'", "text in fit", "dates"):
        TableEncoder().fit({"x": ["a", "b"]}).transform({"x": DAYS[:1]})
    with refuses(InputError, "'day'", "dates in fit", "'soon' (row 1)", "leave it empty"):
        TableEncoder().fit({"day": DAYS}).transform({"day": ["2024-01-31", "soon"]})
