"""`calibrant demo`: run a study on the built-in corpus."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from calibrant.cli.options import Debug, Json, Seed
from calibrant.cli.output import echo, print_json
from calibrant.errors import InputError, MissingExtra

NAME = "demo"
EXAMPLE = "calibrant demo --out runs/demo"


def demo_command(
    out: Annotated[
        str, typer.Option("--out", metavar="FOLDER", help="Output folder.")
    ] = "runs/demo",
    scores: Annotated[
        bool,
        typer.Option("--scores", help="Only write the score files; takes seconds, without torch."),
    ] = False,
    json: Json = False,
    seed: Seed = 0,
    debug: Debug = False,
) -> None:
    """Run a complete study on synthetic return messages and check its promise.

    Trains five losses on 16,000 noisy messages with a golden set, writes a bundle and a report,
    and tests the promise on 100,000 new messages with known probabilities. Takes about three
    minutes on two cores.

    Also writes scores.csv and ideal.csv, used by the examples of the other verbs.
    """
    from calibrant.study.study_folder import output_folder

    folder = output_folder(out)
    files = _write_score_files(folder, seed, alone=scores)
    if scores:
        if json:
            print_json({"schema": 1, "out": str(folder), "files": [str(file) for file in files]})
        else:
            echo(f"Example scores are in {files[0]} and {files[1]}")
        return
    from calibrant.cli.study_output import show_study, study_progress

    with study_progress(folder) as report:
        try:
            from calibrant.study.demo import run_demo

            result = run_demo(folder, seed=seed, progress=report)
        except MissingExtra as error:
            raise InputError(
                f"{str(error).rstrip('.')}; calibrant demo --scores works without it."
            ) from None
    show_study(result, folder, again=f"calibrant demo --out {quote(str(folder))}", json=json)


def _write_score_files(out: Path, seed: int, *, alone: bool) -> tuple[Path, Path]:
    """Write scores of a synthetic model and of the ideal one, after the study's own checks."""
    from calibrant.data import write_example
    from calibrant.files.atomic_write import check_writable
    from calibrant.inputs import as_seed
    from calibrant.study.study_folder import check_output_folder

    as_seed(seed, name="--seed")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"--out {out} cannot be created: {error.strerror}: choose another folder."
        ) from None
    check_writable(out / "report.html", name="--out")
    if not alone:
        check_output_folder(out)
    return (
        write_example(out / "scores.csv", seed=seed),
        write_example(out / "ideal.csv", seed=seed, ideal=True),
    )
