"""`calibrant demo`: from scores to a report on the built-in example."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from calibrant.cli.options import Debug, Json, Seed
from calibrant.errors import InputError

__all__ = ["demo"]

NAME = "demo"
EXAMPLE = "calibrant demo --out runs/demo"


def demo(
    out: Annotated[
        Path, typer.Option("--out", metavar="FOLDER", help="Where to put scores and report.")
    ] = Path("runs/demo"),
    json: Json = False,
    seed: Seed = 0,
    debug: Debug = False,
) -> None:
    """Evaluate built-in predictions of return reasons and write a report.

    The model behind them is over-confident, most of all for phone calls: the report shows it.
    """
    from calibrant.cli.evaluate import evaluate_file, show
    from calibrant.data import write_example
    from calibrant.data.whole_file import check_writable

    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"--out {out} cannot be made a folder: {error.strerror}: choose another place."
        ) from None
    report = check_writable(out / "report.html", name="--out")
    scores = write_example(out / "scores.csv", seed=seed)
    write_example(out / "ideal.csv", seed=seed, ideal=True)
    options = {"target": None, "n_bins": 15, "confidence": 0.95}
    result = evaluate_file([scores], {"group": "channel"}, options, seed)
    show(result, source=str(scores), html=report, json=json, flag="--out")
