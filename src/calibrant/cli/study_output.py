"""Progress and results of verbs that run a study."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from calibrant.cli import interruption
from calibrant.cli.output import color, echo, print_json, width

if TYPE_CHECKING:
    from calibrant.study.result import StudyResult


@contextmanager
def study_progress(folder: Path) -> Iterator[Callable[[str], None]]:
    """Yield a function that shows progress; after Ctrl-C, say how to resume."""
    from calibrant.cli.progress import status

    interruption.check()
    try:
        with status("reading") as report:
            yield report
        interruption.check()
    except KeyboardInterrupt:
        print(
            f"finished work is in {folder}: the same command resumes it.",
            file=sys.stderr,
        )
        raise


def show_study(result: StudyResult, folder: Path, *, again: str, json: bool) -> None:
    """Print a study, its files and the next commands."""
    bundle, report = folder / "bundle", folder / "report.html"
    has_report = report.exists()  # false if plotly or jinja2 is missing
    if json:
        files = {"bundle": str(bundle) if result.packed else None}
        files["report"] = str(report) if has_report else None
        files["settings"] = str(folder / "study.toml")
        print_json({**result.to_dict(), "out": str(folder), **files})
        return
    from calibrant.formatting import printable, sentence
    from calibrant.study.report.text import render_study

    echo(render_study(result, width=width(), color=color()))
    places = [f"the report is in {report}"] if has_report else []
    places += [f"the bundle is in {bundle}"] if result.packed else ["no bundle was packed"]
    echo(f"\n{sentence(', and '.join(places)).rstrip('.')}")
    echo(f"Run it again: {printable(again)}")
    if result.packed:
        echo(f"Score a file with it: calibrant predict {printable(quote(str(bundle)))} FILE")
