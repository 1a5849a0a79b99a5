"""Examples of distribution."""

from calibrant.distribution import own_requirements


def test_example_of_own_requirements():
    assert any(line.startswith("numpy>=") for line in own_requirements())
