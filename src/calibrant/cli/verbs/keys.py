"""`calibrant keys`: make, list and revoke the keys of a service."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from calibrant.cli.options import Debug, Json
from calibrant.cli.output import print_json, say, width
from calibrant.cli.store_options import DEFAULT_DB, Db, need_store, open_store

if TYPE_CHECKING:
    from calibrant.store.records import Key

__all__ = ["add", "list_keys", "revoke"]

NAME = "keys"
HELP = "Make, list and revoke the keys of a service."
EXAMPLE = "calibrant keys add --name shop --role predict"


def add(
    name: Annotated[
        str, typer.Option("--name", metavar="NAME", help="Whose it is, for people to read.")
    ],
    role: Annotated[
        str,
        typer.Option("--role", metavar="ROLE", help="What it may do: predict, label or admin."),
    ],
    rate: Annotated[
        float | None,
        typer.Option(
            "--rate", metavar="N", help="Requests it has a minute.", show_default="no limit"
        ),
    ] = None,
    db: Db = DEFAULT_DB,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Make a key and show it, this once: only its hash is kept.

    Role predict asks for predictions, label tells labels and outcomes, admin does all.

    A database that is not there yet is made.
    """
    need_store()
    from calibrant.store.keys import check_key

    check_key(name, role, rate)  # before a database is made
    with open_store(db, make=True) as store:
        key, token = store.keys.add(name, role, rate=rate)
    if json:
        print_json({"schema": 1, "key": _as_dict(key), "token": token})
        return
    from calibrant.formatting import quote_name

    say(f"Key {key.id} for {quote_name(key.name)}, role {key.role}, {_limit(key)}.")
    say(f"\n{token}\n")
    say("Keep it now: only its hash is stored, so it cannot be shown again. Clients send it as")
    say('"Authorization: Bearer <key>", or take it from CALIBRANT_KEY.')


def list_keys(db: Db = DEFAULT_DB, json: Json = False, debug: Debug = False) -> None:
    """Show every key, revoked ones too, with role, limit and last use."""
    with open_store(db) as store:
        found = store.keys.all()
    if json:
        print_json({"schema": 1, "keys": [_as_dict(key) for key in found]})
    elif found:
        say(_table(found))
    else:
        say("There are no keys: calibrant keys add makes one.")


def revoke(
    key: Annotated[str, typer.Argument(metavar="ID", help="The key's id; keys list shows it.")],
    db: Db = DEFAULT_DB,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Revoke a key for good: whoever sends it is turned away."""
    with open_store(db) as store:
        revoked = store.keys.revoke(key)
    if json:
        print_json({"schema": 1, "key": _as_dict(revoked)})
        return
    from calibrant.formatting import quote_name

    since = _minute(revoked.revoked)
    say(f"Key {revoked.id} for {quote_name(revoked.name)} is revoked since {since} UTC.")


COMMANDS: dict[str, tuple[Callable[..., None], str]] = {
    "add": (add, EXAMPLE),
    "list": (list_keys, "calibrant keys list"),
    "revoke": (revoke, "calibrant keys revoke 3f9k2m1q8a7z, an id that keys list shows"),
}
"""The sub-commands, each with its example."""


def _as_dict(key: Key) -> dict[str, Any]:
    times = {"created": key.created, "last_used": key.last_used, "revoked": key.revoked}
    told = {name: None if at is None else at.isoformat() for name, at in times.items()}
    return {"id": key.id, "name": key.name, "role": key.role, "rate": key.rate, **told}


def _table(keys: Sequence[Key]) -> str:
    from calibrant.reports.text_tables import add_row, table_of, to_text

    names = ("Id", "Name", "Role", "Rate", "Created", "Last used", "Revoked")
    table = table_of(*names, words=(0, 1, 2, 4, 5, 6))
    table.columns[0].no_wrap = True  # an id is copied, so it stays whole
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
