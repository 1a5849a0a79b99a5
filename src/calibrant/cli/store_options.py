"""What the verbs about the store share: which one it is, and how moments and ages are written."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from calibrant.errors import InputError, MissingExtra

if TYPE_CHECKING:
    from calibrant.store import Store

__all__ = ["DEFAULT_DB", "Db", "age_of", "moment_of", "need_store", "open_store"]

DEFAULT_DB = "sqlite:///calibrant.db"

Db = Annotated[
    str,
    typer.Option(
        "--db",
        metavar="URL",
        envvar="CALIBRANT_DB",
        help="The store: sqlite:///FILE or postgresql://USER@HOST/NAME.",
    ),
]

_UNITS = {"h": "hours", "d": "days", "w": "weeks"}


def moment_of(text: str | None, *, flag: str) -> datetime | None:
    """Read a date or a time as ISO 8601 writes it; without a zone it is UTC.

    Examples
    --------
    >>> moment_of("2026-01-31", flag="--since").isoformat()
    '2026-01-31T00:00:00+00:00'
    >>> moment_of("2026-01-31T12:00+02:00", flag="--since").isoformat()
    '2026-01-31T10:00:00+00:00'
    """
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text.strip())
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError):
        raise InputError(
            f"{flag} must be a date or a time like 2026-01-31 or 2026-01-31T12:00Z, got {text!r}."
        ) from None


def age_of(text: str, *, flag: str) -> timedelta:
    """Read an age in hours, days or weeks.

    Examples
    --------
    >>> age_of("90d", flag="--older-than").days
    90
    """
    found = re.fullmatch(r"\s*([0-9]{1,5})\s*([hdw])\s*", text)
    if found is None or int(found[1]) == 0:
        raise InputError(
            f"{flag} must be a number of hours, days or weeks like 12h, 90d or 52w, got {text!r}."
        )
    return timedelta(**{_UNITS[found[2]]: int(found[1])})


def need_store() -> None:
    """Say which extra is missing where the packages of the store are not installed."""
    try:
        import calibrant.store  # noqa: F401
    except ImportError:
        raise MissingExtra("the store", "serve") from None


@contextmanager
def open_store(db: str, *, make: bool = False) -> Iterator[Store]:
    """Lend the store at `db`, and close it; only with `make` is one made that is not there."""
    need_store()
    from calibrant.store import Store
    from calibrant.store.address import read_address

    if make:
        with Store.open(db) as made:
            yield made
        return
    address = read_address(db)
    if address.path is not None and not address.path.exists():
        raise InputError(
            f"--db {address.name}: there is no such file: 'calibrant serve' and 'calibrant keys "
            "add' make one; or name another with --db."
        )
    with Store(db) as there:
        there.check()
        yield there
