"""`python -m reproductions NAME`: a table of a paper, ours beside theirs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from calibrant.cli.options import Debug, Json
from calibrant.cli.output import print_json, say, width
from calibrant.cli.study_output import telling
from calibrant.errors import InputError

if TYPE_CHECKING:
    from reproductions.experiment import Experiment

__all__ = ["load_app", "reproduce"]

EXAMPLE = "python -m reproductions bigmart --size small"


def reproduce(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Which one; --list shows them.")
    ] = None,
    listed: Annotated[
        bool, typer.Option("--list", help="Show all: data, time and hardware they need.")
    ] = False,
    size: Annotated[
        str,
        typer.Option("--size", help="full (as in the paper), small (minutes) or toy (seconds)."),
    ] = "full",
    methods: Annotated[
        str | None,
        typer.Option("--methods", metavar="A,B", help="Only these.", show_default="all"),
    ] = None,
    seeds: Annotated[
        str | None,
        typer.Option("--seeds", metavar="0,1,2", show_default="those of the experiment"),
    ] = None,
    epochs: Annotated[
        int | None, typer.Option("--epochs", min=1, show_default="those of the experiment")
    ] = None,
    device: Annotated[
        str | None,
        typer.Option("--device", help="cpu, cuda, cuda:1.", show_default="a GPU if there is one"),
    ] = None,
    out: Annotated[
        Path, typer.Option("--out", metavar="FOLDER", help="Where the results go.")
    ] = Path("runs/reproductions"),
    again: Annotated[
        bool, typer.Option("--again", help="Run again what is already there.")
    ] = False,
    calibrate_again: Annotated[
        bool,
        typer.Option(
            "--calibrate-again", help="Fit calibrators again on the kept logits, without training."
        ),
    ] = False,
    jobs: Annotated[
        int, typer.Option("--jobs", metavar="N", min=1, help="Runs at a time, on one GPU too.")
    ] = 1,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Train what a paper trained, on its data, and show both results side by side.

    Every run is kept in its own file: what is already there is not run again, so the same command
    goes on after an interruption.
    """
    if listed or name is None:
        if name is None and not listed:
            raise InputError("name what to reproduce; python -m reproductions --list shows all.")
        _show_list(json=json)
        return
    from reproductions import RunRequest, experiment_named
    from reproductions.reproduce import reproduce as run

    if again and calibrate_again:
        raise InputError("--again trains anew, --calibrate-again does not: give one of them.")
    experiment = experiment_named(name)
    overrides = {"epochs": epochs, "device": device}
    request = RunRequest(
        size=size,  # type: ignore[arg-type]  # checked by the experiment
        methods=None if methods is None else _methods(methods),
        seeds=None if seeds is None else _seeds(seeds),
        overrides={option: value for option, value in overrides.items() if value is not None},
        again=again,
        calibrate_again=calibrate_again,
        jobs=jobs,
    )
    with telling(out) as tell:
        run(experiment, out, request, progress=tell)
    _show(experiment, out, request, json=json)


def _show(experiment: Experiment, out: Path, request: Any, *, json: bool) -> None:
    from reproductions.extra_words import extra_words
    from reproductions.record import read_losses, read_notes, read_records
    from reproductions.summary import summarise
    from reproductions.summary_text import summary_text

    at_size = experiment.at(request.size)
    records = [one for one in read_records(out, at_size) if one["size"] == request.size]
    summary = summarise(at_size, records, read_losses(out, at_size))
    notes = read_notes(out, at_size)
    told = extra_words(at_size, summary, records, notes)
    if json:
        extras = {f"{one['method']}-{one['seed']}": one["extras"] for one in records}
        own = {"findings": list(told), "extras": extras, "notes": notes}
        print_json({**summary.to_dict(), **own, "out": str(out / experiment.name)})
        return
    say(summary_text(summary, width=width()))
    for each in told:
        say(f"\n{each}")
    say(f"\nThe records of all runs are in {out / experiment.name}")


def _show_list(*, json: bool) -> None:
    from reproductions import experiments
    from reproductions.data_sets import data_set_named, have
    from reproductions.summary_text import list_text

    found = list(experiments().values())
    here = {name: have(name) for each in found for name in each.needs}
    if json:
        rows = [
            {
                "name": each.name, "title": each.title, "paper": each.paper, "run": each.run,
                "why": each.why, "needs": {name: here[name] for name in each.needs},
                "where": {name: data_set_named(name).where for name in each.needs},
                "methods": [method.name for method in each.methods], "seeds": list(each.seeds),
                "minutes": dict(each.minutes), "sizes": ["full", *each.sizes],
            }
            for each in found
        ]  # fmt: skip
        print_json({"schema": 1, "reproductions": rows})
        return
    where = {name: data_set_named(name).remedy for name in here}
    say(list_text(found, here, where=where, width=width()))


def _names(text: str) -> list[str]:
    """Return what stands between the commas, each once."""
    return list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))


def _methods(text: str) -> list[str]:
    found = _names(text)
    if not found:
        raise InputError(f"--methods must name some, like ce,adafocal, got {text!r}.")
    return found


def _seeds(text: str) -> Sequence[int]:
    try:
        found = list(dict.fromkeys(int(each) for each in _names(text)))
    except ValueError:
        found = []
    if not found or min(found) < 0 or max(found) >= 2**32:
        raise InputError(
            f"--seeds must be whole numbers from 0 to 4294967295, like 0,1,2, got {text!r}."
        )
    return found


def load_app() -> typer.Typer:
    """Return the command line of the reproductions."""
    from calibrant.cli.guard import GuardedCommand

    app = typer.Typer(name="reproductions", pretty_exceptions_enable=False, add_completion=False)
    app.command(cls=GuardedCommand, epilog=f"Example: {EXAMPLE}")(reproduce)
    return app


if __name__ == "__main__":
    from calibrant.cli.main import run

    run(load_app)
