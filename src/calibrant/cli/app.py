"""`calibrant`: the app that gathers the verbs."""

from __future__ import annotations

from typing import Annotated

import typer

from calibrant.cli.guard import GuardedGroup
from calibrant.cli.output import say
from calibrant.cli.verbs import (
    calibrate,
    compare,
    decide,
    demo,
    doctor,
    evaluate,
    keys,
    pack,
    predict,
    serve,
    store,
    threshold,
    train,
)

__all__ = ["app"]


def _help_without_command(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        say(context.get_help())
        raise typer.Exit(2)


app = typer.Typer(
    name="calibrant",
    cls=GuardedGroup,
    help="Classifiers whose probabilities can be trusted, and the checks that prove it.",
    epilog="Start with: calibrant demo",
    pretty_exceptions_enable=False,
)
for verb in (
    evaluate,
    compare,
    calibrate,
    threshold,
    decide,
    pack,
    train,
    predict,
    demo,
    serve,
    doctor,
):
    app.command(name=verb.NAME, epilog=f"Example: {verb.EXAMPLE}")(getattr(verb, verb.NAME))
for group in (keys, store):
    made = typer.Typer(
        name=group.NAME,
        help=group.HELP,
        epilog=f"Example: {group.EXAMPLE}",
        pretty_exceptions_enable=False,
    )
    for name, (run, example) in group.COMMANDS.items():
        made.command(name=name, epilog=f"Example: {example}")(run)
    made.callback(invoke_without_command=True)(_help_without_command)
    app.add_typer(made)


@app.callback(invoke_without_command=True)
def calibrant(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    """Read the options that come before the verb."""
    if version:
        from calibrant.distribution import own_version

        say(f"calibrant {own_version()}")
        raise typer.Exit
    _help_without_command(context)
