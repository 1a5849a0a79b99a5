"""Examples of client.address."""

from calibrant.client.address import check_url, is_local, is_loopback


def test_example_of_check_url():
    assert check_url("HTTPS://models.example.org/returns/") == "https://models.example.org/returns"


def test_example_of_is_local():
    assert (is_local("http://localhost:8000"), is_local("http://10.0.0.7:8000")) == (True, False)


def test_example_of_is_loopback():
    assert (is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")) == (
        True,
        True,
        False,
    )
