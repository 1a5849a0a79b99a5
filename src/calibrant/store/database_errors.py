"""Errors of databases as sentences of ours, without passwords and without what was stored."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import IntegrityError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as NoConnection

from calibrant.errors import StoreError, StoreUnavailable, StoreUnfit

__all__ = ["guarded", "lacks_its_parent"]

_AWAY_SQLITE = {
    sqlite3.SQLITE_BUSY: "is locked by another process: try again, or end what holds it",
    sqlite3.SQLITE_LOCKED: "is locked by another connection: try again",
    sqlite3.SQLITE_FULL: "is full: make room on its disk",
    sqlite3.SQLITE_IOERR: "cannot be read or written (disk I/O error): look after its disk",
    sqlite3.SQLITE_READONLY: "is read-only: let this user write the file and its folder",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened: see that the file and its folder are there and "
    "that this user may write both",
    sqlite3.SQLITE_PERM: "cannot be opened: let this user write the file and its folder",
    sqlite3.SQLITE_NOMEM: "found no memory: try again",
    sqlite3.SQLITE_PROTOCOL: "is locked by too many processes: try again",
    sqlite3.SQLITE_INTERRUPT: "was interrupted: try again",
    sqlite3.SQLITE_SCHEMA: "was changed meanwhile: try again",
}
"""What may have passed a moment later, by SQLite's primary code."""

_BROKEN_SQLITE = {
    sqlite3.SQLITE_NOTADB: "is not a SQLite database: name another file, or move this one away",
    sqlite3.SQLITE_CORRUPT: "is damaged: restore the file from a backup",
}

_AWAY_POSTGRESQL = {
    "08": "lost its connection: try again",
    "40": "was used by others at the same time: try again",
    "53": "has no room or no connection left: make room on its disk, or raise its limits",
    "55": "is locked by others: try again",
    "57": "was stopped, or needed too long for an answer: try again",
    "58": "has trouble with its disk: look after it",
    "25": "is read-only at the moment: try again, or name the server that takes writes",
}
"""What may have passed a moment later, by the class of SQLSTATE."""

_REFUSED_POSTGRESQL = {
    "password authentication failed": "refused the user or the password: correct them in its URL",
    "no password supplied": "asks for a password: write it into its URL",
    "no pg_hba.conf entry": "does not let this user in from here: add a line to its pg_hba.conf",
    r"role \".*\" does not exist": "does not know the user: correct it in its URL, or create it",
    r"database \".*\" does not exist": "has no such database: create it, or correct its URL",
}
"""What a new connection is told; the codes of these errors do not reach the client."""


@contextmanager
def guarded(name: str) -> Iterator[None]:
    """Turn errors of the database into StoreUnavailable, where they may pass, or StoreError.

    Examples
    --------
    >>> from sqlalchemy import create_engine, text
    >>> with guarded("calibrant.db"), create_engine("sqlite:////nowhere/at/all").connect():
    ...     pass
    Traceback (most recent call last):
    ...
    calibrant.errors.StoreUnavailable: the store calibrant.db cannot be opened: see that ...
    """
    try:
        yield
    except SQLAlchemyError as error:
        # Not `from error`: its text has the row that was to be written.
        raise _translated(error, name) from None
    except UnicodeEncodeError:
        raise StoreError("a text with half a surrogate pair cannot be stored: mend it.") from None
    except OverflowError:
        raise StoreError("a whole number beyond 64 bits cannot be stored: use a text.") from None


def lacks_its_parent(error: IntegrityError) -> bool:
    """Tell whether a row was refused because another one that it refers to is not there."""
    cause = error.orig
    if isinstance(cause, sqlite3.Error):
        return cause.sqlite_errorcode == sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY
    return getattr(cause, "sqlstate", None) == "23503"


def _translated(error: SQLAlchemyError, name: str) -> StoreError:
    cause = getattr(error, "orig", None)
    if isinstance(cause, StoreError):
        return cause
    if isinstance(error, NoConnection):
        return StoreUnavailable(
            f"the store {name} has no free connection: try again, or send less at once."
        )
    if isinstance(cause, sqlite3.Error):
        return _of_sqlite(cause, name)
    if cause is not None and hasattr(cause, "sqlstate"):
        return _of_postgresql(cause, name)
    if isinstance(cause, UnicodeEncodeError):
        return StoreError("a text with half a surrogate pair cannot be stored: mend it.")
    what = type(error if cause is None else cause).__name__
    return StoreError(f"the store {name} could not be used ({what}): see that its URL is right.")


def _of_sqlite(error: sqlite3.Error, name: str) -> StoreError:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the rest tells details
    if code in _AWAY_SQLITE:
        return StoreUnavailable(f"the store {name} {_AWAY_SQLITE[code]}.")
    if code in _BROKEN_SQLITE:
        return StoreUnfit(f"the store {name} {_BROKEN_SQLITE[code]}.")
    return _refused(name, str(error))


def _of_postgresql(error: BaseException, name: str) -> StoreError:
    from psycopg import InterfaceError, OperationalError

    state: str | None = getattr(error, "sqlstate", None)
    if state is None and isinstance(error, OperationalError | InterfaceError):
        return _of_connection(str(error), name)
    if state is None:
        return StoreError(f"the store {name} could not be used: see that its URL is right.")
    if state[:2] in _AWAY_POSTGRESQL:
        return StoreUnavailable(f"the store {name} {_AWAY_POSTGRESQL[state[:2]]}.")
    # Only the first line of what the server says: the next ones quote the row.
    diagnosis = getattr(error, "diag", None)
    return _refused(name, getattr(diagnosis, "message_primary", None) or f"error {state}")


def _of_connection(words: str, name: str) -> StoreError:
    for sign, sentence in _REFUSED_POSTGRESQL.items():
        if re.search(sign, words):
            return StoreUnavailable(f"the store {name} {sentence}.")
    return StoreUnavailable(
        f"the store {name} cannot be reached: see that the server runs and that its URL is right."
    )


def _refused(name: str, words: str) -> StoreError:
    if "names_short" in words:
        return StoreError(
            "ids, units, use cases, labels and names of outcomes may have 200 characters in the "
            "store, and one of them has more: shorten it."
        )
    if "no such table" in words or ("relation" in words and "does not exist" in words):
        return StoreUnfit(f"the store {name} has no tables yet: open it with Store.open.")
    if (
        "no such column" in words
        or "no column named" in words
        or ("column" in words and "does not exist" in words)
    ):
        return StoreUnfit(
            f"the store {name} has tables of another program, or of another version: put it back."
        )
    return StoreError(f"the store {name} refused what was asked: {words}.")
