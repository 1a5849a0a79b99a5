"""The `calibrant` app and its verbs."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from calibrant.cli.guard import GuardedGroup
from calibrant.cli.output import echo
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


class SectionedCommand(TyperCommand):
    """Command whose plain-text help has one section per `rich_help_panel`.

    Typer's table gives the widest option, negated flag and metavar a column each, which leaves
    about twenty characters for the help text on a terminal of 80 columns.
    """

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments first, then the options of each panel."""
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is None:
                continue
            default = "Arguments" if param.param_type_name == "argument" else "Options"
            title = getattr(param, "rich_help_panel", None) or default
            sections.setdefault(title, []).append(record)
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


def _help_without_command(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        echo(context.get_help())
        raise typer.Exit(2)


app = typer.Typer(
    name="calibrant",
    cls=GuardedGroup,
    help="Train, calibrate, certify and serve classifiers.",
    epilog="Start with: calibrant demo",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
for module in (
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
    app.command(name=module.NAME, cls=SectionedCommand, epilog=f"Example: {module.EXAMPLE}")(
        getattr(module, f"{module.NAME}_command")
    )
for group_module in (keys, store):
    group_app = typer.Typer(
        name=group_module.NAME,
        help=group_module.HELP,
        epilog=f"Example: {group_module.EXAMPLE}",
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )
    for name, (run, example) in group_module.COMMANDS.items():
        group_app.command(name=name, cls=SectionedCommand, epilog=f"Example: {example}")(run)
    group_app.callback(invoke_without_command=True)(_help_without_command)
    app.add_typer(group_app)


@app.callback(invoke_without_command=True)
def calibrant(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Handle the options before the verb."""
    if version:
        from calibrant.distribution import own_version

        echo(f"calibrant {own_version()}")
        raise typer.Exit
    _help_without_command(context)
