"""Examples of serving.console.pages.model.view."""

from calibrant.serving.console.pages.model.view import parse_moment


def test_example_of_parse_moment():
    assert (parse_moment("2026-11-16T11:40:11+00:00").year, parse_moment("yesterday")) == (
        2026,
        None,
    )
