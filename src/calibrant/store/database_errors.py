"""Translation of database errors into `StoreError`, without passwords or stored values."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import IntegrityError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as NoConnection

from calibrant.errors import StoreError, StoreUnavailable, StoreUnfit

_TRANSIENT_SQLITE = {
    sqlite3.SQLITE_BUSY: "is locked by another process: try again, or stop that process",
    sqlite3.SQLITE_LOCKED: "is locked by another connection: try again",
    sqlite3.SQLITE_FULL: "is full: free space on its disk",
    sqlite3.SQLITE_IOERR: "cannot be read or written (disk I/O error): check its disk",
    sqlite3.SQLITE_READONLY: "is read-only: grant write permission on the file and its folder",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened: check that the file and its folder exist and "
    "are writable",
    sqlite3.SQLITE_PERM: "cannot be opened: grant write permission on the file and its folder",
    sqlite3.SQLITE_NOMEM: "is out of memory: try again",
    sqlite3.SQLITE_PROTOCOL: "is locked by too many processes: try again",
    sqlite3.SQLITE_INTERRUPT: "was interrupted: try again",
    sqlite3.SQLITE_SCHEMA: "was changed concurrently: try again",
}
"""Transient errors, by the primary code of SQLite."""

_BROKEN_SQLITE = {
    sqlite3.SQLITE_NOTADB: "is not a SQLite database: name another file, or move this one",
    sqlite3.SQLITE_CORRUPT: "is damaged: restore the file from a backup",
}

_TRANSIENT_POSTGRESQL = {
    "08": "lost its connection: try again",
    "40": "had a conflict with another transaction: try again",
    "53": "is out of disk space or connections: free space, or raise its limits",
    "55": "is locked by others: try again",
    "57": "was stopped, or a statement timed out: try again",
    "58": "has a disk error: check its disk",
    "25": "is read-only: try again, or name the primary server",
}
"""Transient errors, by the class of SQLSTATE."""

_REFUSED_POSTGRESQL = {
    "password authentication failed": "refused the user or the password: correct them in its URL",
    "no password supplied": "requires a password: add it to its URL",
    "no pg_hba.conf entry": "rejects this user from this host: add a line to its pg_hba.conf",
    r"role \".*\" does not exist": "does not know the user: correct it in its URL, or create it",
    r"database \".*\" does not exist": "does not have this database: create it, or correct its URL",
}
"""Connection errors, by message; their codes do not reach the client."""


@contextmanager
def translate_errors(name: str) -> Iterator[None]:
    """Raise `StoreUnavailable` for transient errors of the database, else `StoreError`."""
    try:
        yield
    except SQLAlchemyError as error:
        # Not `from error`: its text contains the row.
        raise _translate(error, name) from None
    except UnicodeEncodeError:
        raise StoreError(
            "text contains an unpaired surrogate and cannot be stored: remove it."
        ) from None
    except OverflowError:
        raise StoreError("an integer beyond 64 bits cannot be stored: use text.") from None


def is_foreign_key_error(error: IntegrityError) -> bool:
    """Whether a row was refused because the row it references does not exist."""
    cause = error.orig
    if isinstance(cause, sqlite3.Error):
        return cause.sqlite_errorcode == sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY
    return getattr(cause, "sqlstate", None) == "23503"


def _translate(error: SQLAlchemyError, name: str) -> StoreError:
    cause = getattr(error, "orig", None)
    if isinstance(cause, StoreError):
        return cause
    if isinstance(error, NoConnection):
        return StoreUnavailable(
            f"the store {name} has no free connection: try again, or send fewer requests at once."
        )
    if isinstance(cause, sqlite3.Error):
        return _translate_sqlite(cause, name)
    if cause is not None and hasattr(cause, "sqlstate"):
        return _translate_postgresql(cause, name)
    if isinstance(cause, UnicodeEncodeError):
        return StoreError("text contains an unpaired surrogate and cannot be stored: remove it.")
    what = type(error if cause is None else cause).__name__
    return StoreError(f"the store {name} failed ({what}): check its URL.")


def _translate_sqlite(error: sqlite3.Error, name: str) -> StoreError:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # without the extended code
    if code in _TRANSIENT_SQLITE:
        return StoreUnavailable(f"the store {name} {_TRANSIENT_SQLITE[code]}.")
    if code in _BROKEN_SQLITE:
        return StoreUnfit(f"the store {name} {_BROKEN_SQLITE[code]}.")
    return _translate_refusal(name, str(error))


def _translate_postgresql(error: BaseException, name: str) -> StoreError:
    from psycopg import InterfaceError, OperationalError

    state: str | None = getattr(error, "sqlstate", None)
    if state is None and isinstance(error, OperationalError | InterfaceError):
        return _translate_connection(str(error), name)
    if state is None:
        return StoreError(f"the store {name} failed: check its URL.")
    if state[:2] in _TRANSIENT_POSTGRESQL:
        return StoreUnavailable(f"the store {name} {_TRANSIENT_POSTGRESQL[state[:2]]}.")
    # Only the first line of the message: the next ones quote the row.
    diagnosis = getattr(error, "diag", None)
    return _translate_refusal(name, getattr(diagnosis, "message_primary", None) or f"error {state}")


def _translate_connection(message: str, name: str) -> StoreError:
    for sign, sentence in _REFUSED_POSTGRESQL.items():
        if re.search(sign, message):
            return StoreUnavailable(f"the store {name} {sentence}.")
    return StoreUnavailable(
        f"the store {name} cannot be reached: check that the server is running and its URL."
    )


def _translate_refusal(name: str, message: str) -> StoreError:
    if "names_short" in message:
        return StoreError(
            "ids, units, use cases, labels and outcome names are limited to 200 characters, and "
            "one is longer: shorten it."
        )
    if "no such table" in message or ("relation" in message and "does not exist" in message):
        return StoreUnfit(f"the store {name} has no tables yet: open it with Store.open.")
    if (
        "no such column" in message
        or "no column named" in message
        or ("column" in message and "does not exist" in message)
    ):
        return StoreUnfit(f"the store {name} has tables of another program or version: restore it.")
    return StoreError(f"the store {name} refused the statement: {message}.")
