"""`calibrant keys`: create, list and revoke API keys."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from calibrant.cli.options import Debug, Json
from calibrant.cli.output import echo, print_json, width
from calibrant.cli.store_options import DEFAULT_DB, Db, open_store, require_store

if TYPE_CHECKING:
    from calibrant.store.records import Key

NAME = "keys"
HELP = "Create, list and revoke API keys."
EXAMPLE = "calibrant keys add --name shop --role predict"


def add(
    name: Annotated[str, typer.Option("--name", metavar="NAME", help="Name of the client.")],
    role: Annotated[
        str,
        typer.Option("--role", metavar="ROLE", help="predict, label or admin."),
    ],
    rate: Annotated[
        float | None,
        typer.Option("--rate", metavar="N", help="Requests per minute.", show_default="no limit"),
    ] = None,
    db: Db = DEFAULT_DB,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Create a key and show it once; only its hash is stored.

    Role predict requests predictions, label reports labels and outcomes, admin may do both.

    A missing database is created.
    """
    require_store()
    from calibrant.store.keys import check_key

    check_key(name, role, rate)  # before the database is created
    with open_store(db, create=True) as store:
        key, token = store.keys.add(name, role, rate=rate)
    if json:
        print_json({"schema": 1, "key": _key_to_dict(key), "token": token})
        return
    from calibrant.formatting import quote_name

    echo(f"Key {key.id} for {quote_name(key.name)}, role {key.role}, {_limit(key)}.")
    echo(f"\n{token}\n")
    echo("Keep it now: only its hash is stored, so it cannot be shown again. Clients send it as")
    echo('"Authorization: Bearer <key>", or take it from CALIBRANT_KEY.')


def list_keys(db: Db = DEFAULT_DB, json: Json = False, debug: Debug = False) -> None:
    """List all keys, including revoked ones, with role, limit and last use."""
    with open_store(db) as store:
        keys = store.keys.all()
    if json:
        print_json({"schema": 1, "keys": [_key_to_dict(key) for key in keys]})
    elif keys:
        echo(_table(keys))
    else:
        echo("There are no keys: create one with calibrant keys add.")


def revoke(
    key: Annotated[str, typer.Argument(metavar="ID", help="Id of the key, shown by keys list.")],
    db: Db = DEFAULT_DB,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Revoke a key permanently."""
    with open_store(db) as store:
        revoked = store.keys.revoke(key)
    if json:
        print_json({"schema": 1, "key": _key_to_dict(revoked)})
        return
    from calibrant.formatting import quote_name

    since = _minute(revoked.revoked)
    echo(f"Key {revoked.id} for {quote_name(revoked.name)} is revoked since {since} UTC.")


COMMANDS: dict[str, tuple[Callable[..., None], str]] = {
    "add": (add, EXAMPLE),
    "list": (list_keys, "calibrant keys list"),
    "revoke": (revoke, "calibrant keys revoke 3f9k2m1q8a7z, an id that keys list shows"),
}
"""Subcommands with examples."""


def _key_to_dict(key: Key) -> dict[str, Any]:
    times = {"created": key.created, "last_used": key.last_used, "revoked": key.revoked}
    timestamps = {name: None if at is None else at.isoformat() for name, at in times.items()}
    return {"id": key.id, "name": key.name, "role": key.role, "rate": key.rate, **timestamps}


def _table(keys: Sequence[Key]) -> str:
    from calibrant.reports.text_tables import add_row, table_of, to_text

    names = ("Id", "Name", "Role", "Rate", "Created", "Last used", "Revoked")
    table = table_of(*names, words=(0, 1, 2, 4, 5, 6))
    table.columns[0].no_wrap = True  # ids are copied
    for key in keys:
        rate = "" if key.rate is None else f"{key.rate:,.10g}"
        times = (_day(key.created), _minute(key.last_used), _day(key.revoked))
        add_row(table, key.id, key.name, key.role, rate, *times)
    return to_text([table], width(), color=False).lstrip("\n")


def _limit(key: Key) -> str:
    return "no limit of requests" if key.rate is None else f"{key.rate:,.10g} requests a minute"


def _day(at: datetime | None) -> str:
    return "" if at is None else f"{at:%Y-%m-%d}"


def _minute(at: datetime | None) -> str:
    return "never" if at is None else f"{at:%Y-%m-%d %H:%M}"
