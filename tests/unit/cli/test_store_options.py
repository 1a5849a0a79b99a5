"""Examples of cli.store_options."""

from calibrant.cli.store_options import parse_age, parse_time


def test_example_of_parse_time():
    assert parse_time("2026-01-31", flag="--since").isoformat() == "2026-01-31T00:00:00+00:00"
    assert (
        parse_time("2026-01-31T12:00+02:00", flag="--since").isoformat()
        == "2026-01-31T10:00:00+00:00"
    )


def test_example_of_parse_age():
    assert parse_age("90d", flag="--older-than").days == 90
