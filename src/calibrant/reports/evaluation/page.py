"""One self-contained HTML page for an evaluation: no network, no other file."""

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

__all__ = ["html", "rendered", "write_html", "write_page"]


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
    return rendered("report", page_data(evaluation), title=title, source=source)


def write_html(
    evaluation: Evaluation,
    path: str | os.PathLike[str],
    *,
    title: str = "Calibration report",
    source: str | None = None,
    name: str = "path",
) -> Path:
    """Write the page of `html` to `path` and return the path.

    A reader sees the old file or the new one, never half a page. `name` is what errors call the
    path.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from calibrant.metrics import evaluate
    >>> with TemporaryDirectory() as folder:
    ...     path = write_html(evaluate([0, 1], [0.2, 0.9]), f"{folder}/report.html")
    ...     path.name, path.stat().st_size < 8 * 2**20
    ('report.html', True)
    """
    check_writable(path, name=name)  # before the page is made
    return write_page(html(evaluation, title=title, source=source), path, name=name)


def rendered(
    template: str,
    data: Mapping[str, Any],
    *,
    title: str,
    source: str | None = None,
    scripts: tuple[str, ...] = (),
) -> str:
    """Fill the page `template`; `data` holds its JSON for charts as the text `charts`.

    `scripts` names other pages whose charts this page draws too.
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
    """Write a page whole or not at all."""
    with write_atomically(path, name=name) as draft:
        # A lone surrogate in a name has no UTF-8 form; as a reference it cannot stop the report.
        draft.write_text(page, encoding="utf-8", errors="xmlcharrefreplace")
    return Path(path)


def soft(name: str) -> Markup:
    """Let a long name break after its own separators rather than anywhere.

    Examples
    --------
    >>> str(soft("item_defective <b>"))
    'item_<wbr>defective &lt;b&gt;'
    """
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
    environment.filters["soft"] = soft
    return environment.get_template(name)


@cache
def _part(name: str) -> str:
    return files("calibrant.reports").joinpath("templates", name).read_text(encoding="utf-8")
