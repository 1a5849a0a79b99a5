"""What all tests share: less looking for garbage, and no test that fails because it took long."""

import gc

import pytest
from hypothesis import settings

settings.register_profile("calibrant", deadline=None)
settings.load_profile("calibrant")


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Leave alone what is there once all tests are collected.

    A million objects stay to the end, and each look at all of them takes most of a second: a third
    of the time of collecting, and more with every thousand tests.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(scope="module")
def rough_intervals():
    """Resample rarely in all of a file that looks at anything but intervals and floors.

    Processes that a test starts resample as ever.
    """
    from tests.few_draws import few_draws

    with few_draws():
        yield
