"""What the verbs that run a study share: telling how it goes, and showing what came of it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from calibrant.cli import interruption
from calibrant.cli.output import color, print_json, say, width

if TYPE_CHECKING:
    from calibrant.study.result import StudyResult

__all__ = ["show_study", "telling"]


@contextmanager
def telling(folder: Path) -> Iterator[Callable[[str], None]]:
    """Lend a function that tells how a study goes; after Ctrl-C say how to go on with it."""
    from calibrant.cli.progress import status

    interruption.check()
    try:
        with status("reading") as tell:
            yield tell
        interruption.check()
    except KeyboardInterrupt:
        print(
            f"what was trained so far is in {folder}: the same command goes on from there.",
            file=sys.stderr,
        )
        raise


def show_study(result: StudyResult, folder: Path, *, again: str, json: bool) -> None:
    """Print a study, where its files are, and what to do with them."""
    bundle, report = folder / "bundle", folder / "report.html"
    written = report.exists()  # not where a package is missing that it is drawn with
    if json:
        files = {"bundle": str(bundle), "report": str(report) if written else None}
        files["settings"] = str(folder / "study.toml")
        print_json({**result.to_dict(), "out": str(folder), **files})
        return
    from calibrant.formatting import printable
    from calibrant.study.report.text import render_study

    say(render_study(result, width=width(), color=color()))
    places = f"The report is in {report}, and the bundle in" if written else "The bundle is in"
    say(f"\n{places} {bundle}")
    say(f"Run it again: {printable(again)}")
    say(f"Score a file with it: calibrant predict {printable(quote(str(bundle)))} FILE")
