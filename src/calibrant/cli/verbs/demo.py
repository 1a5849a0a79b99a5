"""`calibrant demo`: a whole study on the built-in corpus, and its promise checked."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from calibrant.cli.options import Debug, Json, Seed
from calibrant.cli.output import print_json, say
from calibrant.errors import InputError, MissingExtra

__all__ = ["demo"]

NAME = "demo"
EXAMPLE = "calibrant demo --out runs/demo"


def demo(
    out: Annotated[
        str, typer.Option("--out", metavar="FOLDER", help="Where all of it goes.")
    ] = "runs/demo",
    scores: Annotated[
        bool, typer.Option("--scores", help="Only write the score files: seconds, without torch.")
    ] = False,
    json: Json = False,
    seed: Seed = 0,
    debug: Debug = False,
) -> None:
    """Train, compare, calibrate and certify on made-up return messages, and check the promise.

    Five losses on 16,000 noisy messages, a golden set, a bundle, a report, and 100,000 fresh
    messages whose true probabilities are known: about three minutes on two cores.

    Also writes scores.csv and ideal.csv, which the examples of the other verbs read.
    """
    from calibrant.study.study_folder import output_folder

    folder = output_folder(out)
    files = _score_files(folder, seed, alone=scores)
    if scores:
        if json:
            print_json({"schema": 1, "out": str(folder), "files": [str(file) for file in files]})
        else:
            say(f"Example scores are in {files[0]} and {files[1]}")
        return
    from calibrant.cli.study_output import show_study, telling

    with telling(folder) as tell:
        try:
            from calibrant.study.demo import run_demo

            result = run_demo(folder, seed=seed, progress=tell)
        except MissingExtra as error:
            raise InputError(
                f"{str(error).rstrip('.')}; calibrant demo --scores works without it."
            ) from None
    show_study(result, folder, again=f"calibrant demo --out {quote(str(folder))}", json=json)


def _score_files(out: Path, seed: int, *, alone: bool) -> tuple[Path, Path]:
    """Write the scores of a made-up model, and of one that is right about everything.

    Before that, unless they are to stand alone, refuse what the study would refuse.
    """
    from calibrant.data import write_example
    from calibrant.files.atomic_write import check_writable
    from calibrant.inputs import as_seed
    from calibrant.study.study_folder import check_output_folder

    as_seed(seed, name="--seed")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"--out {out} cannot be made a folder: {error.strerror}: choose another place."
        ) from None
    check_writable(out / "report.html", name="--out")
    if not alone:
        check_output_folder(out)
    return (
        write_example(out / "scores.csv", seed=seed),
        write_example(out / "ideal.csv", seed=seed, ideal=True),
    )
