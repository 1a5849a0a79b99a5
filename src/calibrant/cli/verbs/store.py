"""`calibrant store`: check, export, forget and prune recorded predictions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from calibrant.cli.options import Debug, Json
from calibrant.cli.output import echo, print_json
from calibrant.cli.store_options import (
    DEFAULT_DB,
    Db,
    open_store,
    parse_age,
    parse_time,
    require_store,
)

if TYPE_CHECKING:
    from calibrant.store.records import Erased

NAME = "store"
HELP = "Check, export, forget and prune recorded predictions."
EXAMPLE = "calibrant store export -o predictions.parquet"
_SHOWN = 5  # Number of labels listed


def export(
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="PATH", help="Output file (parquet).")
    ],
    since: Annotated[
        str | None,
        typer.Option("--since", metavar="TIME", help="From this date or time (UTC)."),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option("--until", metavar="TIME", help="Before this date or time (UTC)."),
    ] = None,
    use_case: Annotated[
        str | None,
        typer.Option("--use-case", metavar="NAME", help="Only this use case.", show_default="all"),
    ] = None,
    labelled: Annotated[
        bool, typer.Option("--labelled", help="Only predictions with a label.")
    ] = False,
    db: Db = DEFAULT_DB,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Write predictions with their labels and outcomes to a parquet file.

    With --labelled, calibrant evaluate can read the file: rows whose label is not a class of the
    bundle are left out and counted.
    """
    require_store()
    from calibrant.store.export import check_export

    start, end = parse_time(since, flag="--since"), parse_time(until, flag="--until")
    check_export(out, start, end, name="-o")
    left: Counter[str] = Counter()
    with open_store(db) as store:
        rows = store.export(
            out, since=start, until=end, use_case=use_case, labelled=labelled, left_out=left
        )
    if json:
        more = {"left_out": dict(left)} if labelled else {}
        print_json({"schema": 1, "n": rows, "out": str(out), **more})
        return
    from calibrant.formatting import format_count

    echo(f"{format_count(rows, 'prediction')} in {out}")
    if left:
        echo(_describe_left_out(left))


def forget(
    unit: Annotated[
        str, typer.Option("--unit", metavar="UNIT", help="Unit to forget, as named in requests.")
    ],
    db: Db = DEFAULT_DB,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Delete all predictions of a unit, with their labels and outcomes.

    Deletion is immediate and permanent; only a keyed hash of the unit, the time and the counts
    remain.
    """
    with open_store(db) as store:
        erased = store.forget(unit)
    if json:
        print_json({"schema": 1, "unit": unit, **asdict(erased)})
        return
    from calibrant.formatting import quote_name

    if erased.predictions:
        echo(f"Forgot {quote_name(unit)}: {_describe_counts(erased)}.")
    else:
        echo(f"No predictions about {quote_name(unit)}.")


def prune(
    older_than: Annotated[
        str,
        typer.Option(
            "--older-than",
            metavar="AGE",
            help="Age in hours, days or weeks, such as 12h, 90d or 52w.",
        ),
    ],
    db: Db = DEFAULT_DB,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Delete predictions older than an age, with their labels and outcomes.

    A running service is not interrupted.
    """
    before = datetime.now(UTC) - parse_age(older_than, flag="--older-than")
    with open_store(db) as store:
        erased = store.prune(before)
    if json:
        print_json({"schema": 1, "before": before.isoformat(), **asdict(erased)})
        return
    time = f"{before:%Y-%m-%d %H:%M} UTC"
    if erased.predictions:
        echo(f"Deleted predictions older than {time}: {_describe_counts(erased)}.")
    else:
        echo(f"No predictions are older than {time}.")


def check(db: Db = DEFAULT_DB, json: Json = False, debug: Debug = False) -> None:
    """Check the connection and schema of the store, and count its rows."""
    with open_store(db) as store:
        counts, url = store.counts(), store.url
    if json:
        print_json({"schema": 1, "url": url, **asdict(counts)})
        return
    echo(f"The store {url} is reachable and up to date.\n")
    for name, n in asdict(counts).items():
        echo(f"{name:<11} {n:>12,}")


COMMANDS: dict[str, tuple[Callable[..., None], str]] = {
    "check": (check, "calibrant store check"),
    "export": (export, EXAMPLE),
    "forget": (forget, "calibrant store forget --unit customer-17"),
    "prune": (prune, "calibrant store prune --older-than 90d"),
}
"""Subcommands with examples."""


def _describe_left_out(labels: Counter[str]) -> str:
    """List labels that are not classes of their bundle, most frequent first."""
    from calibrant.formatting import format_count, quote_name

    examples = ", ".join(f"{quote_name(label)} ({n:,})" for label, n in labels.most_common(_SHOWN))
    more = f" and {format_count(len(labels) - _SHOWN, 'other')}" if len(labels) > _SHOWN else ""
    single = labels.total() == 1
    return (
        f"{format_count(labels.total(), 'more prediction')} {'is' if single else 'are'} left out: "
        f"{'its' if single else 'their'} label is not a class of the bundle: {examples}{more}."
    )


def _describe_counts(erased: Erased) -> str:
    from calibrant.formatting import format_count

    parts = (format_count(n, name[:-1]) for name, n in asdict(erased).items())
    return ", ".join(parts)
