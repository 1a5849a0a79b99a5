"""Database addresses: a path or URL, validated, displayed without its password."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from calibrant.errors import StoreError

_SCHEME = re.compile(r"(?i)([a-z][a-z0-9+.-]*):(?://|$)")
_LIKE_A_URL = re.compile(r"(?is)^\s*[a-z][a-z0-9+.-]+:/|^\s*(?:postgres|sqlite)[a-z0-9+]*:|:.*@")
"""Malformed URLs: a missing slash, an extra space or no scheme."""

_SQLITE = ("sqlite", "sqlite+pysqlite")
_POSTGRESQL = ("postgresql", "postgres", "postgresql+psycopg")
_REMEDY = "use a path, sqlite:///calibrant.db or postgresql://user:password@host/database"


@dataclass(frozen=True, slots=True)
class Address:
    """Address of a database."""

    shown: str  # URL without password
    name: str
    path: Path | None = None  # file of a SQLite database
    url: URL | None = None  # driver URL of a PostgreSQL database, with password

    @property
    def dialect(self) -> str:
        """Return "sqlite" or "postgresql"."""
        return "postgresql" if self.path is None else "sqlite"


def read_address(address: str | os.PathLike[str]) -> Address:
    """Parse a path or URL without opening it."""
    text = os.fspath(address)
    scheme = _SCHEME.match(text)
    if scheme is None and _LIKE_A_URL.search(text):  # not shown: it may contain a password
        raise StoreError(f"the address of the store is a malformed URL: {_REMEDY}.")
    if scheme is None:
        return _of_file(text, name=text)
    kind = scheme[1].lower()
    if kind not in _SQLITE + _POSTGRESQL:
        raise StoreError(f"a store is kept in SQLite or PostgreSQL, not in {kind!r}: {_REMEDY}.")
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):  # ValueError: a port that is not a number
        raise StoreError(f"the URL of the store is not valid: {_REMEDY}.") from None
    return _of_sqlite(url) if kind in _SQLITE else _of_postgresql(url)


def _of_sqlite(url: URL) -> Address:
    if url.host or url.username or url.query:
        raise StoreError(
            "the URL of a SQLite store is a path after three slashes, without host or options: "
            "use sqlite:///calibrant.db or sqlite:////folder/calibrant.db."
        )
    return _of_file(url.database or "", name=url.database or "")


def _of_file(text: str, *, name: str) -> Address:
    if text in ("", ":memory:") or "\0" in text:
        raise StoreError(
            f"a store needs a file, because memory is lost when the process ends: {_REMEDY}."
        )
    path = Path(os.path.abspath(os.path.expanduser(text)))
    return Address(f"sqlite:///{path}", name, path=path)


def _of_postgresql(url: URL) -> Address:
    if not url.database and "dbname" not in url.query:
        raise StoreError(f"the URL of the store names no database: {_REMEDY}.")
    plain = url.set(drivername="postgresql", query={})
    query = {name: value for name, value in url.query.items() if "password" not in name.lower()}
    return Address(
        plain.set(query=query).render_as_string(hide_password=True),
        plain.render_as_string(hide_password=True),
        url=url.set(drivername="postgresql+psycopg"),
    )
