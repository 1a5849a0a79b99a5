"""Where a store is: paths and URLs, and passwords that are never shown."""

from pathlib import Path

import pytest
from tests.sentences import refuses

from calibrant.errors import StoreError
from calibrant.store.address import read_address


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ("calibrant.db", Path.cwd() / "calibrant.db"),
        ("sqlite:///calibrant.db", Path.cwd() / "calibrant.db"),
        ("sqlite+pysqlite:///a/../calibrant.db", Path.cwd() / "calibrant.db"),
        ("sqlite:////var/log/calibrant.db", Path("/var/log/calibrant.db")),
        ("/var/log/what?#.db", Path("/var/log/what?#.db")),
        ("~/calibrant.db", Path.home() / "calibrant.db"),
        (Path("/var/log/calibrant.db"), Path("/var/log/calibrant.db")),
    ],
)
def test_a_path_or_a_sqlite_url_is_a_file(given, path):
    address = read_address(given)
    assert address.path == path
    assert address.dialect == "sqlite"
    assert address.shown == f"sqlite:///{path}"


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "postgresql+psycopg", "PostgreSQL"])
def test_every_name_of_postgresql_means_psycopg(scheme):
    address = read_address(f"{scheme}://user:p%40ss@host:5433/log")
    assert address.dialect == "postgresql"
    assert address.url.drivername == "postgresql+psycopg"
    assert address.url.password == "p@ss"
    assert address.shown == "postgresql://user:***@host:5433/log"


def test_a_password_among_the_options_is_hidden_too():
    address = read_address("postgresql:///log?host=db&password=hunter2&sslpassword=hunter3")
    assert "hunter" not in f"{address.shown} {address.name}"
    assert address.shown == "postgresql:///log?host=db"
    assert address.url.query["password"] == "hunter2"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("mysql://root:hunter2@localhost/log", ("'mysql'", "SQLite or PostgreSQL")),
        (
            "postgresql+psycopg2://root:hunter2@localhost/log",
            ("'postgresql+psycopg2'", "SQLite or PostgreSQL"),
        ),
        ("postgresql://root:hunter2@localhost", ("names no database",)),
        ("postgresql://root:hunter2@localhost:port/log", ("is not valid",)),
        ("postgresql:/root:hunter2@localhost/log", ("malformed URL",)),
        (Path("postgresql://root:hunter2@localhost/log"), ("malformed URL",)),
        ("postgresql:root@localhost/hunter2", ("malformed URL",)),
        (" postgresql://root:hunter2@localhost/log", ("malformed URL",)),
        ("root:hunter2@localhost/log", ("malformed URL",)),
        ("sqlite:calibrant.db", ("malformed URL",)),
        ("sqlite://", ("needs a file",)),
        ("sqlite:///:memory:", ("needs a file",)),
        (":memory:", ("needs a file",)),
        ("", ("needs a file",)),
        ("a\0b", ("needs a file",)),
        ("sqlite://folder/calibrant.db", ("three slashes",)),
        ("sqlite:///calibrant.db?timeout=3", ("without", "options")),
    ],
)
def test_what_cannot_be_a_store_is_refused_in_a_sentence(given, words):
    with refuses(StoreError, *words) as caught:
        read_address(given)
    assert "hunter2" not in str(caught.value)
    assert str(caught.value).endswith(".")
