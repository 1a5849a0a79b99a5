"""Options of the verbs that use the store: URL, times and ages."""

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

DEFAULT_DB = "sqlite:///calibrant.db"

Db = Annotated[
    str,
    typer.Option(
        "--db",
        metavar="URL",
        envvar="CALIBRANT_DB",
        help="Database: sqlite:///FILE or postgresql://USER@HOST/NAME.",
    ),
]

_UNITS = {"h": "hours", "d": "days", "w": "weeks"}


def parse_time(text: str | None, *, flag: str) -> datetime | None:
    """Parse an ISO 8601 date or time; UTC unless it has a zone."""
    if text is None:
        return None
    try:
        time = datetime.fromisoformat(text.strip())
        return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    except (ValueError, OverflowError):
        raise InputError(
            f"{flag} must be a date or a time like 2026-01-31 or 2026-01-31T12:00Z, got {text!r}."
        ) from None


def parse_age(text: str, *, flag: str) -> timedelta:
    """Parse an age in hours, days or weeks."""
    match = re.fullmatch(r"\s*([0-9]{1,5})\s*([hdw])\s*", text)
    if match is None or int(match[1]) == 0:
        raise InputError(
            f"{flag} must be a number of hours, days or weeks like 12h, 90d or 52w, got {text!r}."
        )
    return timedelta(**{_UNITS[match[2]]: int(match[1])})


def require_store() -> None:
    """Raise `MissingExtra` if the packages of the store are not installed."""
    try:
        import calibrant.store  # noqa: F401
    except ImportError:
        raise MissingExtra("the store", "serve") from None


@contextmanager
def open_store(db: str, *, create: bool = False) -> Iterator[Store]:
    """Open and close the store at `db`; a missing one is created only with `create`."""
    require_store()
    from calibrant.store import Store
    from calibrant.store.database import read_address

    if create:
        with Store.open(db) as store:
            yield store
        return
    address = read_address(db)
    if address.path is not None and not address.path.exists():
        raise InputError(
            f"--db {address.name}: file not found: 'calibrant serve' and 'calibrant keys "
            "add' create one; or name another with --db."
        )
    with Store(db) as store:
        store.check()
        yield store
