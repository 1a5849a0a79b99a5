"""One self-contained HTML page for an evaluation: no network, no other file."""

from __future__ import annotations

import os
import secrets
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from calibrant.errors import InputError
from calibrant.reports.page_data import page_data
from calibrant.results import Evaluation

if TYPE_CHECKING:
    from jinja2 import Template

__all__ = ["html", "write_html"]


def html(
    evaluation: Evaluation, *, title: str = "Calibration report", source: str | None = None
) -> str:
    """Return an evaluation as one HTML page that needs neither network nor other files.

    The charts are drawn by plotly's own script, which is written into the page; the page forbids
    itself to load anything. Names of classes and groups are shown as text whatever they contain.

    Parameters
    ----------
    evaluation : what `calibrant.evaluate` gave
    title : heading of the page
    source : where the rows came from, such as a file name

    Examples
    --------
    >>> from calibrant.metrics import evaluate
    >>> page = html(evaluate([0, 1, 1, 0], [0.2, 0.9, 0.6, 0.1]), title="Four rows")
    >>> page[:15], "<h1>Four rows</h1>" in page
    ('<!doctype html>', True)
    """
    from markupsafe import Markup
    from plotly.offline import get_plotlyjs

    data = page_data(evaluation)
    return _template().render(
        **{**data, "charts": Markup(data["charts"])},
        title=title,
        source=source,
        css=Markup(_part("report.css")),
        script=Markup(_part("report.js")),
        plotly=Markup(get_plotlyjs()),
    )


def write_html(
    evaluation: Evaluation,
    path: str | os.PathLike[str],
    *,
    title: str = "Calibration report",
    source: str | None = None,
) -> Path:
    """Write the page of `html` to `path` and return the path.

    A reader sees the old file or the new one, never half a page: the text goes to a temporary
    file in the same folder, which then takes the name.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from calibrant.metrics import evaluate
    >>> with TemporaryDirectory() as folder:
    ...     path = write_html(evaluate([0, 1], [0.2, 0.9]), f"{folder}/report.html")
    ...     path.name, path.stat().st_size < 8 * 2**20
    ('report.html', True)
    """
    path = Path(path)
    if not path.parent.is_dir():
        raise InputError(
            f"path must lie in a folder that exists, got {str(path)!r}: create it first."
        )
    page = html(evaluation, title=title, source=source)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        # A lone surrogate in a name has no UTF-8 form; as a reference it cannot stop the report.
        with temporary.open("x", encoding="utf-8", errors="xmlcharrefreplace") as file:
            file.write(page)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return path


@cache
def _template() -> Template:
    from jinja2 import Environment, StrictUndefined

    environment = Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined
    )
    return environment.from_string(_part("report.html.j2"))


@cache
def _part(name: str) -> str:
    return files("calibrant.reports").joinpath("templates", name).read_text(encoding="utf-8")
