"""The console of two services: one without keys, and one that requires keys."""

import shutil

import pytest
from tests.web.console.made import console, fill, trained_bundle
from tests.web.console.watching import Visits


@pytest.fixture(scope="session")
def packed(tmp_path_factory):
    """A trained bundle and a filled store, to be copied: the folder, the file and the keys."""
    folder = tmp_path_factory.mktemp("packed")
    bundle, db = trained_bundle(folder / "returns"), folder / "calibrant.db"
    keys = fill(bundle, f"sqlite:///{db}")
    return bundle, db, keys


@pytest.fixture(scope="module")
def copied(packed, tmp_path_factory):
    """Copy the bundle and the store; return the folder, the address and the keys."""

    def copy():
        bundle, db, keys = packed
        folder = tmp_path_factory.mktemp("copied")
        shutil.copytree(bundle, folder / "returns")
        shutil.copy(db, folder / "calibrant.db")
        return folder / "returns", f"sqlite:///{folder}/calibrant.db", keys

    return copy


@pytest.fixture(scope="module")
def local(copied):
    """A service that needs no keys."""
    with console(*copied()) as service:
        yield service


@pytest.fixture(scope="module")
def guarded(copied):
    """A service that requires keys."""
    with console(*copied(), need_key=True) as service:
        yield service


@pytest.fixture
def visits(browser):
    """Return a factory of visits; errors on visited pages fail the test."""
    opened = []

    def begin(service):
        opened.append(Visits(browser, service))
        return opened[-1]

    yield begin
    for each in opened:
        each.close()


@pytest.fixture
def at_home(visits, local):
    """Visit the console of the service without keys."""
    return visits(local)


@pytest.fixture
def abroad(visits, guarded):
    """Visit the console of the service with keys."""
    return visits(guarded)
