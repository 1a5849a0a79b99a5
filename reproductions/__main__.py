"""`python -m reproductions`: rerun the experiments of a paper."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from calibrant.cli.options import Debug, Json
from calibrant.cli.output import echo, print_json, width
from calibrant.cli.study_output import study_progress
from calibrant.errors import InputError

if TYPE_CHECKING:
    from reproductions.experiment import Experiment

__all__ = ["load_app", "reproduce_command"]

EXAMPLE = "python -m reproductions bigmart --size small"


def reproduce_command(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Experiment; see --list.")
    ] = None,
    listed: Annotated[
        bool, typer.Option("--list", help="List experiments with data, time and hardware.")
    ] = False,
    size: Annotated[
        str,
        typer.Option("--size", help="full (as in the paper), small (minutes) or toy (seconds)."),
    ] = "full",
    methods: Annotated[
        str | None,
        typer.Option(
            "--methods", metavar="A,B", help="Run only these methods.", show_default="all"
        ),
    ] = None,
    seeds: Annotated[
        str | None,
        typer.Option(
            "--seeds", metavar="0,1,2", help="Random seeds.", show_default="those of the experiment"
        ),
    ] = None,
    epochs: Annotated[
        int | None,
        typer.Option(
            "--epochs", min=1, help="Training epochs.", show_default="those of the experiment"
        ),
    ] = None,
    device: Annotated[
        str | None,
        typer.Option("--device", help="cpu, cuda, cuda:1.", show_default="a GPU if there is one"),
    ] = None,
    out: Annotated[Path, typer.Option("--out", metavar="FOLDER", help="Output folder.")] = Path(
        "runs/reproductions"
    ),
    again: Annotated[bool, typer.Option("--again", help="Rerun finished runs.")] = False,
    calibrate_again: Annotated[
        bool,
        typer.Option(
            "--calibrate-again", help="Refit calibrators on saved logits, without training."
        ),
    ] = False,
    jobs: Annotated[
        int,
        typer.Option(
            "--jobs", metavar="N", min=1, help="Number of parallel runs, also on one GPU."
        ),
    ] = 1,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Repeat the experiments of a paper and show both results side by side.

    Each run is saved in its own file and finished runs are skipped, so the same command resumes
    after an interruption.
    """
    if listed or name is None:
        if name is None and not listed:
            raise InputError(
                "NAME is missing: python -m reproductions --list shows all experiments."
            )
        _show_list(json=json)
        return
    from reproductions import RunRequest, experiment_named
    from reproductions.reproduce import reproduce

    if again and calibrate_again:
        raise InputError("--again and --calibrate-again exclude each other: give one of them.")
    experiment = experiment_named(name)
    overrides = {"epochs": epochs, "device": device}
    request = RunRequest(
        size=size,  # type: ignore[arg-type]  # checked by the experiment
        methods=None if methods is None else _parse_methods(methods),
        seeds=None if seeds is None else _parse_seeds(seeds),
        overrides={option: value for option, value in overrides.items() if value is not None},
        again=again,
        calibrate_again=calibrate_again,
        jobs=jobs,
    )
    with study_progress(out) as report:
        reproduce(experiment, out, request, progress=report)
    _show(experiment, out, request, json=json)


def _show(experiment: Experiment, out: Path, request: Any, *, json: bool) -> None:
    from reproductions.extra_words import extra_words
    from reproductions.record import read_losses, read_notes, read_records
    from reproductions.summary import summarise
    from reproductions.summary_text import summary_text

    at_size = experiment.at(request.size)
    records = [record for record in read_records(out, at_size) if record["size"] == request.size]
    summary = summarise(at_size, records, read_losses(out, at_size))
    notes = read_notes(out, at_size)
    findings = extra_words(at_size, summary, records, notes)
    if json:
        extras = {f"{record['method']}-{record['seed']}": record["extras"] for record in records}
        extra = {"findings": list(findings), "extras": extras, "notes": notes}
        print_json({**summary.to_dict(), **extra, "out": str(out / experiment.name)})
        return
    echo(summary_text(summary, width=width()))
    for finding in findings:
        echo(f"\n{finding}")
    echo(f"\nThe records of all runs are in {out / experiment.name}")


def _show_list(*, json: bool) -> None:
    from reproductions import experiments
    from reproductions.data_sets import data_set_named, have
    from reproductions.summary_text import list_text

    listed = list(experiments().values())
    available = {name: have(name) for experiment in listed for name in experiment.needs}
    if json:
        rows = [
            {
                "name": experiment.name, "title": experiment.title, "paper": experiment.paper,
                "run": experiment.run, "why": experiment.why,
                "needs": {name: available[name] for name in experiment.needs},
                "where": {name: data_set_named(name).where for name in experiment.needs},
                "methods": [method.name for method in experiment.methods],
                "seeds": list(experiment.seeds),
                "minutes": dict(experiment.minutes), "sizes": ["full", *experiment.sizes],
            }
            for experiment in listed
        ]  # fmt: skip
        print_json({"schema": 1, "reproductions": rows})
        return
    where = {name: data_set_named(name).remedy for name in available}
    echo(list_text(listed, available, where=where, width=width()))


def _split_names(text: str) -> list[str]:
    """Split at commas, without duplicates."""
    return list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))


def _parse_methods(text: str) -> list[str]:
    names = _split_names(text)
    if not names:
        raise InputError(f"--methods must be names like ce,adafocal, got {text!r}.")
    return names


def _parse_seeds(text: str) -> Sequence[int]:
    try:
        seeds = list(dict.fromkeys(int(name) for name in _split_names(text)))
    except ValueError:
        seeds = []
    if not seeds or min(seeds) < 0 or max(seeds) >= 2**32:
        raise InputError(
            f"--seeds must be whole numbers from 0 to 4294967295, like 0,1,2, got {text!r}."
        )
    return seeds


def load_app() -> typer.Typer:
    """Return the command line of the reproductions."""
    from calibrant.cli.guard import GuardedCommand

    app = typer.Typer(name="reproductions", pretty_exceptions_enable=False, add_completion=False)
    app.command(cls=GuardedCommand, epilog=f"Example: {EXAMPLE}")(reproduce_command)
    return app


if __name__ == "__main__":
    from calibrant.cli.main import run

    run(load_app)
