"""Examples of client.transport."""

from calibrant.client.transport import _parse_retry_after


def test_example_of_parse_retry_after():
    assert (_parse_retry_after("2"), _parse_retry_after("soon")) == (2.0, None)
