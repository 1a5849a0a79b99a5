"""Self-contained HTML page of an evaluation."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibrant.files.atomic_write import check_writable, write_atomically
from calibrant.reports.evaluation.page_data import page_data
from calibrant.results import Evaluation

if TYPE_CHECKING:
    from jinja2 import Template
    from markupsafe import Markup


def html(
    evaluation: Evaluation, *, title: str = "Calibration report", source: str | None = None
) -> str:
    """Return an evaluation as one self-contained HTML page.

    The page embeds plotly's script and loads nothing over the network. Names of classes and groups
    are escaped.

    Parameters
    ----------
    evaluation : result of `calibrant.evaluate`
    title : heading of the page
    source : where the rows came from, such as a file name

    Examples
    --------
    >>> from calibrant.metrics import evaluate
    >>> page = html(evaluate([0, 1, 1, 0], [0.2, 0.9, 0.6, 0.1]), title="Four rows")
    >>> page[:15], "<h1>Four rows</h1>" in page
    ('<!doctype html>', True)
    """
    return render_page("report", page_data(evaluation), title=title, source=source)


def write_html(
    evaluation: Evaluation,
    path: str | os.PathLike[str],
    *,
    title: str = "Calibration report",
    source: str | None = None,
    name: str = "path",
) -> Path:
    """Write the page of `html` to `path` and return the path.

    The write is atomic. `name` is the name of the path in error messages.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from calibrant.metrics import evaluate
    >>> with TemporaryDirectory() as folder:
    ...     path = write_html(evaluate([0, 1], [0.2, 0.9]), f"{folder}/report.html")
    ...     path.name, path.stat().st_size < 8 * 2**20
    ('report.html', True)
    """
    check_writable(path, name=name)  # before the page is rendered
    return write_page(html(evaluation, title=title, source=source), path, name=name)


def render_page(
    template: str,
    data: Mapping[str, Any],
    *,
    title: str,
    source: str | None = None,
    scripts: tuple[str, ...] = (),
) -> str:
    """Render the page `template`; `data["charts"]` is the JSON of its charts.

    `scripts` names other pages whose chart scripts are included.
    """
    from markupsafe import Markup
    from plotly.offline import get_plotlyjs

    return _template(f"{template}.html.j2").render(
        **{**data, "charts": Markup(data["charts"])},
        title=title,
        source=source,
        css=Markup(_part("report.css")),
        script=Markup("".join(_part(f"{name}.js") for name in ("charts", *scripts, template))),
        plotly=Markup(get_plotlyjs()),
    )


def write_page(page: str, path: str | os.PathLike[str], *, name: str = "path") -> Path:
    """Write a page atomically."""
    with write_atomically(path, name=name) as draft:
        # A lone surrogate in a name has no UTF-8 form, so write it as a character reference.
        draft.write_text(page, encoding="utf-8", errors="xmlcharrefreplace")
    return Path(path)


def add_break_hints(name: str) -> Markup:
    """Escape a name and allow line breaks after its separators."""
    from markupsafe import Markup, escape

    return Markup(re.sub(r"([_\-/.])(?=\w)", r"\1<wbr>", str(escape(name))))


@cache
def _template(name: str) -> Template:
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    environment = Environment(
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        loader=FunctionLoader(_part),
    )
    environment.filters["soft"] = add_break_hints
    return environment.get_template(name)


@cache
def _part(name: str) -> str:
    return files("calibrant.reports").joinpath("templates", name).read_text(encoding="utf-8")
