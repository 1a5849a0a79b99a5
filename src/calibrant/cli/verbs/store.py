"""`calibrant store`: look after the predictions on record: export, forget, prune, check."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from calibrant.cli.options import Debug, Json
from calibrant.cli.output import print_json, say
from calibrant.cli.store_options import DEFAULT_DB, Db, age_of, moment_of, need_store, open_store

if TYPE_CHECKING:
    from calibrant.store.records import Erased

__all__ = ["check", "export", "forget", "prune"]

NAME = "store"
HELP = "Look after the predictions on record: check, export, forget and prune them."
EXAMPLE = "calibrant store export -o predictions.parquet"
_SHOWN = 5
"""Labels that are named."""


def export(
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="PATH", help="Where to put it, as parquet.")
    ],
    since: Annotated[
        str | None,
        typer.Option("--since", metavar="TIME", help="From this date or time on (UTC)."),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option("--until", metavar="TIME", help="Before this date or time (UTC)."),
    ] = None,
    use_case: Annotated[
        str | None,
        typer.Option("--use-case", metavar="NAME", help="Only this one.", show_default="all"),
    ] = None,
    labelled: Annotated[
        bool, typer.Option("--labelled", help="Only those whose true class is known.")
    ] = False,
    db: Db = DEFAULT_DB,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Write predictions with their labels and outcomes to a parquet file.

    With --labelled, calibrant evaluate reads the file as it is: rows whose label is no class of
    their bundle are left out and counted.
    """
    need_store()
    from calibrant.store.export import check_export

    start, end = moment_of(since, flag="--since"), moment_of(until, flag="--until")
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

    say(f"{format_count(rows, 'prediction')} in {out}")
    if left:
        say(_left_out(left))


def forget(
    unit: Annotated[
        str, typer.Option("--unit", metavar="UNIT", help="Whom to forget, as requests name it.")
    ],
    db: Db = DEFAULT_DB,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Delete all predictions about one unit, with their labels and outcomes.

    They go at once and for good; only a keyed hash of the unit, the time and the counts stay.
    """
    with open_store(db) as store:
        erased = store.forget(unit)
    if json:
        print_json({"schema": 1, "unit": unit, **asdict(erased)})
        return
    from calibrant.formatting import quote_name

    if erased.predictions:
        say(f"Forgot {quote_name(unit)}: {_counts(erased)}.")
    else:
        say(f"Nothing is kept about {quote_name(unit)}.")


def prune(
    older_than: Annotated[
        str,
        typer.Option(
            "--older-than", metavar="AGE", help="In hours, days or weeks: 12h, 90d or 52w."
        ),
    ],
    db: Db = DEFAULT_DB,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Delete all predictions beyond an age, with their labels and outcomes.

    A service can go on meanwhile.
    """
    before = datetime.now(UTC) - age_of(older_than, flag="--older-than")
    with open_store(db) as store:
        erased = store.prune(before)
    if json:
        print_json({"schema": 1, "before": before.isoformat(), **asdict(erased)})
        return
    time = f"{before:%Y-%m-%d %H:%M} UTC"
    if erased.predictions:
        say(f"Deleted what was older than {time}: {_counts(erased)}.")
    else:
        say(f"Nothing is older than {time}.")


def check(db: Db = DEFAULT_DB, json: Json = False, debug: Debug = False) -> None:
    """See whether the store can be reached and is up to date, and count what is in it."""
    with open_store(db) as store:
        counts, url = store.counts(), store.url
    if json:
        print_json({"schema": 1, "url": url, **asdict(counts)})
        return
    say(f"The store {url} can be reached and is up to date.\n")
    for name, n in asdict(counts).items():
        say(f"{name:<11} {n:>12,}")


COMMANDS: dict[str, tuple[Callable[..., None], str]] = {
    "check": (check, "calibrant store check"),
    "export": (export, EXAMPLE),
    "forget": (forget, "calibrant store forget --unit customer-17"),
    "prune": (prune, "calibrant store prune --older-than 90d"),
}
"""The sub-commands, each with its example."""


def _left_out(labels: Counter[str]) -> str:
    """Say which labels are no class of their bundle, the most frequent first."""
    from calibrant.formatting import format_count, quote_name

    named = ", ".join(f"{quote_name(label)} ({n:,})" for label, n in labels.most_common(_SHOWN))
    more = f" and {format_count(len(labels) - _SHOWN, 'other')}" if len(labels) > _SHOWN else ""
    one = labels.total() == 1
    return (
        f"{format_count(labels.total(), 'more prediction')} {'is' if one else 'are'} left out: "
        f"{'its' if one else 'their'} label is no class of the bundle: {named}{more}."
    )


def _counts(erased: Erased) -> str:
    from calibrant.formatting import format_count

    made = (format_count(n, name[:-1]) for name, n in asdict(erased).items())
    return ", ".join(made)
