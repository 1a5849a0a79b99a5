"""The console of two services: one for this machine alone, and one that asks for keys."""

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
    """A service that asks for keys."""
    with console(*copied(), need_key=True) as service:
        yield service


@pytest.fixture
def visits(browser):
    """Return what visits a service; all that went wrong on its pages fails the test."""
    made = []

    def begin(service):
        made.append(Visits(browser, service))
        return made[-1]

    yield begin
    for each in made:
        each.close()


@pytest.fixture
def at_home(visits, local):
    """Visit the console of the service without keys."""
    return visits(local)


@pytest.fixture
def abroad(visits, guarded):
    """Visit the console of the service with keys."""
    return visits(guarded)
